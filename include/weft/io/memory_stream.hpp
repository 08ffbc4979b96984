// memory_stream.hpp - a connection within the process, without the operating system: for tests.
//
//     auto [here, there] = io::memory_stream::pair();
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include <weft/io/stream.hpp>

namespace weft::inline v0 {

namespace detail {
class byte_queue;  // src/io/byte_queue.hpp
}

namespace io {

/// As a socket: two may use it at once, one reading, one writing; a second reader or writer that
/// has to wait aborts; close() wakes both. Thread-safe: a reader, a writer and close(), at once.
class memory_stream : public stream_operations<memory_stream> {
public:
    /// None.
    memory_stream() noexcept = default;
    memory_stream(memory_stream&&) noexcept = default;
    memory_stream& operator=(memory_stream&& other) noexcept;
    /// close()
    ~memory_stream();

    /// Two that are connected; each direction holds that many bytes, at least one.
    [[nodiscard]] static std::pair<memory_stream, memory_stream> pair(std::size_t capacity = 65536);

    /// Bytes that are there; 0: the other side has ended its sending.
    /// Suspends: maybe. Cancel: reported, and nothing was read. From: any fiber or thread. Fails:
    /// errc::closed.
    [[nodiscard]] result<std::size_t> read_some(std::span<std::byte> buffer);
    /// Into several buffers. The same otherwise.
    [[nodiscard]] result<std::size_t> read_some(std::span<const std::span<std::byte>> buffers);
    /// As many bytes as there is room for, at least one (none, if there are none).
    /// Suspends: maybe. Cancel: reported, and nothing was written. From: any fiber or thread.
    /// Fails: std::errc::broken_pipe, if the other side is closed, or after shutdown_write();
    /// errc::closed.
    [[nodiscard]] result<std::size_t> write_some(std::span<const std::byte> bytes);
    /// From several buffers. The same otherwise.
    [[nodiscard]] result<std::size_t> write_some(
        std::span<const std::span<const std::byte>> buffers);

    /// Also whoever waits to write hears of it.
    /// Suspends: never. From: any fiber or thread. Fails: errc::closed.
    [[nodiscard]] result<void> shutdown_write();
    /// Suspends: never. From: any fiber or thread. Fails: never.
    void close() noexcept;

private:
    std::shared_ptr<detail::byte_queue> in_;
    std::shared_ptr<detail::byte_queue> out_;
};

}  // namespace io
}  // namespace weft::inline v0
