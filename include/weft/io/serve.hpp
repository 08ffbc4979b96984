// serve.hpp - a server in one call: accept, limits, deadlines, and a stop that finishes what is
// under way.
//
//     io::serve(listener, [](io::connection<io::tcp_stream>& peer) {
//         while (auto line = peer.read_line())
//             if (!peer.write_all(answer(*line))) return;
//     }, {.connections = 1000, .idle = 30s});
//
// It runs until its fiber is cancelled or the listener is closed. Then nobody is accepted any more;
// a connection that waits for its next request sees the end, one in the middle of a request goes
// on, and those that are left after the grace are cancelled. Handlers are fibers, dealt out to the
// workers in turn, each of which stays where its connection is.
//
// A listener is whatever has accept(), which obeys cancellation and gives a result<> of byte
// streams, so memory_stream does, too. With sockets nothing is read before the handler asks, and an
// idle time costs no scope.
//
// How the pieces meet is told in detail/serving.hpp.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include <weft/fiber/cancel.hpp>
#include <weft/io/detail/serving.hpp>
#include <weft/io/serve_limits.hpp>
#include <weft/io/stream.hpp>

namespace weft::inline v0 {

namespace detail {

/// One that can be waited for without being read, and told that nothing more is to be read.
template <class S>
concept socket_like = requires(S& stream, time_point deadline) {
    { stream.wait_readable(deadline) } -> std::same_as<io::result<void>>;
    { stream.wait_writable(deadline) } -> std::same_as<io::result<void>>;
    { stream.shutdown_read() } -> std::same_as<io::result<void>>;
};

/// A stream whose reads and writes have the server's idle time.
template <class Stream>
struct patient_stream {
    [[nodiscard]] io::result<std::size_t> read_some(std::span<std::byte> buffer) {
        if (buffer.empty()) return stream.read_some(buffer);
        if constexpr (!socket_like<Stream>) {
            return by.in_idle_time([&] { return stream.read_some(buffer); });
        } else {
            if (const io::result<void> ready = stream.wait_readable(by.idle_deadline()); !ready)
                return std::unexpected(ready.error());
            return stream.read_some(buffer);
        }
    }
    [[nodiscard]] io::result<std::size_t> write_some(std::span<const std::byte> bytes) {
        if (bytes.empty()) return stream.write_some(bytes);
        if constexpr (!socket_like<Stream>) {
            return by.in_idle_time([&] { return stream.write_some(bytes); });
        } else {
            if (const io::result<void> ready = stream.wait_writable(by.idle_deadline()); !ready)
                return std::unexpected(ready.error());
            return stream.write_some(bytes);
        }
    }

    Stream stream;
    serving& by;
};

}  // namespace detail

namespace io {

/// What a handler gets: the stream, with the deadlines of the server, and lines. A byte_stream.
/// Thread-safe: as the stream's; read_line() counts as reading.
template <class Stream>
class connection final : public detail::served, public stream_operations<connection<Stream>> {
public:
    connection(Stream stream, detail::serving& by)
        : stream_{std::move(stream), by}, reader_(stream_, by.limits.line) {}

    /// The next line, without its end ("\n" or "\r\n"); valid until the next call.
    /// Suspends: maybe. Cancel: reported. From: the handler. Fails: as read_some();
    /// errc::end_of_stream also when the server stops; std::errc::message_size if it is longer
    /// than the limit.
    [[nodiscard]] result<std::string_view> read_line() {
        if (const result<void> next = wait_for_request(); !next)
            return std::unexpected(next.error());
        const result<std::string_view> line = reader_.read_until("\n");
        if (!line) return line;
        const std::size_t end = line->ends_with("\r\n") ? 2 : 1;
        return line->substr(0, line->size() - end);
    }

