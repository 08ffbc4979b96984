// shared_mutex.hpp - a lock that many readers may hold at once, or one writer; as std's.
//
// Neither side starves: readers who come while a writer waits wait too, and when a writer unlocks,
// all readers who wait then come before the next writer. Locks are handed over, so nobody comes in
// between.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

#include <weft/sync/detail/deadline.hpp>
#include <weft/sync/detail/lock_owner.hpp>
#include <weft/sync/detail/wait_word.hpp>

namespace weft::inline v0 {

namespace detail {

class shared_mutex_core {
public:
    constexpr shared_mutex_core() noexcept = default;
    shared_mutex_core(const shared_mutex_core&) = delete;
    shared_mutex_core& operator=(const shared_mutex_core&) = delete;
    ~shared_mutex_core() {
        WEFT_ASSERT(word_.load(std::memory_order_acquire) == 0,
                    "shared_mutex: destroyed while it is held or waited for");
    }

    [[nodiscard]] bool try_lock() noexcept {
        std::uint64_t free = 0;
        while (free == 0)
            if (word_.change(free, writer * wait_word::unit, std::memory_order_acquire)) {
                owner_.take();
                return true;
            }
        return false;
    }
    void lock() {
        if (!try_lock()) lock_slowly();
    }
    [[nodiscard]] bool try_lock_until(time_point deadline);
    void unlock() noexcept {
        owner_.give("shared_mutex: unlocked by a fiber or thread that does not hold it");
        std::uint64_t held = writer * wait_word::unit;
        if (!word_.change(held, 0, std::memory_order_release)) unlock_slowly();
    }

    [[nodiscard]] bool try_lock_shared() noexcept {
        std::uint64_t seen = word_.load(std::memory_order_relaxed);
        while ((seen & (wait_word::busy | writer * wait_word::unit)) == 0)
            if (word_.change(seen, seen + reader * wait_word::unit, std::memory_order_acquire))
                return true;
        return false;
    }
    void lock_shared() {
        if (!try_lock_shared()) lock_shared_slowly();
    }
    [[nodiscard]] bool try_lock_shared_until(time_point deadline);
    void unlock_shared() noexcept {
        std::uint64_t seen = word_.load(std::memory_order_relaxed);
        while ((seen & wait_word::busy) == 0 && seen >= reader * wait_word::unit)
            // release: readers change one word in turn, so the writer after them sees all they did
            if (word_.change(seen, seen - reader * wait_word::unit, std::memory_order_release))
                return;
        unlock_shared_slowly();
    }

private:
    // In the number: one writer, or any number of readers.
    static constexpr std::uint64_t writer = 1;
    static constexpr std::uint64_t reader = 2;

    /// For waits_for.
    [[nodiscard]] static const void* holder_of(const void* lock) noexcept {
        return static_cast<const shared_mutex_core*>(lock)->owner_.get();
    }
    void lock_slowly();
    void lock_shared_slowly();
    [[nodiscard]] bool acquire(const wait_reason& reason, time_point deadline);
    [[nodiscard]] bool acquire_shared(const wait_reason& reason, time_point deadline);
    void unlock_slowly() noexcept;
    void unlock_shared_slowly() noexcept;
    void withdraw_writer(waiter& me) noexcept;
    [[nodiscard]] std::uint64_t admit_readers(woken_list& woken) noexcept;
    void leave(std::uint64_t number) noexcept {
        word_.leave(number, !word_.queue().empty() || !readers_.empty());
    }

    wait_word word_;        // its queue is the writers'
    waiter_queue readers_;  // guarded by the word's bit
    [[no_unique_address]] lock_owner owner_;
};

}  // namespace detail

/// As std::shared_timed_mutex.
class shared_timed_mutex {
public:
    constexpr shared_timed_mutex() noexcept = default;
    shared_timed_mutex(const shared_timed_mutex&) = delete;
    shared_timed_mutex& operator=(const shared_timed_mutex&) = delete;
    /// Aborts: if it is held, or waited for.
    ~shared_timed_mutex() = default;

    /// Suspends: maybe. Cancel: ignored. From: any fiber or thread. Fails: never.
    void lock() { core_.lock(); }
    void lock_shared() { core_.lock_shared(); }

    /// Suspends: never. From: any fiber or thread. Fails: by false, if it cannot be had at once.
    [[nodiscard]] bool try_lock() noexcept { return core_.try_lock(); }
    [[nodiscard]] bool try_lock_shared() noexcept { return core_.try_lock_shared(); }

    /// Suspends: maybe. Cancel: reported, by false. From: any fiber or thread. Fails: by false, if
    /// the time has passed.
    template <class Rep, class Period>
    [[nodiscard]] bool try_lock_for(std::chrono::duration<Rep, Period> limit) {
        return core_.try_lock() || core_.try_lock_until(detail::deadline_in(limit));
    }
    template <class Clock, class Duration>
    [[nodiscard]] bool try_lock_until(std::chrono::time_point<Clock, Duration> when) {
        return core_.try_lock() || detail::lock_until(core_, when);
    }
    template <class Rep, class Period>
    [[nodiscard]] bool try_lock_shared_for(std::chrono::duration<Rep, Period> limit) {
        return core_.try_lock_shared() || core_.try_lock_shared_until(detail::deadline_in(limit));
    }
    template <class Clock, class Duration>
    [[nodiscard]] bool try_lock_shared_until(std::chrono::time_point<Clock, Duration> when) {
        struct shared {
            detail::shared_mutex_core& core;
            bool try_lock_until(time_point deadline) {
                return core.try_lock_shared_until(deadline);
            }
        } side{core_};
        return core_.try_lock_shared() || detail::lock_until(side, when);
    }

    /// Suspends: never. From: whoever holds it so. Fails: never.
    void unlock() noexcept { core_.unlock(); }
    void unlock_shared() noexcept { core_.unlock_shared(); }

private:
    detail::shared_mutex_core core_;
};

/// As std::shared_mutex.
class shared_mutex {
public:
    constexpr shared_mutex() noexcept = default;
    shared_mutex(const shared_mutex&) = delete;
    shared_mutex& operator=(const shared_mutex&) = delete;
    /// Aborts: if it is held, or waited for.
    ~shared_mutex() = default;

    /// Suspends: maybe. Cancel: ignored. From: any fiber or thread. Fails: never.
    void lock() { core_.lock(); }
    void lock_shared() { core_.lock_shared(); }

    /// Suspends: never. From: any fiber or thread. Fails: by false, if it cannot be had at once.
    [[nodiscard]] bool try_lock() noexcept { return core_.try_lock(); }
    [[nodiscard]] bool try_lock_shared() noexcept { return core_.try_lock_shared(); }

    /// Suspends: never. From: whoever holds it so. Fails: never.
    void unlock() noexcept { core_.unlock(); }
    void unlock_shared() noexcept { core_.unlock_shared(); }

private:
    detail::shared_mutex_core core_;
};

}  // namespace weft::inline v0
