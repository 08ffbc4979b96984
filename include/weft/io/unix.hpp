// unix.hpp - sockets within one machine: listeners, connections, and connected pairs.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include <weft/io/socket.hpp>

namespace weft::inline v0::io {

/// A connection within this machine. Thread-safe: as descriptor.
class unix_stream : public stream_socket {
public:
    /// None.
    unix_stream() noexcept = default;
    explicit unix_stream(descriptor connected) noexcept
        : stream_socket(std::move(connected), short_read::says_nothing) {}

    /// A full backlog at the other side makes it wait, in growing steps of up to 16 ms.
    /// Suspends: maybe. Cancel: reported; no connection is left. From: any fiber or thread. Fails:
    /// as connect(2) does (std::errc::connection_refused, no_such_file_or_directory).
    [[nodiscard]] static result<unix_stream> connect(const address& to);

    /// Two that are connected with each other.
    /// Suspends: never. From: any fiber or thread. Fails: as socketpair(2) does.
    [[nodiscard]] static result<std::pair<unix_stream, unix_stream>> pair();
};

/// A path that it was bound to stays in the file system: remove it before, or after.
class unix_listener : public listener_socket {
public:
    /// None.
    unix_listener() noexcept = default;

    /// Suspends: never. From: any fiber or thread. Fails: as socket(2), bind(2), listen(2) do
    /// (std::errc::address_in_use).
    [[nodiscard]] static result<unix_listener> bind(const address& where,
                                                    const listen_options& options = {});

    /// As tcp_listener::accept().
    [[nodiscard]] result<unix_stream> accept();

private:
    using listener_socket::listener_socket;
};

}  // namespace weft::inline v0::io
