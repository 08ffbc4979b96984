// semaphore.hpp - counting_semaphore and binary_semaphore, as std's.
//
// A release hands its permits to those who wait, the eldest first; nobody comes in between. A wait
// that is cancelled throws `cancelled`.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>

#include <weft/sync/detail/deadline.hpp>
#include <weft/sync/detail/wait_word.hpp>

namespace weft::inline v0 {

namespace detail {

class semaphore_core {
public:
    constexpr explicit semaphore_core(std::uint64_t permits) noexcept : word_(permits) {}
    ~semaphore_core() {
        WEFT_ASSERT(!word_.has_waiters(), "semaphore: destroyed while somebody waits for it");
    }
    void release(std::uint64_t count, std::uint64_t most) noexcept;
    [[nodiscard]] bool try_acquire() noexcept;
    /// False: it came to its deadline. Cancel: throws.
    [[nodiscard]] bool acquire(time_point deadline);

private:
    wait_word word_;  // the number of permits; 0 while somebody waits
};

}  // namespace detail

/// As std::counting_semaphore; a release gives its permits to those who wait.
template <std::ptrdiff_t LeastMax = (std::ptrdiff_t{1} << 61) - 1>
class counting_semaphore {
    static_assert(LeastMax >= 0 && LeastMax < std::ptrdiff_t{1} << 61);

public:
    /// Aborts: if that is negative, or more than max().
    constexpr explicit counting_semaphore(std::ptrdiff_t desired) noexcept
        : core_(static_cast<std::uint64_t>(desired)) {
        WEFT_ASSERT(desired >= 0 && desired <= LeastMax,
                    "semaphore: begins with fewer permits than none, or more than max()");
    }
    counting_semaphore(const counting_semaphore&) = delete;
    counting_semaphore& operator=(const counting_semaphore&) = delete;
    /// Aborts: if somebody waits.
    ~counting_semaphore() = default;

    /// How many permits there can be at most.
    [[nodiscard]] static constexpr std::ptrdiff_t max() noexcept { return LeastMax; }

    /// Aborts: if there were more than max() then.
    /// Suspends: never. From: any fiber or thread. Fails: never.
    void release(std::ptrdiff_t update = 1) noexcept {
        WEFT_ASSERT(update >= 0, "semaphore: releases fewer permits than none");
        core_.release(static_cast<std::uint64_t>(update), static_cast<std::uint64_t>(LeastMax));
    }

    /// Suspends: maybe. Cancel: throws `cancelled`, and has taken nothing. From: any fiber or
    /// thread. Fails: never.
    void acquire() { static_cast<void>(core_.try_acquire() || core_.acquire(no_deadline)); }

    /// Suspends: never. From: any fiber or thread. Fails: by false, if there is none.
    [[nodiscard]] bool try_acquire() noexcept { return core_.try_acquire(); }

    /// Suspends: maybe. Cancel: throws `cancelled`. From: any fiber or thread. Fails: by false, if
    /// the time has passed.
    template <class Rep, class Period>
    [[nodiscard]] bool try_acquire_for(std::chrono::duration<Rep, Period> limit) {
        return core_.try_acquire() || core_.acquire(detail::deadline_in(limit));
    }
    /// As try_acquire_for(), until a moment.
    template <class Clock, class Duration>
    [[nodiscard]] bool try_acquire_until(std::chrono::time_point<Clock, Duration> when) {
        return core_.try_acquire() || detail::until(when, false, [this](time_point deadline) {
                   return core_.acquire(deadline);
               });
    }

private:
    detail::semaphore_core core_;
};

/// One permit at most.
using binary_semaphore = counting_semaphore<1>;

}  // namespace weft::inline v0
