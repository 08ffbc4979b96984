// standard_streams.hpp - the program's own input and output, whatever they are.
//
//     io::buffered_reader lines(io::standard_input());
//     while (auto line = lines.read_until("\n")) io::standard_output().write_all(*line).value();
//
// They may be terminals, pipes, sockets or files. Other programs may have them, too: so they are
// not made non-blocking, which would hold for those as well. What can be waited for is waited for
// and then used in pieces that do not block; files go through a side pool. Where two programs read
// one terminal, or one pipe by name, what the other took away first may hold up a worker.
//
// They are for as long as the program runs: with io_uring the kernel keeps one open that has been
// waited on, though its number be closed, and whoever reads at the other side sees no end.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include <weft/io/descriptor.hpp>
#include <weft/io/stream.hpp>
#include <weft/sync/mutex.hpp>

namespace weft::inline v0 {

namespace detail {
/// One of them, and how it is used.
struct standard_descriptor {
    standard_descriptor(int number, io::direction used);
    enum class kind : unsigned char { file, pipe, terminal, socket };

    const int number;
    const kind what;
    io::descriptor watched;  // not for files
};
}  // namespace detail

namespace io {

/// Thread-safe: one reader at a time.
class standard_reader {
public:
    explicit standard_reader(int number) : from_(number, direction::read) {}
    standard_reader(const standard_reader&) = delete;
    standard_reader& operator=(const standard_reader&) = delete;

    /// Bytes that are there; 0: no more will come.
    /// Suspends: maybe. Cancel: reported, and nothing was read. From: any fiber or thread. Fails:
    /// as read(2) does.
    [[nodiscard]] result<std::size_t> read_some(std::span<std::byte> buffer);

private:
    detail::standard_descriptor from_;
};

/// Thread-safe.
class standard_writer {
public:
    explicit standard_writer(int number) : to_(number, direction::write) {}
    standard_writer(const standard_writer&) = delete;
    standard_writer& operator=(const standard_writer&) = delete;

    /// At least one byte, if there are any.
    /// Suspends: maybe. Cancel: reported, and nothing was written. From: any fiber or thread.
    /// Fails: as write(2) does (std::errc::broken_pipe, without a signal).
    [[nodiscard]] result<std::size_t> write_some(std::span<const std::byte> bytes);
    /// In one piece: nothing of another write_all() comes in between. From `done` on, which says
    /// afterwards how much was written, also if it failed.
    /// Suspends: maybe. Cancel: reported; then some of it may be written. From: any fiber or
    /// thread. Fails: as write_some().
    [[nodiscard]] result<void> write_all(std::span<const std::byte> bytes, std::size_t& done);
    [[nodiscard]] result<void> write_all(std::span<const std::byte> bytes) {
        std::size_t done = 0;
        return write_all(bytes, done);
    }
    [[nodiscard]] result<void> write_all(std::string_view text) {
        return write_all(bytes_of(text));
    }

private:
    [[nodiscard]] result<std::size_t> put(std::span<const std::byte> bytes);

    timed_mutex turn_;  // of those who write
    detail::standard_descriptor to_;
};

/// Number 0. Made at the first call, and never destroyed.
[[nodiscard]] standard_reader& standard_input();
/// Number 1. Made at the first call, and never destroyed.
[[nodiscard]] standard_writer& standard_output();
/// Number 2. Made at the first call, and never destroyed.
[[nodiscard]] standard_writer& standard_error();

}  // namespace io
}  // namespace weft::inline v0
