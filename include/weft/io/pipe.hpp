// pipe.hpp - a pipe: what is written at one end is read at the other.
//
//     auto [reader, writer] = io::pipe::make().value();
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include <weft/io/descriptor.hpp>
#include <weft/io/stream.hpp>

namespace weft::inline v0::io {

/// Thread-safe: as descriptor.
class pipe_reader : public reader_operations<pipe_reader> {
public:
    /// None.
    pipe_reader() noexcept = default;
    explicit pipe_reader(descriptor end) noexcept : end_(std::move(end)) {}

    /// The contract: as descriptor's.
    [[nodiscard]] result<std::size_t> read_some(std::span<std::byte> buffer) {
        return end_.read_some(buffer);
    }
    [[nodiscard]] result<std::size_t> read_some(std::span<const std::span<std::byte>> buffers) {
        return end_.read_some(buffers);
    }
    /// Whoever writes gets std::errc::broken_pipe, whoever waits here errc::closed.
    /// Suspends: never. From: any fiber or thread. Fails: never.
    void close() noexcept { end_.close(); }
    /// -1: none, or closed.
    [[nodiscard]] int native_handle() const noexcept { return end_.native_handle(); }
    [[nodiscard]] explicit operator bool() const noexcept { return bool(end_); }
    /// To wait for it by hand, or to take the number out.
    [[nodiscard]] descriptor& get_descriptor() noexcept { return end_; }

private:
    descriptor end_;
};

/// Thread-safe: as descriptor.
class pipe_writer : public writer_operations<pipe_writer> {
public:
    /// None.
    pipe_writer() noexcept = default;
    explicit pipe_writer(descriptor end) noexcept : end_(std::move(end)) {}

    /// The contract: as descriptor's.
    [[nodiscard]] result<std::size_t> write_some(std::span<const std::byte> bytes) {
        return end_.write_some(bytes);
    }
    [[nodiscard]] result<std::size_t> write_some(
        std::span<const std::span<const std::byte>> buffers) {
        return end_.write_some(buffers);
    }
    /// The reader reads 0 once it has read all; whoever waits here gets errc::closed.
    /// Suspends: never. From: any fiber or thread. Fails: never.
    void close() noexcept { end_.close(); }
    /// -1: none, or closed.
    [[nodiscard]] int native_handle() const noexcept { return end_.native_handle(); }
    [[nodiscard]] explicit operator bool() const noexcept { return bool(end_); }
    /// To wait for it by hand, or to take the number out.
    [[nodiscard]] descriptor& get_descriptor() noexcept { return end_; }

private:
    descriptor end_;
};

/// The two ends.
struct pipe {
    pipe_reader reader;  // gets what
    pipe_writer writer;  // is given here

    /// Suspends: never. From: any fiber or thread. Fails: as pipe2(2) does.
    [[nodiscard]] static result<pipe> make();
};

}  // namespace weft::inline v0::io
