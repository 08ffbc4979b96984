// shared_mutex.hpp - a lock that many readers may hold at once, or one writer; as std's.
//
// Whoever runs may take a free lock ahead of those who wait (it barges), as with mutex: the woken
// are not running yet. Neither side starves. Readers who come while a writer waits for readers wait
// too; when a writer unlocks, all readers who wait are woken, when the last reader does, the eldest
// writer; and who was beaten by newcomers for longer than a millisecond is handed the lock.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

#include <weft/sync/detail/deadline.hpp>
#include <weft/sync/detail/lock_owner.hpp>
#include <weft/sync/detail/shared_word.hpp>

namespace weft::inline v0 {

namespace detail {

/// Its word, and how one waits for it.
class shared_mutex_core {
public:
    constexpr shared_mutex_core() noexcept = default;
    shared_mutex_core(const shared_mutex_core&) = delete;
    shared_mutex_core& operator=(const shared_mutex_core&) = delete;
    ~shared_mutex_core() {
        WEFT_ASSERT(word_.is_unused(), "shared_mutex: destroyed while it is held or waited for");
    }

    [[nodiscard]] bool try_lock() noexcept {
        if (!word_.take()) return false;
        owner_.take();
        reader_.forget();
        return true;
    }
    void lock() {
        if (!try_lock()) [[unlikely]]
            lock_slowly();
    }
    [[nodiscard]] bool try_lock_until(time_point deadline);
    void unlock() noexcept {
        owner_.give("shared_mutex: unlocked by a fiber or thread that does not hold it");
        if (!word_.give()) [[unlikely]]
            word_.give_slowly();
    }

    [[nodiscard]] bool try_lock_shared() noexcept {
        if (!word_.take_shared()) return false;
        reader_.add();
        return true;
    }
    void lock_shared() {
        if (!try_lock_shared()) [[unlikely]]
            lock_shared_slowly();
    }
    [[nodiscard]] bool try_lock_shared_until(time_point deadline);
    void unlock_shared() noexcept {
        reader_.remove();
        if (!word_.give_shared()) [[unlikely]]
            word_.give_shared_slowly();
    }

private:
    /// For waits_for: whom a writer waits for, and whom a reader does.
    [[nodiscard]] static const void* holder_of(const void* lock) noexcept {
        const auto& core = *static_cast<const shared_mutex_core*>(lock);
        const void* const writer = core.owner_.get();
        return writer != nullptr ? writer : core.reader_.get();
    }
    [[nodiscard]] static const void* writer_of(const void* lock) noexcept {
        return static_cast<const shared_mutex_core*>(lock)->owner_.get();
    }

    void lock_slowly();
    void lock_shared_slowly();
    [[nodiscard]] bool acquire(const wait_reason& reason, time_point deadline);
    [[nodiscard]] bool acquire_shared(const wait_reason& reason, time_point deadline);
    [[nodiscard]] bool look_again(bool (shared_word::*take_it)() noexcept) noexcept;

    shared_word word_;
    [[no_unique_address]] lock_owner owner_;
    [[no_unique_address]] lock_reader reader_;
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
    /// Beside others who read. The contract: as lock().
    void lock_shared() { core_.lock_shared(); }

    /// Suspends: never. From: any fiber or thread. Fails: by false, if it cannot be had at once.
    [[nodiscard]] bool try_lock() noexcept { return core_.try_lock(); }
    /// Beside others who read. The contract: as try_lock().
    [[nodiscard]] bool try_lock_shared() noexcept { return core_.try_lock_shared(); }

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
    /// Beside others who read. The contract: as try_lock_for().
    template <class Rep, class Period>
    [[nodiscard]] bool try_lock_shared_for(std::chrono::duration<Rep, Period> limit) {
        return core_.try_lock_shared() || core_.try_lock_shared_until(detail::deadline_in(limit));
    }
    /// As try_lock_shared_for(), until a moment.
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
    /// What lock_shared() took. The contract: as unlock().
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
    /// Beside others who read. The contract: as lock().
    void lock_shared() { core_.lock_shared(); }

    /// Suspends: never. From: any fiber or thread. Fails: by false, if it cannot be had at once.
    [[nodiscard]] bool try_lock() noexcept { return core_.try_lock(); }
    /// Beside others who read. The contract: as try_lock().
    [[nodiscard]] bool try_lock_shared() noexcept { return core_.try_lock_shared(); }

    /// Suspends: never. From: whoever holds it so. Fails: never.
    void unlock() noexcept { core_.unlock(); }
    /// What lock_shared() took. The contract: as unlock().
    void unlock_shared() noexcept { core_.unlock_shared(); }

private:
    detail::shared_mutex_core core_;
};

}  // namespace weft::inline v0
