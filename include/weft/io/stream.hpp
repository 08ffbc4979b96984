// stream.hpp - what is read from and written to in order: the concept, and what is made of its few
// operations.
//
// A byte_stream reads some, writes some, ends its sending side, and closes. tcp_stream,
// unix_stream, memory_stream are such, and TLS will be. The rest is here, written once: as
// functions over any of them, as members of those that derive from stream_operations, and
// buffered_reader, which reads until something.
//
// No byte is lost when an operation is cancelled in its middle: those that may have moved some
// tell how many through `done`, or keep them (buffered_reader).
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <weft/io/result.hpp>

namespace weft::inline v0 {

namespace detail {

/// move(some) of what is left of the buffers from `done` on, until nothing is.
template <class Byte, class Move>
[[nodiscard]] io::result<void> move_all(std::span<const std::span<Byte>> buffers, std::size_t& done,
                                        Move move) {
    std::size_t skipped = done;
    for (;;) {
        while (!buffers.empty() && skipped >= buffers[0].size()) {
            skipped -= buffers[0].size();
            buffers = buffers.subspan(1);
        }
        if (buffers.empty()) return {};
        std::array<std::span<Byte>, 64> some;
        const std::size_t count = std::min(some.size(), buffers.size());
        std::copy_n(buffers.begin(), count, some.begin());
        some[0] = some[0].subspan(skipped);
        const io::result<std::size_t> moved =
            move(std::span<const std::span<Byte>>(some).first(count));
        if (!moved) return std::unexpected(moved.error());
        done += *moved;
        skipped += *moved;
    }
}

}  // namespace detail

namespace io {

/// read_some() gives what is there, and 0 at the end, or if no bytes are asked for.
template <class S>
concept byte_reader = requires(S& stream, std::span<std::byte> buffer) {
    { stream.read_some(buffer) } -> std::same_as<result<std::size_t>>;
};

/// write_some() takes at least one byte of those that it is given.
template <class S>
concept byte_writer = requires(S& stream, std::span<const std::byte> bytes) {
    { stream.write_some(bytes) } -> std::same_as<result<std::size_t>>;
};

/// read_some() gives what is there, and 0 at the end; write_some() takes at least one byte;
/// shutdown_write() tells the other side that no more will come; close() wakes whoever waits.
template <class S>
concept byte_stream = byte_reader<S> && byte_writer<S> && requires(S& stream) {
    { stream.shutdown_write() } -> std::same_as<result<void>>;
    stream.close();
};

/// The bytes of a text.
[[nodiscard]] inline std::span<const std::byte> bytes_of(std::string_view text) noexcept {
    return std::as_bytes(std::span(text.data(), text.size()));
}

/// Fills the buffer from `done` on, which says afterwards how much of it is filled, also if it
/// failed: go on with the same two.
/// Suspends: maybe. Cancel: reported. From: as the stream's. Fails: as read_some() does;
/// errc::end_of_stream.
template <byte_reader S>
[[nodiscard]] result<void> read_exactly(S& stream, std::span<std::byte> buffer, std::size_t& done) {
    while (done < buffer.size()) {
        const result<std::size_t> got = stream.read_some(buffer.subspan(done));
        if (!got) return std::unexpected(got.error());
        if (*got == 0) return std::unexpected(make_error_code(errc::end_of_stream));
        done += *got;
    }
    return {};
}
template <byte_reader S>
[[nodiscard]] result<void> read_exactly(S& stream, std::span<std::byte> buffer) {
    std::size_t done = 0;
    return read_exactly(stream, buffer, done);
}

/// Writes what is left of the bytes from `done` on, which says afterwards how many were written,
/// also if it failed.
/// Suspends: maybe. Cancel: reported. From: as the stream's. Fails: as write_some() does.
template <byte_writer S>
[[nodiscard]] result<void> write_all(S& stream, std::span<const std::byte> bytes,
                                     std::size_t& done) {
    while (done < bytes.size()) {
        const result<std::size_t> put = stream.write_some(bytes.subspan(done));
        if (!put) return std::unexpected(put.error());
        done += *put;
    }
    return {};
}
template <byte_writer S>
[[nodiscard]] result<void> write_all(S& stream, std::span<const std::byte> bytes) {
    std::size_t done = 0;
    return write_all(stream, bytes, done);
}
template <byte_writer S>
[[nodiscard]] result<void> write_all(S& stream, std::string_view text) {
    return write_all(stream, bytes_of(text));
}

/// The same for several buffers, as one: with as few calls as may be.
template <class S>
    requires requires(S& stream, std::span<const std::span<const std::byte>> buffers) {
        stream.write_some(buffers);
    }
[[nodiscard]] result<void> write_all(S& stream, std::span<const std::span<const std::byte>> buffers,
                                     std::size_t& done) {
    return detail::move_all(buffers, done, [&](auto some) { return stream.write_some(some); });
}

/// read_exactly() into several buffers, as one: with as few calls as may be.
template <class S>
    requires requires(S& stream, std::span<const std::span<std::byte>> buffers) {
        stream.read_some(buffers);
    }
[[nodiscard]] result<void> read_exactly(S& stream, std::span<const std::span<std::byte>> buffers,
                                        std::size_t& done) {
    return detail::move_all(buffers, done, [&](auto some) -> result<std::size_t> {
        const result<std::size_t> got = stream.read_some(some);
        if (got && *got == 0) return std::unexpected(make_error_code(errc::end_of_stream));
        return got;
    });
}

/// The members that what can be read has in common. Derived is the stream.
template <class Derived>
class reader_operations {
public:
    /// As io::read_exactly().
    [[nodiscard]] result<void> read_exactly(std::span<std::byte> buffer) {
        return io::read_exactly(self(), buffer);
    }
    [[nodiscard]] result<void> read_exactly(std::span<std::byte> buffer, std::size_t& done) {
        return io::read_exactly(self(), buffer, done);
    }
    [[nodiscard]] result<void> read_exactly(std::span<const std::span<std::byte>> buffers) {
        std::size_t done = 0;
        return io::read_exactly(self(), buffers, done);
    }
    [[nodiscard]] result<void> read_exactly(std::span<const std::span<std::byte>> buffers,
                                            std::size_t& done) {
        return io::read_exactly(self(), buffers, done);
    }

private:
    [[nodiscard]] Derived& self() noexcept { return static_cast<Derived&>(*this); }
};

/// The same for what can be written.
template <class Derived>
class writer_operations {
public:
    /// As io::write_all().
    [[nodiscard]] result<void> write_all(std::span<const std::byte> bytes) {
        return io::write_all(self(), bytes);
    }
    [[nodiscard]] result<void> write_all(std::span<const std::byte> bytes, std::size_t& done) {
        return io::write_all(self(), bytes, done);
    }
    [[nodiscard]] result<void> write_all(std::string_view text) {
        return io::write_all(self(), text);
    }
    [[nodiscard]] result<void> write_all(std::span<const std::span<const std::byte>> buffers) {
        std::size_t done = 0;
        return io::write_all(self(), buffers, done);
    }
    [[nodiscard]] result<void> write_all(std::span<const std::span<const std::byte>> buffers,
                                         std::size_t& done) {
        return io::write_all(self(), buffers, done);
    }

private:
    [[nodiscard]] Derived& self() noexcept { return static_cast<Derived&>(*this); }
};

/// Both.
template <class Derived>
class stream_operations : public reader_operations<Derived>, public writer_operations<Derived> {};

/// Reads ahead into a buffer of its own, so that a line or a record can be asked for. What came
/// before a failure or a cancellation stays in it. It refers to the stream, which must outlive it.
template <byte_reader S>
class buffered_reader {
public:
    /// `limit`: how long a record may be; the buffer grows up to that.
    explicit buffered_reader(S& stream, std::size_t limit = 64 * 1024)
        : stream_(stream), limit_(std::max<std::size_t>(limit, 1)) {}

