// udp.hpp - datagrams.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <weft/io/socket.hpp>

namespace weft::inline v0::io {

/// What receive() says of one.
struct datagram {
    std::size_t size = 0;    // of what is in the buffer
    address from;            // who sent it
    bool truncated = false;  // it was longer than the buffer, and its rest is lost
};

/// Sends and receives datagrams. Thread-safe: as descriptor; receive() is a read, send() a write.
class udp_socket : public socket_base {
public:
    /// None.
    udp_socket() noexcept = default;

    /// Port 0: one that is free; local_address() says which.
    /// Suspends: never. From: any fiber or thread. Fails: as socket(2) and bind(2) do.
    [[nodiscard]] static result<udp_socket> bind(const address& where);
    /// Sends to, and receives from, this address alone.
    /// Suspends: never. From: any fiber or thread. Fails: as socket(2) and connect(2) do.
    [[nodiscard]] static result<udp_socket> connect(const address& to);

    /// Suspends: maybe. Cancel: reported, and nothing was received. From: any fiber or thread.
    /// Fails: as recvmsg(2) does (std::errc::connection_refused, if an earlier datagram of a
    /// connected one was refused); errc::closed.
    [[nodiscard]] result<datagram> receive(std::span<std::byte> buffer);

    /// All of it, or nothing.
    /// Suspends: maybe. Cancel: reported, and nothing was sent. From: any fiber or thread. Fails:
    /// as sendto(2) does (std::errc::message_size); errc::closed.
    [[nodiscard]] result<void> send(std::span<const std::byte> bytes);
    /// The same to an address, for one that is not connected.
    [[nodiscard]] result<void> send_to(std::span<const std::byte> bytes, const address& to);

private:
    explicit udp_socket(descriptor taken) noexcept : socket_base(std::move(taken)) {}
};

}  // namespace weft::inline v0::io
