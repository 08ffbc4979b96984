// mutex_core.hpp - the lock inside mutex, timed_mutex and the recursive ones.
//
// A word and a queue. Whoever is not waiting may take a free lock ahead of those who do (it
// barges), for that is what is fast: the woken one is not running yet. One that has waited for
// longer than `patience` and was beaten once more is handed the lock by the next unlock.
//
//     locked    somebody holds it
//     guarded   somebody changes the queue
//     queued    the queue is not empty
//     woken     an unlock has woken somebody, who is on its way; so others need not be
//     starving  the next unlock hands the lock over; set only while locked
//
// The protocol is in mutex_core.cpp.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include <weft/base/clock_source.hpp>
#include <weft/fiber/waiter.hpp>
#include <weft/sync/detail/lock_owner.hpp>
#include <weft/sync/detail/waiter_queue.hpp>

namespace weft::inline v0::detail {

class mutex_core {
public:
    constexpr mutex_core() noexcept = default;
    mutex_core(const mutex_core&) = delete;
    mutex_core& operator=(const mutex_core&) = delete;
    ~mutex_core() {
        WEFT_ASSERT(word_.load(std::memory_order_acquire) == 0,
                    "mutex: destroyed while it is held or waited for");
    }

    [[gnu::always_inline]] void lock() {
        owner_.refuse_again("mutex: locked again by the fiber or thread that holds it");
        std::uint32_t free = 0;
        if (!word_.compare_exchange_strong(free, locked, std::memory_order_acquire,
                                           std::memory_order_relaxed)) [[unlikely]]
            lock_slowly();
        owner_.take();
    }

    [[nodiscard]] bool try_lock() noexcept {
        if (!take(0)) return false;
        owner_.take();
        return true;
    }

    /// False: it came to its deadline, or was cancelled.
    [[nodiscard]] bool try_lock_until(time_point deadline);

    [[gnu::always_inline]] void unlock() noexcept {
        owner_.give("mutex: unlocked by a fiber or thread that does not hold it");
        release();
    }

    // For a condition variable, which gives the lock up after the waiter has left its stack.

    void leave_to_another() noexcept {
        owner_.give("condition_variable: waits with a lock that it does not hold");
    }
    void come_back() noexcept { owner_.take(); }  // it did not give it up
    [[gnu::always_inline]] void release() noexcept {
        std::uint32_t held = locked;
        if (!word_.compare_exchange_strong(held, 0, std::memory_order_release,
                                           std::memory_order_relaxed)) [[unlikely]]
            release_slowly();
    }

private:
    static constexpr std::uint32_t locked = 1;
    static constexpr std::uint32_t guarded = 2;
    static constexpr std::uint32_t queued = 4;
    static constexpr std::uint32_t woken = 8;
    static constexpr std::uint32_t starving = 16;

    /// For waits_for.
    [[nodiscard]] static const void* holder_of(const void* lock) noexcept {
        return static_cast<const mutex_core*>(lock)->owner_.get();
    }
    [[nodiscard]] bool take(std::uint32_t without) noexcept;
    void lock_slowly();
    [[nodiscard]] bool acquire(const wait_reason& reason, time_point deadline);
    [[nodiscard]] bool spin() noexcept;
    [[nodiscard]] bool enqueue(waiter& me, bool was_woken, bool starves) noexcept;
    void withdraw(waiter& me) noexcept;
    [[nodiscard]] bool pass_wake_on() noexcept;
    [[nodiscard]] bool was_handed_over(time_point began) noexcept;
    void release_slowly() noexcept;
    [[nodiscard]] waiter* next_holder(std::uint32_t seen) noexcept;

    std::atomic<std::uint32_t> word_ = 0;
    [[no_unique_address]] lock_owner owner_;
    waiter_queue queue_;  // guarded by the bit
};

}  // namespace weft::inline v0::detail