    /// What is buffered, else what read_some() gives.
    [[nodiscard]] result<std::size_t> read_some(std::span<std::byte> buffer) {
        if (available().empty()) return stream_.read_some(buffer);
        const std::size_t count = std::min(buffer.size(), available().size());
        if (count != 0) std::memcpy(buffer.data(), available().data(), count);
        consume(count);
        return count;
    }

    /// Up to and with the delimiter. What is returned stays valid until the next call.
    /// Suspends: maybe. Cancel: reported; what came stays for the next call. From: as the
    /// stream's. Fails: as read_some() does; errc::end_of_stream if the stream ends before it (what
    /// came is in available()); std::errc::message_size if it is not within the limit.
    [[nodiscard]] result<std::string_view> read_until(std::string_view delimiter) {
        std::size_t seen = 0;
        for (;;) {
            const std::string_view all = text();
            if (const std::size_t at = all.find(delimiter, seen); at != all.npos)
                return take(at + delimiter.size());
            if (all.size() >= limit_)
                return std::unexpected(std::make_error_code(std::errc::message_size));
            seen = all.size() < delimiter.size() ? 0 : all.size() - delimiter.size() + 1;
            if (const result<void> more = fill(); !more) return std::unexpected(more.error());
        }
    }

    /// Exactly that many bytes, at most the limit. What is returned stays valid until the next
    /// call. The contract otherwise: as read_until().
    [[nodiscard]] result<std::string_view> read_exactly(std::size_t count) {
        if (count > limit_) return std::unexpected(std::make_error_code(std::errc::message_size));
        while (available().size() < count)
            if (const result<void> more = fill(); !more) return std::unexpected(more.error());
        return take(count);
    }

