// reserve.hpp - what a worker keeps for itself while others find enough in its ring.
//
// Children that are taken back by their parent a moment later (scope) need no queue that others
// take from: each would cost a locked store and a locked exchange. So while the ring is well filled
// the youngest stand here, where the owner pushes and takes by plain stores. It moves the eldest to
// the ring when that has become short, and all of them before it runs anything else than what took
// them back. If it does not come to that, because what it runs takes long, whoever is about to
// sleep comes and takes half, the eldest:
//
//   owner                                         another
//   inside_ = true                                claimed_ = true       (exchange, acquire)
//   light barrier: the compiler keeps the order   heavy barrier: every thread passes a full fence
//   claimed_? inside_ = false, waits, again       inside_? waits until it is not      (acquire)
//   pushes, takes                                 takes
//   inside_ = false                   (release)   claimed_ = false                    (release)
//
// The fence comes to the owner before its look: then it sees that it is claimed. After it: then
// inside_ was stored before the fence, and the other sees it. The owner's look is an acquire, for
// what the other took out.
//
// That a sleeper learns of it is the same in turn, see pool_worker.hpp.
//
// Written over its atomic type and its barriers, so that tests/model can walk all interleavings.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <thread>

#include <weft/base/process_barrier.hpp>
#include <weft/base/test_point.hpp>

#include "base/pause.hpp"

namespace weft::inline v0::detail {

/// The other side is about to be done; it may have lost its processor.
struct reserve_spin {
    void once() noexcept {
        if (++rounds < 64)
            pause();
        else
            std::this_thread::yield();
    }
    unsigned rounds = 0;
};

template <class T, std::uint32_t Capacity, template <class> class Atomic, class Barrier, class Spin>
class basic_reserve {
public:
    static_assert((Capacity & (Capacity - 1)) == 0, "a power of two");
    static constexpr std::uint32_t capacity = Capacity;

    // The owner.

    /// False: it is full.
    [[nodiscard]] bool push(T* item) noexcept {
        enter();
        const std::uint32_t end = end_.load(std::memory_order_relaxed);
        const bool has_room = end - begin_.load(std::memory_order_relaxed) != Capacity;
        if (has_room) {
            items_[end % Capacity] = item;
            end_.store(end + 1, std::memory_order_relaxed);
        }
        leave();
        return has_room;
    }

    /// The youngest, if wanted(item) says so; nullptr: it is not, or there is none.
    template <class Wanted>
    [[nodiscard]] T* take_back(Wanted wanted) noexcept {
        enter();
        T* item = nullptr;
        const std::uint32_t end = end_.load(std::memory_order_relaxed);
        if (end != begin_.load(std::memory_order_relaxed) &&
            wanted(*items_[(end - 1) % Capacity])) {
            item = items_[(end - 1) % Capacity];
            end_.store(end - 1, std::memory_order_relaxed);
        }
        leave();
        return item;
    }

    /// The eldest, so many at most; how many.
    template <std::size_t Room>
    [[nodiscard]] std::uint32_t take_eldest(std::array<T*, Room>& into,
                                            std::uint32_t most) noexcept {
        enter();
        const std::uint32_t there = size();
        const std::uint32_t count = take(into, there < most ? there : most);
        leave();
        return count;
    }

    // Any thread.

    /// Of the owner: exactly. Of others: after a heavy barrier, what was pushed before that.
    [[nodiscard]] bool empty() const noexcept { return size() == 0; }

    /// At least half of what is there, the eldest first; how many. 0, too, if another is at it.
    template <std::size_t Room>
    [[nodiscard]] std::uint32_t claim(std::array<T*, Room>& into) noexcept {
        if (claimed_.exchange(true, std::memory_order_acquire)) return 0;
        Barrier::heavy();
        WEFT_TEST_POINT("reserve: claimed");
        Spin owner;
        while (inside_.load(std::memory_order_acquire)) owner.once();
        const std::uint32_t there = size();
        const std::uint32_t count = take(into, there - there / 2);
        claimed_.store(false, std::memory_order_release);
        return count;
    }

protected:  // tests/model breaks it in derived classes
    void enter() noexcept {
        inside_.store(true, std::memory_order_relaxed);
        Barrier::light();
        WEFT_TEST_POINT("reserve: inside, about to look");
        if (claimed_.load(std::memory_order_acquire)) [[unlikely]]
            wait_for_claimer();
    }
    void leave() noexcept { inside_.store(false, std::memory_order_release); }

    [[gnu::noinline]] void wait_for_claimer() noexcept {
        do {
            inside_.store(false, std::memory_order_release);
            Spin claimer;
            while (claimed_.load(std::memory_order_relaxed)) claimer.once();
            inside_.store(true, std::memory_order_relaxed);
            Barrier::light();
        } while (claimed_.load(std::memory_order_acquire));
    }

    [[nodiscard]] std::uint32_t size() const noexcept {
        return end_.load(std::memory_order_relaxed) - begin_.load(std::memory_order_relaxed);
    }
    // Inside, or as the one who claimed it.
    template <std::size_t Room>
    [[nodiscard]] std::uint32_t take(std::array<T*, Room>& into, std::uint32_t count) noexcept {
        static_assert(Room >= Capacity);
        const std::uint32_t begin = begin_.load(std::memory_order_relaxed);
        for (std::uint32_t i = 0; i < count; ++i) into[i] = items_[(begin + i) % Capacity];
        begin_.store(begin + count, std::memory_order_relaxed);
        return count;
    }

    Atomic<bool> inside_{false};  // written by the owner
    Atomic<bool> claimed_{false};
    Atomic<std::uint32_t> begin_{0};
    Atomic<std::uint32_t> end_{0};
    std::array<T*, Capacity> items_{};
};

template <class T, std::uint32_t Capacity>
using reserve = basic_reserve<T, Capacity, std::atomic, process_barrier, reserve_spin>;

}  // namespace weft::inline v0::detail
