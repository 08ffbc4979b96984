// fair_mutex.hpp - a mutex that is had in the order in which it was asked for.
//
// Whoever unlocks hands over to the eldest who waits; nobody comes in between. That costs a switch
// for every turn under contention, where mutex (mutex.hpp) lets the one that runs go on.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

#include <weft/sync/detail/deadline.hpp>
#include <weft/sync/detail/lock_owner.hpp>
#include <weft/sync/detail/wait_word.hpp>

namespace weft::inline v0 {

/// Strictly first come, first served.
class fair_mutex {
public:
    constexpr fair_mutex() noexcept = default;
    fair_mutex(const fair_mutex&) = delete;
    fair_mutex& operator=(const fair_mutex&) = delete;
    /// Aborts: if it is held, or waited for.
    ~fair_mutex() {
        WEFT_ASSERT(word_.load(std::memory_order_acquire) == 0,
                    "fair_mutex: destroyed while it is held or waited for");
    }

    /// Suspends: maybe. Cancel: ignored. From: any fiber or thread. Fails: never.
    void lock() {
        owner_.refuse_again("fair_mutex: locked again by the fiber or thread that holds it");
        if (!take()) lock_slowly();
        owner_.take();
    }

    /// Suspends: never. From: any fiber or thread. Fails: by false, if somebody holds it.
    [[nodiscard]] bool try_lock() noexcept {
        if (!take()) return false;
        owner_.take();
        return true;
    }

    /// Suspends: maybe. Cancel: reported, by false. From: any fiber or thread. Fails: by false, if
    /// the time has passed.
    template <class Rep, class Period>
    [[nodiscard]] bool try_lock_for(std::chrono::duration<Rep, Period> limit) {
        return try_lock_until(detail::deadline_in(limit));
    }
    /// As try_lock_for(), until a moment.
    template <class Clock, class Duration>
    [[nodiscard]] bool try_lock_until(std::chrono::time_point<Clock, Duration> when) {
        return detail::lock_until(*this, when);
    }
    [[nodiscard]] bool try_lock_until(time_point deadline);

    /// Suspends: never. From: whoever holds it. Fails: never.
    void unlock() noexcept {
        owner_.give("fair_mutex: unlocked by a fiber or thread that does not hold it");
        std::uint64_t held = detail::wait_word::unit;
        if (!word_.change(held, 0, std::memory_order_release)) hand_over();
    }

private:
    [[nodiscard]] bool take() noexcept {
        std::uint64_t free = 0;
        while (free == 0)
            if (word_.change(free, detail::wait_word::unit, std::memory_order_acquire)) return true;
        return false;
    }
    /// For waits_for.
    [[nodiscard]] static const void* holder_of(const void* lock) noexcept {
        return static_cast<const fair_mutex*>(lock)->owner_.get();
    }
    void lock_slowly();
    [[nodiscard]] bool acquire(const wait_reason& reason, time_point deadline);
    void hand_over() noexcept;

    detail::wait_word word_;  // 1: somebody holds it
    [[no_unique_address]] detail::lock_owner owner_;
};

}  // namespace weft::inline v0
