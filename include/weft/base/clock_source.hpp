// clock_source.hpp - where time comes from, so that a test or a simulation can bring its own.
//
// Nothing in weft reads a clock directly: it asks its executor's clock_source.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>

#include <weft/base/version.hpp>

namespace weft::inline v0 {

/// A moment of an executor's clock; of the steady clock, unless that was replaced.
using time_point = std::chrono::steady_clock::time_point;

/// The deadline of whoever waits without limit.
inline constexpr time_point no_deadline = time_point::max();

class clock_source {
public:
    virtual ~clock_source() = default;
    /// Never goes backwards. From: any thread.
    [[nodiscard]] virtual time_point now() noexcept = 0;
    /// Whether time passes while everybody waits. If not, a loop with nothing ready does not sleep
    /// for its timers: they are stuck until somebody moves the clock.
    [[nodiscard]] virtual bool moves() const noexcept { return true; }
};

/// std::chrono::steady_clock. Never destroyed.
[[nodiscard]] clock_source& steady_clock_source() noexcept;

/// A clock that stands still until it is told to move. Thread-safe.
class manual_clock final : public clock_source {
public:
    explicit manual_clock(time_point start = time_point{}) noexcept
        : now_(start.time_since_epoch().count()) {}

    /// Moves it on; whoever sleeps until then is woken by the next run, step or poll.
    void advance(std::chrono::nanoseconds by) noexcept {
        now_.fetch_add(by.count(), std::memory_order_release);
    }
    [[nodiscard]] time_point now() noexcept override {
        return time_point(time_point::duration(now_.load(std::memory_order_acquire)));
    }
    [[nodiscard]] bool moves() const noexcept override { return false; }

private:
    std::atomic<time_point::rep> now_;
};

/// now + wait, where what cannot be represented is no_deadline, and what is not positive is now.
template <class Rep, class Period>
[[nodiscard]] time_point deadline_after(time_point now,
                                        std::chrono::duration<Rep, Period> wait) noexcept {
    using wide = std::chrono::duration<long double, std::nano>;
    if (!(wait > wait.zero())) return now;  // a NaN is not positive either
    const wide longest = no_deadline.time_since_epoch();
    if (wide(wait) >= longest || wide(wait) >= longest - now.time_since_epoch()) return no_deadline;
    return now + std::chrono::ceil<time_point::duration>(wait);
}

}  // namespace weft::inline v0
