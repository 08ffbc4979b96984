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
#include <weft/sync/detail/wait_word.hpp>

namespace weft::inline v0 {

namespace detail {

/// The number in its word (detail/wait_word.hpp), of which the protocol is in shared_mutex.cpp:
///
///     writing          a writer holds it
///     writer_starves   the next to unlock hands it over to a writer; only while it is held
///     reader_starves   the same for readers
///     reader * n       n readers hold it
///
/// The word's `queued` says that whoever frees the lock has to wake somebody: it is set only while
/// the lock is held, and not while somebody who was woken is on its way.
class shared_mutex_core {
public:
    constexpr shared_mutex_core() noexcept = default;
    shared_mutex_core(const shared_mutex_core&) = delete;
    shared_mutex_core& operator=(const shared_mutex_core&) = delete;
    ~shared_mutex_core() {
        WEFT_ASSERT(is_unused(), "shared_mutex: destroyed while it is held or waited for");
    }

    [[nodiscard]] bool try_lock() noexcept {
        if (!take()) return false;
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
        std::uint64_t held = writing * wait_word::unit;
        if (!word_.change(held, 0, std::memory_order_release)) [[unlikely]]
            unlock_slowly();
    }

    [[nodiscard]] bool try_lock_shared() noexcept {
        if (!take_shared()) return false;
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
        std::uint64_t seen = reader * wait_word::unit;  // a guess: to look first would be slow
        do {
            // release: readers change one word in turn, so the writer after them sees all they did
            if (word_.change(seen, seen - reader * wait_word::unit, std::memory_order_release))
                [[likely]]
                return;
        } while (may_just_leave(seen));
        unlock_shared_slowly();
    }

private:
    static constexpr std::uint64_t writing = 1;
    static constexpr std::uint64_t writer_starves = 2;
    static constexpr std::uint64_t reader_starves = 4;
    static constexpr std::uint64_t starving = writer_starves | reader_starves;
    static constexpr std::uint64_t reader = 8;

    /// For waits_for: whom a writer waits for, and whom a reader does.
    [[nodiscard]] static const void* holder_of(const void* lock) noexcept {
        const auto& core = *static_cast<const shared_mutex_core*>(lock);
        const void* const writer = core.owner_.get();
        return writer != nullptr ? writer : core.reader_.get();
    }
    [[nodiscard]] static const void* writer_of(const void* lock) noexcept {
        return static_cast<const shared_mutex_core*>(lock)->owner_.get();
    }

    // If it can be had at once. The first CAS guesses that nobody is there: to look first would be
    // slow, for that load waits for the locked instruction before it.
    [[nodiscard]] bool take() noexcept {
        std::uint64_t seen = 0;
        while (seen == 0)
            if (word_.change(seen, writing * wait_word::unit, std::memory_order_acquire))
                return true;
        return false;
    }
    [[nodiscard]] bool take_shared() noexcept {
        std::uint64_t seen = 0;
        do {
            if (word_.change(seen, seen + reader * wait_word::unit, std::memory_order_acquire))
                [[likely]]
                return true;
        } while ((seen & (wait_word::busy | (writing | starving) * wait_word::unit)) == 0);
        return false;
    }
    /// A reader, which nobody has to be woken after.
    [[nodiscard]] static bool may_just_leave(std::uint64_t seen) noexcept {
        const std::uint64_t number = seen / wait_word::unit;
        return (seen & wait_word::guarded) == 0 && number >= reader &&
               (number >= 2 * reader || (seen & wait_word::queued) == 0);
    }

    void lock_slowly();
    void lock_shared_slowly();
    [[nodiscard]] bool acquire(const wait_reason& reason, time_point deadline);
    [[nodiscard]] bool acquire_shared(const wait_reason& reason, time_point deadline);
    [[nodiscard]] bool look_again(bool (shared_mutex_core::*take_it)() noexcept) noexcept;
    [[nodiscard]] bool arrive() noexcept;
    [[nodiscard]] bool arrive_shared() noexcept;
    [[nodiscard]] bool enqueue(waiter& me, bool was_woken, bool starves) noexcept;
    [[nodiscard]] bool enqueue_shared(waiter& me, bool was_woken, bool starves) noexcept;
    void withdraw(waiter_queue& from, waiter& me) noexcept;
    void unlock_slowly() noexcept;
    void unlock_shared_slowly() noexcept;
    void free(std::uint64_t starves, bool by_writer) noexcept;
    [[nodiscard]] std::uint64_t hand_over(std::uint64_t starves, bool by_writer,
                                          woken_list& woken) noexcept;
    [[nodiscard]] bool wake_writer(woken_list& woken) noexcept;
    [[nodiscard]] bool wake_readers(woken_list& woken) noexcept;
    void leave(std::uint64_t number, woken_list& woken) noexcept;
    [[nodiscard]] bool is_unused() noexcept {
        return word_.load(std::memory_order_acquire) == 0 && word_.queue().empty() &&
               readers_.empty() && coming_ == 0;
    }

    wait_word word_;              // its queue is the writers'
    waiter_queue readers_;        // this and what follows is guarded by the word's bit
    std::uint32_t coming_ = 0;    // were woken, and have not come yet
    std::uint32_t admitted_ = 0;  // readers to whom it was handed over, the same
    bool handed_ = false;         // it was handed over to a writer, the same
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
