// recursive_mutex.hpp - mutexes that whoever holds them may lock again.
//
// The owner is a fiber, or a plain thread outside of fibers; it may go on in another thread.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>

#include <weft/sync/detail/deadline.hpp>
#include <weft/sync/detail/mutex_core.hpp>

namespace weft::inline v0 {

/// As std::recursive_timed_mutex.
class recursive_timed_mutex {
public:
    constexpr recursive_timed_mutex() noexcept = default;
    recursive_timed_mutex(const recursive_timed_mutex&) = delete;
    recursive_timed_mutex& operator=(const recursive_timed_mutex&) = delete;
    /// Aborts: if it is held, or waited for.
    ~recursive_timed_mutex() = default;

    /// Suspends: maybe. Cancel: ignored. From: any fiber or thread. Fails: never.
    void lock() {
        if (again()) return;
        core_.lock();
        first();
    }

    /// Suspends: never. From: any fiber or thread. Fails: by false, if somebody else holds it.
    [[nodiscard]] bool try_lock() noexcept { return again() || (core_.try_lock() && first()); }

    /// Suspends: maybe. Cancel: reported, by false. From: any fiber or thread. Fails: by false, if
    /// the time has passed.
    template <class Rep, class Period>
    [[nodiscard]] bool try_lock_for(std::chrono::duration<Rep, Period> limit) {
        return again() || (core_.try_lock_until(detail::deadline_in(limit)) && first());
    }
    /// As try_lock_for(), until a moment.
    template <class Clock, class Duration>
    [[nodiscard]] bool try_lock_until(std::chrono::time_point<Clock, Duration> when) {
        return again() || (detail::lock_until(core_, when) && first());
    }

    /// Suspends: never. From: whoever holds it; otherwise it aborts. Fails: never.
    void unlock() noexcept {
        WEFT_ASSERT(owner_.load(std::memory_order_relaxed) == detail::running_owner(),
                    "recursive_mutex: unlocked by a fiber or thread that does not hold it");
        if (--depth_ != 0) return;
        owner_.store(nullptr, std::memory_order_relaxed);
        core_.unlock();
    }

private:
    // relaxed: only the owner ever reads its own name there.
    [[nodiscard]] bool again() noexcept {
        if (owner_.load(std::memory_order_relaxed) != detail::running_owner()) return false;
        ++depth_;
        return true;
    }
    bool first() noexcept {
        owner_.store(detail::running_owner(), std::memory_order_relaxed);
        depth_ = 1;
        return true;
    }

    detail::mutex_core core_;
    std::atomic<const void*> owner_ = nullptr;
    unsigned depth_ = 0;  // whoever holds it
};

/// As std::recursive_mutex.
class recursive_mutex {
public:
    constexpr recursive_mutex() noexcept = default;

    /// Suspends: maybe. Cancel: ignored. From: any fiber or thread. Fails: never.
    void lock() { timed_.lock(); }
    /// Suspends: never. From: any fiber or thread. Fails: by false, if somebody else holds it.
    [[nodiscard]] bool try_lock() noexcept { return timed_.try_lock(); }
    /// Suspends: never. From: whoever holds it; otherwise it aborts. Fails: never.
    void unlock() noexcept { timed_.unlock(); }

private:
    recursive_timed_mutex timed_;
};

}  // namespace weft::inline v0
