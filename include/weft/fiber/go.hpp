// go.hpp - starting a fiber and forgetting it.
//
//     go(loop, [&] { ...; yield(); ... });
//
// A fiber is a plain function with a stack of its own, that gives up its thread when it waits.
// fiber.hpp has the handle of one that is joined.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>

#include <weft/fiber/detail/birth.hpp>

namespace weft::inline v0 {

/// What can be run as a fiber: called without arguments, and moved or copied into its block.
template <class F>
concept fiber_function = std::invocable < std::decay_t<F>
& > &&std::constructible_from<std::decay_t<F>, F> && !std::derived_from<std::decay_t<F>, executor>;

/// Runs function() as a fiber of this executor, some time after the call.
/// Suspends: never. From: any fiber or thread that the executor takes posts from. Fails: as the
/// callable's construction does, std::bad_alloc, std::invalid_argument; nothing was started then.
/// An exception that leaves the function goes to executor::unhandled().
template <fiber_function F>
void go(executor& home, const fiber_options& options, F&& function,
        std::source_location site = std::source_location::current()) {
    detail::start_fiber(*detail::bear(home, options, std::forward<F>(function), false, site));
}

template <fiber_function F>
void go(executor& home, F&& function, std::source_location site = std::source_location::current()) {
    go(home, detail::nothing_told, std::forward<F>(function), site);
}

/// On the executor of the running fiber; in a callable posted to a loop or pool, on that. Aborts:
/// outside any.
template <fiber_function F>
void go(const fiber_options& options, F&& function,
        std::source_location site = std::source_location::current()) {
    go(detail::current_executor("go"), options, std::forward<F>(function), site);
}

template <fiber_function F>
void go(F&& function, std::source_location site = std::source_location::current()) {
    go(detail::current_executor("go"), detail::nothing_told, std::forward<F>(function), site);
}

}  // namespace weft::inline v0
