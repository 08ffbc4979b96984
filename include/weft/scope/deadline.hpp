// deadline.hpp - a piece of code with a deadline, and one that cancellation does not reach.
//
//     auto page = with_timeout(2s, [&] { return fetch(url); });     // every wait inside obeys it
//     shield([&] { connection.close(); });                          // also if it was cancelled
//
// A deadline goes down the tree: the children of a group opened inside have it, too. Of two that
// nest, the earlier counts. Once it has passed, every wait inside says timed_out, or throws
// `cancelled`, which is caught at the edge.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <expected>
#include <functional>
#include <system_error>
#include <type_traits>

#include <weft/fiber/detail/deadline_scope.hpp>
#include <weft/scope/detail/off_shared_stack.hpp>
#include <weft/sync/detail/deadline.hpp>

namespace weft::inline v0 {

namespace detail {

template <class R>
inline constexpr bool is_error_expected = false;
template <class T>
inline constexpr bool is_error_expected<std::expected<T, std::error_code>> = true;

template <class R>
struct deadline_result {
    using type = std::expected<R, std::error_code>;
};
template <class R>
    requires is_error_expected<R>
struct deadline_result<R> {
    using type = R;
};

template <class F>
using deadline_result_of = typename deadline_result<std::invoke_result_t<F>>::type;

template <class F>
deadline_result_of<F> call_until(time_point deadline, time_point now, cancel_scope::shield shielded,
                                 F&& function) {
    using R = std::invoke_result_t<F>;
    static_assert(!std::is_reference_v<R>, "with_deadline: the function returns a reference");
    const off_shared_stack<deadline_scope> scope(deadline, now, shielded);
    const auto late = [] { return std::unexpected(error_code_of(cancel_reason::timed_out)); };
    try {
        if constexpr (is_error_expected<R>) {
            return std::invoke(std::forward<F>(function));
        } else if constexpr (std::is_void_v<R>) {
            std::invoke(std::forward<F>(function));
            if (scope->has_fired()) return late();
            return {};
        } else {
            deadline_result_of<F> result(std::in_place, std::invoke(std::forward<F>(function)));
            if (scope->has_fired()) return late();
            return result;
        }
    } catch (const cancelled& why) {
        if (scope->has_fired()) return late();
        return std::unexpected(error_code_of(why.reason()));
    }
}

template <class Rep, class Period, class F>
deadline_result_of<F> call_for(const char* called, std::chrono::duration<Rep, Period> limit,
                               cancel_scope::shield shielded, F&& function) {
    const time_point now = now_of_running_fiber(called);
    return call_until(deadline_after(now, limit), now, shielded, std::forward<F>(function));
}

}  // namespace detail

/// What the function returns, if its deadline did not pass before; if it returns an expected (with
/// std::error_code) itself, then that as it is. A deadline that has passed already is seen by the
/// function's first wait.
/// Suspends: as the function does. Cancel: as the function does; `cancelled` that leaves it is
/// reported. From: a fiber; elsewhere it aborts. Fails: std::errc::timed_out,
/// std::errc::operation_canceled.
template <class Clock, class Duration, std::invocable F>
[[nodiscard]] detail::deadline_result_of<F> with_deadline(
    std::chrono::time_point<Clock, Duration> when, F&& function) {
    const time_point now = detail::now_of_running_fiber("with_deadline");
    return detail::call_until(detail::deadline_at(when), now, cancel_scope::shield::no,
                              std::forward<F>(function));
}

/// The same, so long from now.
template <class Rep, class Period, std::invocable F>
[[nodiscard]] detail::deadline_result_of<F> with_timeout(std::chrono::duration<Rep, Period> limit,
                                                         F&& function) {
    return detail::call_for("with_timeout", limit, cancel_scope::shield::no,
                            std::forward<F>(function));
}

/// function(), whose waits do not see any cancellation or deadline from outside.
/// Suspends: as the function does. From: a fiber; elsewhere it aborts. Fails: as the function does.
template <std::invocable F>
decltype(auto) shield(F&& function) {
    static_cast<void>(detail::running_fiber("shield"));
    const detail::off_shared_stack<cancel_scope> scope(cancel_scope::shield::yes);
    return std::invoke(std::forward<F>(function));
}

/// The same, with a deadline of its own: then as with_timeout().
template <class Rep, class Period, std::invocable F>
[[nodiscard]] detail::deadline_result_of<F> shield(std::chrono::duration<Rep, Period> limit,
                                                   F&& function) {
    return detail::call_for("shield", limit, cancel_scope::shield::yes, std::forward<F>(function));
}

}  // namespace weft::inline v0
