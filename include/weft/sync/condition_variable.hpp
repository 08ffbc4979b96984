// condition_variable.hpp - waiting until another says that something has changed.
//
//     std::unique_lock lock(m);
//     changed.wait(lock, [&] { return ready; });
//
// As std::condition_variable and std::condition_variable_any. A wait that is cancelled throws
// `cancelled`, with the lock held again; the timed forms return what std's do only for their own
// timeout. Those who wait are woken in the order in which they came.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>

#include <weft/fiber/detail/swapped.hpp>
#include <weft/sync/detail/deadline.hpp>
#include <weft/sync/detail/wait_word.hpp>
#include <weft/sync/mutex.hpp>

namespace weft::inline v0 {

using std::cv_status;

namespace detail {
// A clock that was set back meanwhile: not late yet. It has to look again, for a notification may
// have come while nobody waited.
template <class Clock, class Duration>
[[nodiscard]] cv_status by_clock(cv_status status, std::chrono::time_point<Clock, Duration> when) {
    if constexpr (!std::same_as<Clock, std::chrono::steady_clock>)
        if (Clock::now() < when) return cv_status::no_timeout;
    return status;
}
}  // namespace detail

/// May be destroyed as soon as everybody who waits was notified. A wait that ends otherwise, by its
/// deadline or because it is cancelled, takes itself out: it must have returned before.
class condition_variable {
public:
    condition_variable() noexcept = default;
    condition_variable(const condition_variable&) = delete;
    condition_variable& operator=(const condition_variable&) = delete;
    /// Aborts: if somebody waits, or has not returned from a wait that was not notified.
    ~condition_variable() {
        WEFT_ASSERT(!word_.has_waiters(), "condition_variable: destroyed while somebody waits");
    }

    /// Suspends: never. From: any fiber or thread. Fails: never.
    void notify_one() noexcept;
    /// All who wait now. The contract: as notify_one().
    void notify_all() noexcept;

    /// Gives the lock up and waits, in one step; takes the lock again before it returns or throws.
    /// Suspends: always. Cancel: throws `cancelled`. From: any fiber or thread that holds the lock;
    /// otherwise it aborts. Fails: never.
    void wait(std::unique_lock<mutex>& lock) { static_cast<void>(wait_until(lock, no_deadline)); }
    template <class Predicate>
    void wait(std::unique_lock<mutex>& lock, Predicate predicate) {
        while (!predicate()) wait(lock);
    }

    /// Suspends: always. Cancel: throws `cancelled`. From: any fiber or thread that holds the lock;
    /// otherwise it aborts. Fails: by timeout, or what the predicate says then.
    template <class Clock, class Duration>
    cv_status wait_until(std::unique_lock<mutex>& lock,
                         std::chrono::time_point<Clock, Duration> when) {
        return detail::by_clock(wait_until(lock, detail::deadline_at(when)), when);
    }
    cv_status wait_until(std::unique_lock<mutex>& lock, time_point deadline);
    template <class Clock, class Duration, class Predicate>
    bool wait_until(std::unique_lock<mutex>& lock, std::chrono::time_point<Clock, Duration> when,
                    Predicate predicate) {
        while (!predicate())
            if (wait_until(lock, when) == cv_status::timeout) return predicate();
        return true;
    }
    /// As wait_until(), for so long.
    template <class Rep, class Period>
    cv_status wait_for(std::unique_lock<mutex>& lock, std::chrono::duration<Rep, Period> limit) {
        return wait_until(lock, detail::deadline_in(limit));
    }
    template <class Rep, class Period, class Predicate>
    bool wait_for(std::unique_lock<mutex>& lock, std::chrono::duration<Rep, Period> limit,
                  Predicate predicate) {
        return wait_until(lock, detail::deadline_in(limit), std::move(predicate));
    }

private:
    detail::wait_word word_;  // its number is not used
};

/// The same for any lock that has lock() and unlock(). It may wake for no reason, as std's may.
class condition_variable_any {
public:
    /// Fails: std::bad_alloc.
    condition_variable_any() : state_(std::make_shared<detail::wait_word>()) {}
    condition_variable_any(const condition_variable_any&) = delete;
    condition_variable_any& operator=(const condition_variable_any&) = delete;
    /// Aborts: if somebody waits who was not notified.
    ~condition_variable_any() {
        WEFT_ASSERT(!state_->has_waiters(),
                    "condition_variable_any: destroyed while somebody waits for it");
    }

    /// Suspends: never. From: any fiber or thread. Fails: never.
    void notify_one() noexcept { notify_one(*state_); }
    /// All who wait now. The contract: as notify_one().
    void notify_all() noexcept { notify_all(*state_); }

    /// Suspends: maybe. Cancel: throws `cancelled`. From: any fiber or thread that holds the lock.
    /// Fails: never.
    template <class Lock>
    void wait(Lock& lock) {
        static_cast<void>(wait_since(state_->load(std::memory_order_acquire), lock, no_deadline));
    }
    template <class Lock, class Predicate>
    void wait(Lock& lock, Predicate predicate) {
        while (!predicate()) wait(lock);
    }
    /// Until the predicate says true, or until a stop is requested, also if that is the fiber's own
    /// cancellation; what the predicate says then.
    /// Fails: std::bad_alloc, in a swapped fiber.
    template <class Lock, class Predicate>
    bool wait(Lock& lock, std::stop_token stop, Predicate predicate) {
        return wait_until(lock, std::move(stop), no_deadline, std::move(predicate));
    }

