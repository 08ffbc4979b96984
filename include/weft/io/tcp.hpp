// tcp.hpp - TCP: listeners and connections.
//
//     auto listener = tcp_listener::bind(address("127.0.0.1", 8080)).value();
//     while (auto peer = listener.accept())
//         go([s = std::move(*peer)]() mutable { ... });
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <span>

#include <weft/io/socket.hpp>

namespace weft::inline v0::io {

/// A TCP connection. Thread-safe: as descriptor.
class tcp_stream : public stream_socket {
public:
    /// None.
    tcp_stream() noexcept = default;
    explicit tcp_stream(descriptor connected) noexcept
        : stream_socket(std::move(connected), short_read::says_empty) {}

    /// Suspends: maybe. Cancel: reported; no connection is left. From: any fiber or thread. Fails:
    /// as connect(2) does (std::errc::connection_refused, timed_out, network_unreachable, ...).
    [[nodiscard]] static result<tcp_stream> connect(const address& to);

    /// The first of several addresses that answers: the next one is tried when one has failed, or
    /// not answered for that long (RFC 8305); those that lose are closed. The order is the
    /// caller's.
    /// Suspends: maybe. Cancel: reported; no connection is left. From: any fiber or thread. Fails:
    /// as the last one did; std::errc::invalid_argument if there is none.
    [[nodiscard]] static result<tcp_stream> connect(
        std::span<const address> to,
        std::chrono::milliseconds stagger = std::chrono::milliseconds(250));

    /// TCP_NODELAY: small pieces are sent at once. Accepted and connected ones have it set.
    [[nodiscard]] result<void> set_no_delay(bool on);
    /// SO_KEEPALIVE.
    [[nodiscard]] result<void> set_keep_alive(bool on);
    /// SO_LINGER with 0: close() resets the connection, and what was not sent is dropped.
    [[nodiscard]] result<void> set_reset_on_close(bool on);
};

/// Who accepts them. Thread-safe: as descriptor; accept() is a read.
class tcp_listener : public listener_socket {
public:
    /// None.
    tcp_listener() noexcept = default;

    /// Port 0: one that is free; local_address() says which.
    /// Suspends: never. From: any fiber or thread. Fails: as socket(2), bind(2), listen(2) do
    /// (std::errc::address_in_use).
    [[nodiscard]] static result<tcp_listener> bind(const address& where,
                                                   const listen_options& options = {});

    /// The next connection. Goes on over connections that ended meanwhile; when there are no
    /// descriptors or no memory, it pauses, counts that, and tries again.
    /// Suspends: maybe. Cancel: reported; no connection is lost. From: any fiber or thread. Fails:
    /// as accept4(2) does otherwise; errc::closed.
    [[nodiscard]] result<tcp_stream> accept();
    /// The same, and who it is.
    [[nodiscard]] result<tcp_stream> accept(address& from);

private:
    using listener_socket::listener_socket;
};

}  // namespace weft::inline v0::io