    /// Until the first byte of a request is there. Between requests the server may stop.
    /// Suspends: maybe. Cancel: reported. From: the handler. Fails: errc::end_of_stream, when the
    /// server stops; std::errc::timed_out, when it was idle for too long.
    [[nodiscard]] result<void> wait_for_request() {
        const auto ended = std::unexpected(make_error_code(errc::end_of_stream));
        if (is_stopping()) return ended;
        if (!reader_.available().empty()) return {};
        if constexpr (detail::socket_like<Stream>) {
            if (!begin_idle()) return ended;
            const result<void> ready = stream_.stream.wait_readable(stream_.by.idle_deadline());
            if (!end_idle()) return ended;
            return ready;
        } else {
            const result<void> ready = read_ahead();
            if (is_stopping()) return ended;
            return ready;
        }
    }

    /// As the stream's; what read_line() has read ahead comes first. Fails: std::errc::timed_out,
    /// too, when nothing came, or nothing was taken, for the server's idle time.
    [[nodiscard]] result<std::size_t> read_some(std::span<std::byte> buffer) {
        return reader_.read_some(buffer);
    }
    /// As the stream's. Fails: std::errc::timed_out, too, as read_some().
    [[nodiscard]] result<std::size_t> write_some(std::span<const std::byte> bytes) {
        return stream_.write_some(bytes);
    }
    /// As the stream's.
    [[nodiscard]] result<void> shutdown_write() { return stream_.stream.shutdown_write(); }
    /// As the stream's.
    void close() noexcept { stream_.stream.close(); }

    /// The stream itself, without the deadlines of the server. What read_line() has read ahead is
    /// no more in it.
    [[nodiscard]] Stream& stream() noexcept { return stream_.stream; }

private:
    void interrupt() noexcept override {
        if constexpr (detail::socket_like<Stream>)
            static_cast<void>(stream_.stream.shutdown_read());
        else
            idle_->cancel();
    }
    // Of the wait for a request, which interrupt() ends.
    [[nodiscard]] result<void> read_ahead() {
        struct idle_scope {
            explicit idle_scope(connection& c) : of(c) {
                of.idle_.emplace();
                begun = of.begin_idle();
            }
            idle_scope(const idle_scope&) = delete;
            idle_scope& operator=(const idle_scope&) = delete;
            ~idle_scope() {
                if (!of.end_idle()) of.stream_.by.wait_until_interrupted();
                of.idle_.reset();
            }
            connection& of;
            bool begun = false;
        };
        const idle_scope idle(*this);
        return idle.begun ? reader_.read_ahead() : result<void>();
    }

    std::optional<cancel_scope> idle_;
    detail::patient_stream<Stream> stream_;
    buffered_reader<detail::patient_stream<Stream>> reader_;
};

/// Returns when all connections have ended; what it says is why it stopped and what it did.
/// Suspends: always. Cancel: it stops as described, and says so in the report. From: a fiber;
/// elsewhere it aborts.
/// Fails: what a handler threw (but `cancelled`) stops the server and comes out; std::bad_alloc;
/// std::invalid_argument for limits that make no sense.
template <class Listener, class Handler>
serve_report serve(Listener& listener, Handler handler, const serve_limits& limits = {}) {
    using accepted = decltype(listener.accept());
    using stream = typename accepted::value_type;
    static_assert(std::invocable<Handler&, connection<stream>&>,
                  "serve: the handler takes a connection<> of the listener's streams");
    // On the heap, as everything that is shared here: this fiber may be a swapped one.
    const auto server = std::make_unique<detail::serving>(limits);
    const auto handle = std::make_shared<Handler>(std::move(handler));
    server->begin();
    while (server->take_place(listener)) {
        accepted peer = listener.accept();
        if (!peer) {
            server->stop(peer.error());
            break;
        }
        server->start([server = server.get(), handle, peer = std::move(*peer)]() mutable {
            const auto mine = std::make_unique<connection<stream>>(std::move(peer), *server);
            server->run(*mine, [&] {
                std::invoke(*handle, *mine);
                if constexpr (requires { server->linger(mine->stream().get_descriptor()); })
                    server->linger(mine->stream().get_descriptor());
            });
        });
    }
    return server->finish();
}

}  // namespace io
}  // namespace weft::inline v0
