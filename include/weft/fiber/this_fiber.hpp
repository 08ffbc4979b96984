// this_fiber.hpp - what a fiber does to itself: yield, sleep, park; and who it is.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <compare>
#include <cstddef>
#include <expected>
#include <functional>
#include <iosfwd>
#include <string_view>
#include <system_error>
#include <utility>

#include <weft/base/clock_source.hpp>
#include <weft/exec/executor.hpp>
#include <weft/fiber/detail/deadline_at.hpp>
#include <weft/fiber/detail/straight_wait.hpp>

namespace weft::inline v0 {

namespace detail {
struct fiber_block;
struct handle_access;
[[nodiscard]] std::expected<void, std::error_code> sleep(time_point deadline);
/// Aborts, naming the call, outside any fiber.
[[nodiscard]] executor& home_of_running_fiber(const char* call) noexcept;
/// yield_if_due() for calls of which many fit into a slice: one in 64 looks.
void yield_if_due_rarely();
}  // namespace detail

/// Which fiber; equal only for the same one, also after its end while somebody holds it.
class fiber_id {
public:
    constexpr fiber_id() noexcept = default;
    explicit fiber_id(const detail::fiber_block* block) noexcept : block_(block) {}
    [[nodiscard]] auto operator<=>(const fiber_id&) const noexcept = default;
    [[nodiscard]] explicit operator bool() const noexcept { return block_ != nullptr; }
    template <class Char, class Traits>
    friend std::basic_ostream<Char, Traits>& operator<<(std::basic_ostream<Char, Traits>& out,
                                                        fiber_id id) {
        return out << static_cast<const void*>(id.block_);
    }

private:
    friend struct std::hash<fiber_id>;
    const detail::fiber_block* block_ = nullptr;
};

/// A counted reference to a fiber, for unpark(). Empty: no fiber. Copying and dropping it is
/// thread-safe.
class fiber_handle {
public:
    fiber_handle() noexcept = default;
    explicit fiber_handle(detail::fiber_block& block) noexcept;
    fiber_handle(const fiber_handle& other) noexcept;
    fiber_handle(fiber_handle&& other) noexcept : block_(std::exchange(other.block_, nullptr)) {}
    fiber_handle& operator=(fiber_handle other) noexcept {
        std::swap(block_, other.block_);
        return *this;
    }
    ~fiber_handle();

    /// Empty without a fiber.
    [[nodiscard]] fiber_id get_id() const noexcept { return fiber_id(block_); }
    [[nodiscard]] explicit operator bool() const noexcept { return block_ != nullptr; }

private:
    friend struct detail::handle_access;
    detail::fiber_block* block_ = nullptr;
};

/// Lets everybody run who is ready; with nobody else it costs no switch.
/// Suspends: maybe. Cancel: ignored. From: a fiber; elsewhere it aborts. Fails: never.
[[gnu::always_inline]] inline void yield() {
    if (const detail::straight_fiber fiber = detail::straight_fiber::here()) [[likely]]
        fiber.yield();
    else
        detail::call_switching(&detail::yield_function, nullptr);
}

/// yield(), if this fiber has held its worker for longer than the executor allows (1 ms, unless it
/// says otherwise: loop_options::slice). Counted from its first call, if it is not known when it
/// went on: no dispatch reads the clock. Most calls count down and return; the executor's clock is
/// read as often as the distance of the calls demands, so that it is late by a quarter of its slice
/// at most (docs/no_preemption.md). Nothing is preempted against its will.
/// Suspends: maybe. Cancel: ignored. From: a fiber; elsewhere it aborts. Fails: never.
void yield_if_due();

/// Never returns early, but by cancellation. What has passed already costs no switch.
/// Suspends: maybe. Cancel: reported. From: any fiber or thread. Fails:
/// std::errc::operation_canceled; std::errc::timed_out, if a deadline scope around it ran out.
inline std::expected<void, std::error_code> sleep_until(time_point deadline) {
    return detail::sleep(deadline);
}
/// The same by any clock, which is asked again when the time has come.
template <class Clock, class Duration>
std::expected<void, std::error_code> sleep_until(std::chrono::time_point<Clock, Duration> when) {
    for (;;) {
        const auto slept = detail::sleep(detail::deadline_at(when));
        if (!slept.has_value() || detail::is_late(when)) return slept;
    }
}

/// Durations that are not positive have passed already; those that cannot be represented never do.
template <class Rep, class Period>
std::expected<void, std::error_code> sleep_for(std::chrono::duration<Rep, Period> duration) {
    return detail::sleep(deadline_after(detail::now_for_sleep(), duration));
}

/// Waits until unpark() gives this fiber its permit, and takes it. Never returns without.
/// Suspends: maybe. Cancel: reported; a permit that came stays. From: a fiber; elsewhere it aborts.
/// Fails: as sleep_until().
std::expected<void, std::error_code> park();
/// Fails: std::errc::operation_canceled, std::errc::timed_out.
std::expected<void, std::error_code> park_until(time_point deadline);
template <class Clock, class Duration>
std::expected<void, std::error_code> park_until(std::chrono::time_point<Clock, Duration> when) {
    for (;;) {
        const auto parked = park_until(detail::deadline_at(when));
        if (parked.has_value() || parked.error() != std::errc::timed_out || detail::is_late(when))
            return parked;
    }
}

/// Gives the fiber its permit; once until it is taken. What happened before it happens before the
/// park() that it releases. A no-op on a fiber that has ended.
/// Suspends: never. From: any thread. Fails: never.
void unpark(const fiber_handle& fiber) noexcept;

/// Goes on as a fiber of another executor.
/// Suspends: always, unless it is there already. Cancel: ignored. From: a fiber that is neither
/// pinned nor swapped nor on a thread of its own; otherwise it aborts. Fails: never.
void switch_to(executor& there);

/// function() on another executor; then back.
template <class F>
decltype(auto) on(executor& there, F&& function);

namespace this_fiber {

using weft::park;
using weft::park_until;
using weft::sleep_for;
using weft::sleep_until;
using weft::yield;

/// Not a fiber: an empty one.
[[nodiscard]] fiber_id get_id() noexcept;
/// "" if it has none, or outside a fiber.
[[nodiscard]] std::string_view name() noexcept;
/// Aborts outside a fiber.
[[nodiscard]] weft::executor& executor() noexcept;
/// Aborts outside a fiber.
[[nodiscard]] fiber_handle handle() noexcept;

}  // namespace this_fiber

namespace detail {
// It will come back, so its home must not end meanwhile.
class back_to {
public:
    explicit back_to(executor& home) noexcept : home_(home) { home_.add_work(1); }
    back_to(const back_to&) = delete;
    back_to& operator=(const back_to&) = delete;
    ~back_to() {
        switch_to(home_);
        home_.add_work(-1);
    }

private:
    executor& home_;
};
}  // namespace detail

template <class F>
decltype(auto) on(executor& there, F&& function) {
    const detail::back_to back(detail::home_of_running_fiber("on"));
    switch_to(there);
    return std::forward<F>(function)();
}

}  // namespace weft::inline v0

template <>
struct std::hash<weft::fiber_id> {
    std::size_t operator()(weft::fiber_id id) const noexcept {
        return std::hash<const void*>()(id.block_);
    }
};
