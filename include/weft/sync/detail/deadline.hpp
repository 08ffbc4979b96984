// deadline.hpp - timed waits by whatever clock a program uses (fiber/detail/deadline_at.hpp), and
// what they report.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <concepts>
#include <expected>
#include <system_error>

#include <weft/base/clock_source.hpp>
#include <weft/fiber/cancel.hpp>
#include <weft/fiber/detail/deadline_at.hpp>
#include <weft/fiber/this_fiber.hpp>
#include <weft/fiber/waiter.hpp>

namespace weft::inline v0::detail {

/// attempt(deadline) until it says something else than `late`, or until it is late by the clock
/// that the caller named.
template <class Clock, class Duration, class Attempt, class Result>
Result until(std::chrono::time_point<Clock, Duration> when, Result late, Attempt attempt) {
    for (;;) {
        const Result result = attempt(deadline_at(when));
        if (result != late || is_late(when)) return result;
    }
}

/// lock.try_lock_until(), which says false if it is late or cancelled, by any clock.
template <class Lock, class Clock, class Duration>
[[nodiscard]] bool lock_until(Lock& lock, std::chrono::time_point<Clock, Duration> when) {
    for (;;) {
        if (lock.try_lock_until(deadline_at(when))) return true;
        if (this_fiber::stop_requested() || is_late(when)) return false;
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
