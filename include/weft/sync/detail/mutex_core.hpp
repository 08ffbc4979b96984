// mutex_core.hpp - the lock inside mutex, timed_mutex and the recursive ones.
//
// A word (quick_word.hpp) and a queue. Whoever is not waiting may take a free lock ahead of those
// who do (it barges), for that is what is fast: the woken one is not running yet. One that has
// waited for longer than `patience` and was beaten once more is handed the lock by the next unlock.
//
//     locked    somebody holds it
//     careful   the word is changed by read-modify-writes; without it there are no other bits but
//               locked, and a plain store gives it up
//     guarded   somebody changes the queue
//     awaited   somebody is queued and nobody is on its way: the next unlock has to wake one; set
//               only while locked
//     starving  the next unlock hands the lock over; set only while locked
//
// While somebody who was woken is on its way (coming_) the word says nothing of those who wait, so
// whoever runs locks and unlocks as fast as if it were alone. The protocol is in mutex_core.cpp.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include <weft/base/clock_source.hpp>
#include <weft/fiber/waiter.hpp>
#include <weft/sync/detail/lock_owner.hpp>
#include <weft/sync/detail/quick_word.hpp>
#include <weft/sync/detail/waiter_queue.hpp>

namespace weft::inline v0::detail {

/// What somebody who waits for one is told to wait for. Static.
struct lock_names {
    wait_reason waits;
    wait_reason waits_for_a_time;
    const char* again;     // the message when its holder locks it
    const char* edge;      // in a report of a deadlock
    const char* on_stack;  // the message when it lies in the stack of a swapped fiber
};
extern const lock_names mutex_names;

class mutex_core {
public:
    constexpr mutex_core() noexcept = default;
    mutex_core(const mutex_core&) = delete;
    mutex_core& operator=(const mutex_core&) = delete;
    ~mutex_core() { WEFT_ASSERT(is_unused(), "mutex: destroyed while it is held or waited for"); }

    [[gnu::always_inline]] void lock(const lock_names& names = mutex_names) {
        owner_.refuse_again(names.again);
        if (!word_.take()) [[unlikely]]
            lock_slowly(names);
        owner_.take();
    }

    [[nodiscard]] bool try_lock() noexcept {
        if (!take()) return false;
        owner_.take();
        return true;
    }

    /// False: it came to its deadline, or was cancelled.
    [[nodiscard]] bool try_lock_until(time_point deadline, const lock_names& names = mutex_names);

    [[gnu::always_inline]] void unlock() noexcept {
        owner_.give("mutex: unlocked by a fiber or thread that does not hold it");
        release();
    }

    /// Neither held nor waited for.
    [[nodiscard]] bool is_unused() const noexcept {
        return (word_.load(std::memory_order_acquire) & ~careful) == 0 && queue_.empty() &&
               !coming_.load(std::memory_order_relaxed);
    }

    // For a condition variable, which gives the lock up after the waiter has left its stack.

    void leave_to_another() noexcept {
        owner_.give("condition_variable: waits with a lock that it does not hold");
    }
    void come_back() noexcept { owner_.take(); }  // it did not give it up
    [[gnu::always_inline]] void release() noexcept {
        if (!word_.leave()) [[unlikely]]
            release_slowly();
    }

private:
    static constexpr std::uint32_t locked = quick_word::locked;
    static constexpr std::uint32_t careful = quick_word::careful;
    static constexpr std::uint32_t guarded = 4;
    static constexpr std::uint32_t awaited = 8;
    static constexpr std::uint32_t starving = 16;

    /// For waits_for.
    [[nodiscard]] static const void* holder_of(const void* lock) noexcept {
        return static_cast<const mutex_core*>(lock)->owner_.get();
    }
    [[nodiscard]] bool take() noexcept;
    [[nodiscard]] bool take_woken() noexcept;
    void arrive_quickly() noexcept;
    void lock_slowly(const lock_names& names);
    [[nodiscard]] bool acquire(const lock_names& names, const wait_reason& reason,
                               time_point deadline);
    [[nodiscard]] bool spin() noexcept;
    [[nodiscard]] bool enqueue(waiter& me, bool was_woken, bool starves) noexcept;
    std::uint32_t guard(std::uint32_t with = 0) noexcept;
    void withdraw(waiter& me) noexcept;
    [[nodiscard]] bool pass_wake_on() noexcept;
    [[nodiscard]] bool was_handed_over(time_point began) noexcept;
    void release_slowly() noexcept;
    [[nodiscard]] waiter* next_holder(std::uint32_t seen) noexcept;

    /// Under the guard: the bits for those in the queue.
    [[nodiscard]] std::uint32_t awaited_now() const noexcept {
        return queue_.empty() || coming_.load(std::memory_order_relaxed) ? 0 : awaited;
    }

    [[no_unique_address]] quick_word word_;  // coming_ stands in its padding
    // An unlock has woken somebody, who has not come yet. Written under the guard; elsewhere a
    // hint (relaxed).
    std::atomic<bool> coming_ = false;
    [[no_unique_address]] lock_owner owner_;
    waiter_queue queue_;  // guarded by the bit
};

}  // namespace weft::inline v0::detail
