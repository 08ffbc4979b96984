// event.hpp - something that is set, and those who wait until it is.
//
// Manual: once set it lets everybody through until it is reset. Automatic: each set lets one
// through, the eldest who waits, and is gone then; two sets with nobody waiting are one.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <expected>
#include <system_error>

#include <weft/sync/detail/deadline.hpp>
#include <weft/sync/detail/wait_word.hpp>

namespace weft::inline v0 {

/// automatic: the first who waits takes it, and it is no longer set.
enum class event_reset : bool {
    manual,     // by reset()
    automatic,  // by the one wait that it ends
};

/// What happened before set() happens before the wait that it ends. One that is set once and waited
/// for by one may be destroyed as soon as the wait has returned.
class event {
public:
    constexpr explicit event(event_reset reset = event_reset::manual, bool set = false) noexcept
        : word_(set ? 1 : 0), automatic_(reset == event_reset::automatic) {}
    event(const event&) = delete;
    event& operator=(const event&) = delete;
    /// Aborts: if somebody waits.
    ~event() { WEFT_ASSERT(!word_.has_waiters(), "event: destroyed while somebody waits for it"); }

    /// Suspends: never. From: any fiber or thread. Fails: never.
    void set() noexcept;
    /// From now on it has not happened. The contract: as set().
    void reset() noexcept;

    /// Out of date at once, unless it is known that nothing runs.
    [[nodiscard]] bool is_set() const noexcept {
        return word_.load(std::memory_order_acquire) >= detail::wait_word::unit;
    }

    /// Takes an automatic one.
    /// Suspends: never. From: any fiber or thread. Fails: by false, if it is not set.
    [[nodiscard]] bool try_wait() noexcept;

    /// Takes an automatic one.
    /// Suspends: maybe. Cancel: throws `cancelled`, and has taken nothing. From: any fiber or
    /// thread. Fails: never.
    void wait();

    /// Suspends: maybe. Cancel: reported. From: any fiber or thread. Fails: std::errc::timed_out,
    /// std::errc::operation_canceled.
    template <class Rep, class Period>
    [[nodiscard]] std::expected<void, std::error_code> wait_for(
        std::chrono::duration<Rep, Period> limit) {
        return detail::report_of(wait_until_set(detail::deadline_in(limit)));
    }
    /// As wait_for(), until a moment.
    template <class Clock, class Duration>
    [[nodiscard]] std::expected<void, std::error_code> wait_until(
        std::chrono::time_point<Clock, Duration> when) {
        return detail::report_of(
            detail::until(when, wait_outcome::timed_out,
                          [this](time_point deadline) { return wait_until_set(deadline); }));
    }

private:
    [[nodiscard]] wait_outcome wait_until_set(time_point deadline);

    detail::wait_word word_;  // 1: it is set
    const bool automatic_;
};

}  // namespace weft::inline v0
