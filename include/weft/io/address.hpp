// address.hpp - where a socket is or goes to: IPv4 or IPv6 with a port, or a path.
//
//     address("127.0.0.1", 8080), address::parse("[::1]:80").value(), address::local("/run/x")
//
// Numbers only: names are for resolve().
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <weft/io/result.hpp>

namespace weft::inline v0::io {

/// What kind of address it is.
enum class address_family : unsigned char {
    none,   // of an address that is nowhere
    ipv4,   // four bytes and a port
    ipv6,   // sixteen bytes, perhaps with an interface, and a port
    local,  // a path, or a name that is in no file system
};

/// A value. Thread-safe: as an int.
class address {
public:
    /// Nowhere.
    address() noexcept = default;
    /// "127.0.0.1", "::1", "fe80::1%eth0".
    /// Fails: std::system_error with std::errc::invalid_argument if the host is no such number.
    address(std::string_view host, std::uint16_t port);

    /// "127.0.0.1:80", "[::1]:80". Fails: std::errc::invalid_argument.
    [[nodiscard]] static result<address> parse(std::string_view text) noexcept;
    /// The host apart from its port. Fails: std::errc::invalid_argument.
    [[nodiscard]] static result<address> parse(std::string_view host, std::uint16_t port) noexcept;
    /// A path in the file system, or a name that begins with '\0', which is in none.
    /// Fails: std::errc::filename_too_long; std::errc::invalid_argument if it is empty, or has a
    /// '\0' elsewhere than at its beginning.
    [[nodiscard]] static result<address> local(std::string_view path) noexcept;
    /// From what the operating system says (a sockaddr). Fails: std::errc::invalid_argument if it
    /// is too long, std::errc::address_family_not_supported if it is of another family.
    [[nodiscard]] static result<address> from_system(const void* data, std::size_t size) noexcept;

    /// For a listener: every address of this machine.
    [[nodiscard]] static address any_ipv4(std::uint16_t port) noexcept;
    /// The same; IPv4 comes in there, too, unless the listener says otherwise.
    [[nodiscard]] static address any_ipv6(std::uint16_t port) noexcept;
    /// This machine, as nobody outside of it can reach it: 127.0.0.1.
    [[nodiscard]] static address loopback_ipv4(std::uint16_t port) noexcept;
    /// ::1.
    [[nodiscard]] static address loopback_ipv6(std::uint16_t port) noexcept;

    /// none, if it is nowhere.
    [[nodiscard]] address_family family() const noexcept;
    /// 0 if it has none.
    [[nodiscard]] std::uint16_t port() const noexcept;
    /// The same host with another port; one that has none stays as it is.
    [[nodiscard]] address with_port(std::uint16_t port) const noexcept;
    /// Without the port; for a local one its path, with '@' for a '\0'.
    [[nodiscard]] std::string host() const;
    /// As parse() takes it; "" for none.
    [[nodiscard]] std::string to_string() const;

    [[nodiscard]] bool operator==(const address& other) const noexcept;

    /// A sockaddr, for the operating system.
    [[nodiscard]] const void* data() const noexcept { return bytes_.data(); }
    /// Of data(), in bytes.
    [[nodiscard]] std::size_t size() const noexcept { return size_; }

private:
    alignas(8) std::array<std::byte, 112> bytes_{};
    std::uint16_t size_ = 0;
};

}  // namespace weft::inline v0::io
