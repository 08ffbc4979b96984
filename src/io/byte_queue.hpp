// byte_queue.hpp - one direction of a memory_stream: a ring of bytes, one reader, one writer.
//
//   reads                                          writes
//   lock; bytes? take them, claim the writer       lock; room? put them, claim the reader
//         none: be the one who waits                     none: be the one who waits
//   unlock; wake whom was claimed                  unlock; wake whom was claimed
//
// Both sides do everything under one lock, which is held for a copy of at most a few KB at a time
// and never over a wait or a wake.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include <weft/fiber/suspend.hpp>
#include <weft/io/descriptor.hpp>

#include "base/spin_lock.hpp"

namespace weft::inline v0::detail {

class byte_queue {
public:
    explicit byte_queue(std::size_t capacity)
        : bytes_(std::make_unique<std::byte[]>(capacity)), capacity_(capacity) {}

    /// Into the buffers, one after another; nothing is read if they have no room.
    [[nodiscard]] io::result<std::size_t> read(std::span<const std::span<std::byte>> buffers);
    [[nodiscard]] io::result<std::size_t> write(
        std::span<const std::span<const std::byte>> buffers);
    /// No more will be written.
    void end() noexcept;
    /// By one of its two sides.
    void close(io::direction side) noexcept;
    [[nodiscard]] bool is_closed(io::direction side) noexcept;

private:
    struct side {
        waiter* waiting = nullptr;
        bool closed = false;
    };
    [[nodiscard]] side& of(io::direction which) noexcept {
        return sides_[static_cast<std::size_t>(which)];
    }
    [[nodiscard]] std::size_t take(std::span<std::byte> buffer) noexcept;
    [[nodiscard]] std::size_t put(std::span<const std::byte> bytes) noexcept;
    [[nodiscard]] bool would_wait(io::direction which) noexcept;
    [[nodiscard]] waiter* claim(io::direction which) noexcept;
    [[nodiscard]] wait_outcome wait(io::direction which);
    /// change() under the lock, after which nobody has to wait.
    template <class Change>
    void wake_both(Change change) noexcept;

    spin_lock lock_;
    // Guarded by the lock.
    const std::unique_ptr<std::byte[]> bytes_;
    const std::size_t capacity_;
    std::size_t begin_ = 0;
    std::size_t size_ = 0;
    bool ended_ = false;
    side sides_[2];
};

}  // namespace weft::inline v0::detail
