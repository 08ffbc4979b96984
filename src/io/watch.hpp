// watch.hpp - where fibers wait for one descriptor, and where its reactor tells them.
//
// A descriptor is registered with a reactor once, edge-triggered, for both directions. Per
// direction there is {nothing, ready, somebody who waits}:
//
//   whoever wants to read                      the reactor
//   calls read(2): "not now"                   an edge: the descriptor has become readable
//   lock; ready? take that, unlock,            lock; is it the generation that was registered?
//     read again                                 somebody waits, and can be claimed? then he is
//   else be the one who waits, unlock              woken, after the unlock
//   later: woken, reads again                    else: ready
//
// Edges that come before the call fails are seen by the call itself; later ones find `ready` unset
// and set it, or find the waiter: none is lost. An edge that was seen by both costs one call that
// fails. One who was cancelled or is late has been claimed already: then the edge is kept as ready,
// and he takes himself out, under the lock, when he runs.
//
// A read from a stream socket that gives less than there is room for has emptied it, so the next
// need not be tried: it begins with the second line. Bytes that come later are an edge. What is no
// bytes, the end, may have been reported together with those that were read, and urgent bytes end
// a read early: so either is remembered (ended), and then the call is tried.
//
// The kernel reports {index, generation}. A watch is given back and used again for another
// descriptor, but its memory stays as long as the reactor; the generation grows each time, so what
// was reported for the old one, and is still in somebody's hands, meets another number.
//
// Whoever waits to read on a loop may leave the call with the watch (early_call). The reactor makes
// it when it has claimed him, after the unlock: so all that a batch of reports brings is read in a
// row, which is cheaper than each between other things (docs/decisions/0011-io-in-batches.md). One
// who was cancelled, or is closed, is not claimed by the reactor, and nothing was read.
//
// The lock is held for a few instructions, never over a call, a wake or a wait.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>

#include <weft/fiber/waiter.hpp>
#include <weft/io/descriptor.hpp>

#include "base/spin_lock.hpp"

namespace weft::inline v0::detail {

class reactor;

/// A call that the reactor makes for one who waits. It lies on his stack, which stays in its place.
struct early_call {
    void make() noexcept {
        result = tried->call(tried->function, number);
        made = true;
    }

    const attempt* tried;
    int number;
    bool made = false;
    long result = 0;
};

struct alignas(64) watch {
    class side {
    public:
        /// nullptr: nobody. Without the lock only to fetch what it points to.
        [[nodiscard]] waiter* waiting() const noexcept {
            return waiting_.load(std::memory_order_relaxed);
        }
        void set_waiting(waiter* one) noexcept { waiting_.store(one, std::memory_order_relaxed); }
        [[nodiscard]] waiter* take_waiting() noexcept {
            waiter* const one = waiting();
            set_waiting(nullptr);
            return one;
        }
        void reset() noexcept {
            set_waiting(nullptr);
            ready = ended = false;
        }

        bool ready = false;
        bool ended = false;  // the other side was seen to end or fail: no edge will come for that

    private:
        std::atomic<waiter*> waiting_ = nullptr;
    };

    [[nodiscard]] side& of(io::direction which) noexcept {
        return sides[std::to_underlying(which)];
    }
    /// What the kernel reports.
    [[nodiscard]] std::uint64_t key() const noexcept {
        return std::uint64_t{generation} << 32 | index;
    }

    reactor* home = nullptr;
    std::uint32_t index = 0;
    spin_lock lock;
    // Guarded by the lock.
    std::uint32_t generation = 0;
    int number = -1;  // for its reactor: what it has to submit again, or the copy that it made
    std::array<side, 2> sides;
    union {
        early_call* early = nullptr;  // of whoever waits to read, or nullptr
        watch* next_free;             // of one that stands for nothing: guarded by the table's lock
    };
};
static_assert(sizeof(watch) == 64);

/// All watches of a reactor, by number. Thread-safe.
class watch_table {
public:
    explicit watch_table(reactor& home) noexcept : home_(home) {}
    watch_table(const watch_table&) = delete;
    watch_table& operator=(const watch_table&) = delete;
    ~watch_table();

    /// Fails: std::bad_alloc.
    [[nodiscard]] watch& take();
    /// It stands for nothing from now on: what is reported for it is dropped. Nobody waits there.
    /// Returns the key that it had.
    static std::uint64_t retire(watch& used) noexcept;
    /// One that was retired.
    void give_back(watch& used) noexcept;
    /// One that take() has given at some time.
    [[nodiscard]] watch& at(std::uint32_t index) noexcept {
        const auto [chunk, place] = where(index);
        return chunks_[chunk].load(std::memory_order_acquire)[place];
    }

private:
    struct place {
        std::size_t chunk;
        std::size_t within;
    };
    // Chunk k has 64 << k places.
    static constexpr std::size_t first_chunk = 64;
    [[nodiscard]] static place where(std::uint32_t index) noexcept {
        const std::size_t shifted = index + first_chunk;
        const auto chunk = static_cast<std::size_t>(std::bit_width(shifted)) - 7;
        return {chunk, shifted - (first_chunk << chunk)};
    }

    reactor& home_;
    std::array<std::atomic<watch*>, 26> chunks_{};  // written under the lock, pairs with at()
    spin_lock lock_;
    // Guarded by the lock.
    watch* free_ = nullptr;
    std::uint32_t made_ = 0;
};

}  // namespace weft::inline v0::detail
