// socket.hpp - what the sockets have in common; see tcp.hpp, unix.hpp and udp.hpp for the kinds.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include <weft/io/address.hpp>
#include <weft/io/descriptor.hpp>
#include <weft/io/stream.hpp>

namespace weft::inline v0::detail {

/// Of what happens to one, for whoever looks meanwhile. Moved as the object that it belongs to:
/// with nobody inside.
class event_counter {
public:
    event_counter() noexcept = default;
    event_counter(event_counter&& other) noexcept : count_(other.get()) {}
    event_counter& operator=(event_counter&& other) noexcept {
        count_.store(other.get(), std::memory_order_relaxed);
        return *this;
    }
    void add() noexcept { count_.fetch_add(1, std::memory_order_relaxed); }
    [[nodiscard]] std::uint64_t get() const noexcept {
        return count_.load(std::memory_order_relaxed);
    }

private:
    std::atomic<std::uint64_t> count_ = 0;
};

}  // namespace weft::inline v0::detail

namespace weft::inline v0::io {

/// Thread-safe: as descriptor.
class socket_base {
public:
    /// Whoever waits gets errc::closed. Suspends: never. From: any fiber or thread. Fails: never.
    void close() noexcept { descriptor_.close(); }

    /// Where it is bound to. Suspends: never. From: any fiber or thread. Fails: as getsockname(2)
    /// does; errc::closed.
    [[nodiscard]] result<address> local_address() const;
    /// With whom it is connected. Suspends: never. From: any fiber or thread. Fails: as
    /// getpeername(2) does (std::errc::not_connected); errc::closed.
    [[nodiscard]] result<address> peer_address() const;

    /// An option of the operating system, as setsockopt(2) takes it.
    /// Suspends: never. From: any fiber or thread. Fails: as that does; errc::closed.
    [[nodiscard]] result<void> set_option(int level, int name, int value);
    /// What getsockopt(2) says of one. The contract: as set_option().
    [[nodiscard]] result<int> option(int level, int name) const;
    /// SO_RCVBUF: so much may wait to be read; the system doubles it and has a limit. The contract:
    /// as set_option().
    [[nodiscard]] result<void> set_receive_buffer(std::size_t bytes);
    /// SO_SNDBUF: so much may wait to be sent. The same otherwise.
    [[nodiscard]] result<void> set_send_buffer(std::size_t bytes);

    /// -1: closed, or none. It stays the property of this object.
    [[nodiscard]] int native_handle() const noexcept { return descriptor_.native_handle(); }
    /// False: closed, or none.
    [[nodiscard]] explicit operator bool() const noexcept { return bool(descriptor_); }
    /// To wait for it by hand, or to take the number out.
    [[nodiscard]] descriptor& get_descriptor() noexcept { return descriptor_; }

protected:
    socket_base() noexcept = default;
    explicit socket_base(descriptor taken) noexcept : descriptor_(std::move(taken)) {}
    socket_base(socket_base&&) noexcept = default;
    socket_base& operator=(socket_base&&) noexcept = default;
    ~socket_base() = default;

    descriptor descriptor_;
};

/// A connection. Two fibers may use it at once, one reading, one writing.
class stream_socket : public socket_base, public stream_operations<stream_socket> {
public:
    /// Bytes that are there; 0: the other side has ended its sending.
    /// Suspends: maybe. Cancel: reported, and nothing was read. From: any fiber or thread. Fails:
    /// as recv(2) does (std::errc::connection_reset); errc::closed.
    [[nodiscard]] result<std::size_t> read_some(std::span<std::byte> buffer);
    [[nodiscard]] result<std::size_t> read_some(std::span<const std::span<std::byte>> buffers);

    /// As many bytes as there is room for, at least one (none, if there are none).
    /// Suspends: maybe. Cancel: reported, and nothing was written. From: any fiber or thread.
    /// Fails: as send(2) does (std::errc::broken_pipe, without a signal); errc::closed.
    [[nodiscard]] result<std::size_t> write_some(std::span<const std::byte> bytes);
    [[nodiscard]] result<std::size_t> write_some(
        std::span<const std::span<const std::byte>> buffers);

    /// Until bytes, or the end, are there: so that a buffer need not be held meanwhile.
    /// Suspends: maybe. Cancel: reported. From: any fiber or thread. Fails: std::errc::timed_out;
    /// errc::closed.
    [[nodiscard]] result<void> wait_readable(time_point deadline = no_deadline) {
        return descriptor_.wait_readable(deadline);
    }
    /// Until there is room for bytes to send. The contract: as wait_readable().
    [[nodiscard]] result<void> wait_writable(time_point deadline = no_deadline) {
        return descriptor_.wait_writable(deadline);
    }

    /// No more will be sent: the other side reads 0. Suspends: never. From: any fiber or thread.
    /// Fails: as shutdown(2) does; errc::closed.
    [[nodiscard]] result<void> shutdown_write();
    /// No more is wanted: reads say 0.
    [[nodiscard]] result<void> shutdown_read();

protected:
    stream_socket() noexcept = default;
    /// Whether a read that gives less than asked for has emptied it. Of a local socket that cannot
    /// be said: descriptors on their way to us end a read, too.
    enum class short_read : bool { says_nothing, says_empty };
    stream_socket(descriptor taken, short_read how) noexcept
        : socket_base(std::move(taken)), short_read_(how) {}
    stream_socket(stream_socket&&) noexcept = default;
    stream_socket& operator=(stream_socket&&) noexcept = default;
    ~stream_socket() = default;

private:
    short_read short_read_ = short_read::says_nothing;
};

/// How a listener is made.
struct listen_options {
    /// How many connections may wait to be accepted; the system has a limit, too.
    int backlog = 1024;
    /// SO_REUSEADDR: the port of a server that ended a moment ago may be bound again.
    bool reuse_address = true;
    /// SO_REUSEPORT: several listeners share the port, and the system spreads connections.
    bool reuse_port = false;
    /// An IPv6 listener takes no IPv4 connections. If not, it does, whatever the system's default.
    bool ipv6_only = false;
    /// How long accept() pauses when there are no descriptors or no memory; doubled each time, up
    /// to a hundred times that.
    std::chrono::milliseconds pause{10};
};

/// Those who accept connections.
class listener_socket : public socket_base {
public:
    /// How often accept() had to pause because descriptors or memory were not to be had.
    /// Suspends: never. From: any fiber or thread, also while somebody accepts. Fails: never.
    [[nodiscard]] std::uint64_t pauses() const noexcept { return pauses_.get(); }
    /// How many connections had ended before they were accepted. The contract: as pauses().
    [[nodiscard]] std::uint64_t aborted() const noexcept { return aborted_.get(); }

protected:
    listener_socket() noexcept = default;
    listener_socket(descriptor taken, const listen_options& options) noexcept
        : socket_base(std::move(taken)), pause_(options.pause) {}
    listener_socket(listener_socket&&) noexcept = default;
    listener_socket& operator=(listener_socket&&) noexcept = default;
    ~listener_socket() = default;

    [[nodiscard]] static result<descriptor> bind_and_listen(const address& where,
                                                            const listen_options& options) noexcept;
    /// `from`, if given: who it is.
    [[nodiscard]] result<descriptor> accept_descriptor(address* from);

private:
    std::chrono::milliseconds pause_{10};
    detail::event_counter pauses_;
    detail::event_counter aborted_;
};

}  // namespace weft::inline v0::io
