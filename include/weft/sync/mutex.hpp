// mutex.hpp - mutex and timed_mutex, for fibers and plain threads at once.
//
//     mutex m;
//     { const std::lock_guard lock(m); ... }       // a fiber suspends, a thread sleeps
//
// They barge: a newcomer may take a free lock ahead of those who wait. Those are woken in the order
// in which they came, and one that has waited for over a millisecond and is beaten again gets the
// lock from whoever unlocks next. fair_mutex.hpp has one that never barges.
//
// In builds with WEFT_CHECKS=1 unlocking what somebody else holds, and locking what one holds,
// abort. A lock may be held over a wait, and the fiber may go on in another thread meanwhile.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

#include <weft/sync/detail/deadline.hpp>
#include <weft/sync/detail/mutex_core.hpp>

namespace weft::inline v0 {

class condition_variable;

/// As std::mutex. Whoever gets the lock may destroy it when it is the last one to use it.
class mutex {
public:
    constexpr mutex() noexcept = default;
    mutex(const mutex&) = delete;
    mutex& operator=(const mutex&) = delete;
    /// Aborts: if it is held, or waited for.
    ~mutex() = default;

    /// Takes the lock; those who wait are woken in the order they asked, and a newcomer may come
    /// first.
    /// Suspends: maybe. Cancel: ignored (timed_mutex has a form that reports). From: any fiber or
    /// thread. Fails: never.
    [[gnu::always_inline]] void lock() { core_.lock(); }

    /// Suspends: never. From: any fiber or thread. Fails: by false, if somebody holds it.
    [[nodiscard]] bool try_lock() noexcept { return core_.try_lock(); }

    /// Suspends: never. From: whoever holds it. Fails: never.
    [[gnu::always_inline]] void unlock() noexcept { core_.unlock(); }

private:
    friend class condition_variable;
    detail::mutex_core core_;
};

/// As std::timed_mutex.
class timed_mutex {
public:
    constexpr timed_mutex() noexcept = default;
    timed_mutex(const timed_mutex&) = delete;
    timed_mutex& operator=(const timed_mutex&) = delete;
    /// Aborts: if it is held, or waited for.
    ~timed_mutex() = default;

    /// Suspends: maybe. Cancel: ignored. From: any fiber or thread. Fails: never.
    void lock() { core_.lock(); }

    /// Suspends: never. From: any fiber or thread. Fails: by false, if somebody holds it.
    [[nodiscard]] bool try_lock() noexcept { return core_.try_lock(); }

    /// Suspends: maybe. Cancel: reported, by false. From: any fiber or thread. Fails: by false, if
    /// the time has passed.
    template <class Rep, class Period>
    [[nodiscard]] bool try_lock_for(std::chrono::duration<Rep, Period> limit) {
        return core_.try_lock() || core_.try_lock_until(detail::deadline_in(limit));
    }
    /// As try_lock_for(), until a moment.
    template <class Clock, class Duration>
    [[nodiscard]] bool try_lock_until(std::chrono::time_point<Clock, Duration> when) {
        return core_.try_lock() || detail::lock_until(core_, when);
    }

    /// Suspends: never. From: whoever holds it. Fails: never.
    void unlock() noexcept { core_.unlock(); }

private:
    detail::mutex_core core_;
};

}  // namespace weft::inline v0
