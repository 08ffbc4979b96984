// deadline.hpp - the deadlines of timed waits, from whatever clock and duration a program uses.
//
// A time_point of std::chrono::steady_clock is one of the executor's clock. Others are asked what
// time it is and converted; since such a clock may be set, it is asked again when the time has
// come.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <concepts>
#include <expected>
#include <system_error>

#include <weft/base/clock_source.hpp>
#include <weft/fiber/cancel.hpp>
#include <weft/fiber/this_fiber.hpp>
#include <weft/fiber/waiter.hpp>

namespace weft::inline v0::detail {

template <class Rep, class Period>
[[nodiscard]] time_point deadline_in(std::chrono::duration<Rep, Period> wait) noexcept {
    return deadline_after(now_for_sleep(), wait);
}

template <class Clock, class Duration>
[[nodiscard]] time_point deadline_at(std::chrono::time_point<Clock, Duration> when) {
    if constexpr (std::same_as<Clock, std::chrono::steady_clock>) {
        using wide = std::chrono::duration<long double, std::nano>;
        const wide since(when.time_since_epoch());
        if (since >= wide(time_point::max().time_since_epoch())) return no_deadline;
        if (since <= wide(time_point::min().time_since_epoch())) return time_point::min();
        return time_point(std::chrono::ceil<time_point::duration>(when.time_since_epoch()));
    } else {
        const auto now = Clock::now();
        if (when <= now) return now_for_sleep();
        return deadline_after(now_for_sleep(), when - now);
    }
}

/// attempt(deadline) until it says something else than `late`, or until it is late by the clock
/// that the caller named.
template <class Clock, class Duration, class Attempt, class Result>
Result until(std::chrono::time_point<Clock, Duration> when, Result late, Attempt attempt) {
    for (;;) {
        const Result result = attempt(deadline_at(when));
        if constexpr (std::same_as<Clock, std::chrono::steady_clock>)
            return result;
        else if (result != late || Clock::now() >= when)
            return result;
    }
}

/// lock.try_lock_until(), which says false if it is late or cancelled, by any clock.
template <class Lock, class Clock, class Duration>
[[nodiscard]] bool lock_until(Lock& lock, std::chrono::time_point<Clock, Duration> when) {
    for (;;) {
        if (lock.try_lock_until(deadline_at(when))) return true;
        if (std::same_as<Clock, std::chrono::steady_clock> || this_fiber::stop_requested() ||
            Clock::now() >= when)
            return false;
    }
}

/// What a wait came to, for timed forms that report.
[[nodiscard]] inline std::expected<void, std::error_code> report_of(wait_outcome outcome) {
    if (outcome == wait_outcome::event) return {};
    if (outcome == wait_outcome::timed_out)
        return std::unexpected(std::make_error_code(std::errc::timed_out));
    return std::unexpected(error_code_of(this_fiber::stop_reason()));
}

}  // namespace weft::inline v0::detail
