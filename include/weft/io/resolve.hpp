// resolve.hpp - from a name to addresses, and to a connection.
//
//     const std::vector<io::address> found = io::resolve("example.org", "https").value();
//     io::tcp_stream peer = io::connect("example.org", "https").value();
//
// Who looks up, and how long an answer is kept, is in resolver.hpp.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <vector>

#include <weft/io/address.hpp>
#include <weft/io/tcp.hpp>

namespace weft::inline v0::io {

/// Why a name could not be resolved.
enum class resolve_errc {
    host_not_found = 1,  // nobody knows that name
    no_address,          // the name exists and has no address
    unknown_service,     // no port of that name
    try_again,           // no name server answered, or none would say
    failed,              // it answered that something is wrong
};

/// "weft.resolve".
[[nodiscard]] const std::error_category& resolve_category() noexcept;
/// So that one can be compared with an error_code.
[[nodiscard]] inline std::error_code make_error_code(resolve_errc code) noexcept {
    return {static_cast<int>(code), resolve_category()};
}

/// The addresses of a host, the preferred first; at least one. The service is a port's number or
/// its name. By shared_resolver().
/// Suspends: maybe. Cancel: reported, also while it looks up. From: any fiber or thread. Fails:
/// resolve_errc; std::errc::invalid_argument if one of them is empty or has a zero in it;
/// std::errc::resource_unavailable_try_again, too_many_files_open; std::bad_alloc is thrown.
[[nodiscard]] result<std::vector<address>> resolve(std::string_view host, std::string_view service);

/// resolve(), then the first address that answers, IPv6 and IPv4 by turns, the next one tried
/// after each `stagger` (tcp_stream::connect).
/// Suspends: maybe. Cancel: reported; no connection is left. From: as those two. Fails: as those
/// two.
[[nodiscard]] result<tcp_stream> connect(
    std::string_view host, std::string_view service,
    std::chrono::milliseconds stagger = std::chrono::milliseconds(250));

}  // namespace weft::inline v0::io

template <>
struct std::is_error_code_enum<weft::io::resolve_errc> : std::true_type {};
