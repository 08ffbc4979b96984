// deadline_at.hpp - the deadline of a timed wait, from whatever clock and duration a program uses.
//
// A time_point of std::chrono::steady_clock is one of the executor's clock. Others are asked what
// time it is and converted; since such a clock may be set, it is asked again when the time has
// come.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <concepts>

#include <weft/base/clock_source.hpp>

namespace weft::inline v0::detail {

/// What the clock of the running fiber's executor says; in a plain thread, the steady clock.
[[nodiscard]] time_point now_for_sleep() noexcept;

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
        // In wide numbers: the farthest moment of a clock in hours is none in nanoseconds.
        using wide = std::chrono::duration<long double, std::nano>;
        const wide left = wide(when.time_since_epoch()) - wide(Clock::now().time_since_epoch());
        return deadline_after(now_for_sleep(), left);
    }
}

/// Whether a wait that was late by deadline_at() is late by the clock that the caller named.
template <class Clock, class Duration>
[[nodiscard]] bool is_late(std::chrono::time_point<Clock, Duration> when) {
    using wide = std::chrono::duration<long double, std::nano>;
    return std::same_as<Clock, std::chrono::steady_clock> ||
           wide(Clock::now().time_since_epoch()) >= wide(when.time_since_epoch());
}

}  // namespace weft::inline v0::detail