    /// Until there are more bytes in available().
    /// Suspends: maybe. Cancel: reported, and nothing came. From: as the stream's. Fails: as
    /// read_some() does; errc::end_of_stream; std::errc::message_size if the limit is reached.
    [[nodiscard]] result<void> read_ahead() {
        if (available().size() >= limit_)
            return std::unexpected(std::make_error_code(std::errc::message_size));
        return fill();
    }

    /// Read ahead and not consumed yet.
    [[nodiscard]] std::span<const std::byte> available() const noexcept {
        return std::span(buffer_).first(end_).subspan(begin_);
    }
    /// So many of those are done with.
    void consume(std::size_t count) noexcept { begin_ += std::min(count, end_ - begin_); }

private:
    [[nodiscard]] std::string_view text() const noexcept {
        return {reinterpret_cast<const char*>(buffer_.data()) + begin_, end_ - begin_};
    }
    [[nodiscard]] std::string_view take(std::size_t count) noexcept {
        const std::string_view taken = text().substr(0, count);
        begin_ += count;
        return taken;
    }
    [[nodiscard]] result<void> fill() {
        make_room();
        const auto room = std::span(buffer_).subspan(end_);
        const result<std::size_t> got = stream_.read_some(room);
        if (!got) return std::unexpected(got.error());
        if (*got == 0) return std::unexpected(make_error_code(errc::end_of_stream));
        end_ += *got;
        has_been_full_ = *got == room.size();
        return {};
    }
    // Of a stream that has more to give than there was room for, more is read ahead.
    void make_room() {
        if (begin_ != 0) std::memmove(buffer_.data(), available().data(), available().size());
        end_ -= std::exchange(begin_, 0);
        if (end_ == buffer_.size() || (has_been_full_ && buffer_.size() < most_ahead))
            buffer_.resize(std::min(limit_, std::max<std::size_t>(512, 2 * buffer_.size())));
    }

    static constexpr std::size_t most_ahead = 16 * 1024;

    S& stream_;
    const std::size_t limit_;
    std::vector<std::byte> buffer_;
    std::size_t begin_ = 0;  // of what is not consumed
    std::size_t end_ = 0;
    bool has_been_full_ = false;  // by the last read
};

}  // namespace io
}  // namespace weft::inline v0
