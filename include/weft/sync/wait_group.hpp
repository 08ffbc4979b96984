// wait_group.hpp - waits until a number of things are done.
//
//     wait_group wg;
//     for (auto& item : items) {
//         wg.add();
//         go(p, [&] { const auto done = wg.guard(); handle(item); });
//     }
//     wg.wait();    // after that it may be destroyed, or used again
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <expected>
#include <system_error>
#include <utility>

#include <weft/sync/detail/deadline.hpp>
#include <weft/sync/detail/wait_word.hpp>

namespace weft::inline v0 {

/// Thread-safe. What happened before a done() happens before the wait() that it ends. It has a
/// cache line for itself: every done() takes that to its own processor, and with it whatever else
/// lay there, such as the variables of whoever starts the fibers.
class alignas(64) wait_group {
public:
    explicit wait_group(std::size_t count = 0) noexcept : word_(count) {}
    wait_group(const wait_group&) = delete;
    wait_group& operator=(const wait_group&) = delete;
    /// Aborts: if somebody waits.
    ~wait_group() {
        WEFT_ASSERT(!word_.has_waiters(), "wait_group: destroyed while somebody waits for it");
    }

    /// So many more to wait for. From zero on it must not run beside a wait() that should see it.
    /// Suspends: never. From: any fiber or thread. Fails: never.
    void add(std::size_t count = 1) noexcept;

    /// One is done; the last one lets everybody go on who waits. Aborts: more often than add().
    /// Suspends: never. From: any fiber or thread. Fails: never.
    void done() noexcept;

    /// Calls done() when it is destroyed.
    class [[nodiscard]] done_guard {
    public:
        explicit done_guard(wait_group& group) noexcept : group_(&group) {}
        done_guard(done_guard&& other) noexcept : group_(std::exchange(other.group_, nullptr)) {}
        done_guard& operator=(done_guard&&) = delete;
        ~done_guard() {
            if (group_ != nullptr) group_->done();
        }

    private:
        wait_group* group_;
    };
    /// done() at the end of the block.
    done_guard guard() noexcept { return done_guard(*this); }

    /// Until as many are done as were added.
    /// Suspends: maybe. Cancel: throws `cancelled`. From: any fiber or thread. Fails: never.
    void wait();

    /// The same, not longer than that.
    /// Suspends: maybe. Cancel: reported. From: any fiber or thread. Fails: std::errc::timed_out,
    /// std::errc::operation_canceled.
    template <class Rep, class Period>
    [[nodiscard]] std::expected<void, std::error_code> wait_for(
        std::chrono::duration<Rep, Period> limit) {
        return detail::report_of(wait_until_done(detail::deadline_in(limit)));
    }
    /// As wait_for(), until a moment.
    template <class Clock, class Duration>
    [[nodiscard]] std::expected<void, std::error_code> wait_until(
        std::chrono::time_point<Clock, Duration> when) {
        return detail::report_of(
            detail::until(when, wait_outcome::timed_out,
                          [this](time_point deadline) { return wait_until_done(deadline); }));
    }

    /// How many are not done. Out of date at once, unless it is known that nothing runs.
    [[nodiscard]] std::size_t count() const noexcept {
        return word_.load(std::memory_order_acquire) / detail::wait_word::unit;
    }

private:
    [[nodiscard]] wait_outcome wait_until_done(time_point deadline);

    detail::wait_word word_;  // the number of those that are not done
};

}  // namespace weft::inline v0