    /// Suspends: maybe. Cancel: throws `cancelled`. From: any fiber or thread that holds the lock.
    /// Fails: by timeout, or what the predicate says then.
    template <class Lock, class Clock, class Duration>
    cv_status wait_until(Lock& lock, std::chrono::time_point<Clock, Duration> when) {
        const std::uint64_t seen = state_->load(std::memory_order_acquire);
        return detail::by_clock(wait_since(seen, lock, detail::deadline_at(when)), when);
    }
    template <class Lock, class Clock, class Duration, class Predicate>
    bool wait_until(Lock& lock, std::chrono::time_point<Clock, Duration> when,
                    Predicate predicate) {
        while (!predicate())
            if (wait_until(lock, when) == cv_status::timeout) return predicate();
        return true;
    }
    /// As wait_until(), for so long.
    template <class Lock, class Rep, class Period>
    cv_status wait_for(Lock& lock, std::chrono::duration<Rep, Period> limit) {
        return wait_until(lock, detail::deadline_in(limit));
    }
    template <class Lock, class Rep, class Period, class Predicate>
    bool wait_for(Lock& lock, std::chrono::duration<Rep, Period> limit, Predicate predicate) {
        return wait_until(lock, detail::deadline_in(limit), std::move(predicate));
    }
    template <class Lock, class Clock, class Duration, class Predicate>
    bool wait_until(Lock& lock, std::stop_token stop, std::chrono::time_point<Clock, Duration> when,
                    Predicate predicate);
    template <class Lock, class Rep, class Period, class Predicate>
    bool wait_for(Lock& lock, std::stop_token stop, std::chrono::duration<Rep, Period> limit,
                  Predicate predicate) {
        return wait_until(lock, std::move(stop), detail::deadline_in(limit), std::move(predicate));
    }

private:
    // Gives a lock up, and takes it again at the end; if that fails it cannot keep its promise.
    template <class Lock>
    class unlocked {
    public:
        explicit unlocked(Lock& lock) : lock_(lock) {
            if constexpr (requires { lock.owns_lock(); })
                WEFT_ASSERT(lock.owns_lock(),
                            "condition_variable_any: waits with a lock that is not locked");
            lock_.unlock();
        }
        unlocked(const unlocked&) = delete;
        unlocked& operator=(const unlocked&) = delete;
        ~unlocked() { lock_.lock(); }

    private:
        Lock& lock_;
    };

    // Notifies all when a stop is requested. Others reach it during a wait, so that of a swapped
    // fiber lies on the heap.
    class stop_notifier {
    public:
        stop_notifier(const std::stop_token& stop, std::shared_ptr<detail::wait_word> state) {
            if (detail::running_is_swapped())
                elsewhere_ = std::make_unique<callback>(stop, notify{std::move(state)});
            else
                here_.emplace(stop, notify{std::move(state)});
        }

    private:
        struct notify {
            std::shared_ptr<detail::wait_word> state;
            void operator()() const noexcept { notify_all(*state); }
        };
        using callback = std::stop_callback<notify>;
        std::optional<callback> here_;
        std::unique_ptr<callback> elsewhere_;
    };

    static void notify_one(detail::wait_word& state) noexcept;
    static void notify_all(detail::wait_word& state) noexcept;
    // Until a notification that came after `seen` was read.
    [[nodiscard]] static cv_status wait_for_change(detail::wait_word& state, std::uint64_t seen,
                                                   time_point deadline);
    template <class Lock>
    [[nodiscard]] cv_status wait_since(std::uint64_t seen, Lock& lock, time_point deadline) {
        const std::shared_ptr<detail::wait_word> state = state_;  // *this may go once notified
        const unlocked<Lock> meanwhile(lock);
        return wait_for_change(*state, seen, deadline);
    }

    std::shared_ptr<detail::wait_word> state_;  // the number of notifications
};

// The count is read before the stop is asked for: a stop that comes later counts as a notification.
template <class Lock, class Clock, class Duration, class Predicate>
bool condition_variable_any::wait_until(Lock& lock, std::stop_token stop,
                                        std::chrono::time_point<Clock, Duration> when,
                                        Predicate predicate) {
    if (stop.stop_requested()) return predicate();
    const std::shared_ptr<detail::wait_word> state = state_;
    const stop_notifier notifies(stop, state);
    for (;;) {
        const std::uint64_t seen = state->load(std::memory_order_acquire);
        if (stop.stop_requested()) return predicate();
        if (predicate()) return true;
        try {
            const cv_status status =
                detail::by_clock(wait_since(seen, lock, detail::deadline_at(when)), when);
            if (status == cv_status::timeout) return predicate();
        } catch (const cancelled&) {
            if (!stop.stop_requested()) throw;  // else it is the stop that was waited for
            return predicate();
        }
    }
}

}  // namespace weft::inline v0
