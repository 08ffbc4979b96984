// async.hpp - runs a function as a fiber; its result comes as a future.
//
//     future<page> one = async([&] { return fetch(url); });
//     future<page> two = async(pool, [&] { return fetch(other); });
//     show(one.get(), two.get());
//
// The future waits in its destructor for the function to end, as std's does, so that the function
// may refer to the caller's locals. It requests no stop: a fiber (fiber.hpp) does that. What runs
// is a root: cancellation and deadlines are not inherited. `cancelled` is an exception like any
// other here: it comes out of get().
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <memory>
#include <optional>
#include <source_location>
#include <type_traits>
#include <utility>

#include <weft/fiber/go.hpp>
#include <weft/sync/future.hpp>

namespace weft::inline v0 {

namespace detail {

template <class F>
using async_result = std::invoke_result_t<std::decay_t<F>&>;

/// What the fiber runs. The function is destroyed before its result can be had: then nothing of it
/// is left when the future's destructor returns.
template <class F, class R>
class async_call {
public:
    template <class G>
    async_call(G&& function, state_reference<future_state<R>> state)
        : function_(std::in_place, std::forward<G>(function)), state_(std::move(state)) {}
    async_call(async_call&&) = default;
    async_call& operator=(async_call&&) = delete;
    ~async_call() {
        function_.reset();
        if (state_) state_->abandon();  // it never ran: no stack was to be had
    }

    void operator()() {
        state_->begin_setting();
        state_->store_result_of([this]() -> R { return (*function_)(); });
        function_.reset();
        state_->complete();
    }

private:
    std::optional<F> function_;
    state_reference<future_state<R>> state_;
};

/// A function that runs in the first wait for it.
template <class F, class R>
class deferred_state final : public future_state<R> {
public:
    template <class G>
    explicit deferred_state(G&& function) : function_(std::in_place, std::forward<G>(function)) {
        this->deferred = true;
    }

private:
    void run_deferred() noexcept override {
        this->store_result_of([this]() -> R { return (*function_)(); });
        function_.reset();
        this->complete();
    }

    std::optional<F> function_;
};

template <class F>
[[nodiscard]] future<async_result<F>> defer_call(F&& function) {
    using R = async_result<F>;
    const state_reference<future_state<R>> state(
        new deferred_state<std::decay_t<F>, R>(std::forward<F>(function)));
    return future_access::make<R, future>(*state.get());
}

}  // namespace detail

/// Runs function() as a fiber of this executor.
/// Suspends: never. From: as go(). Fails: as go() does; nothing was started then.
template <fiber_function F>
[[nodiscard]] future<detail::async_result<F>> async(
    executor& home, const fiber_options& options, F&& function,
    std::source_location site = std::source_location::current()) {
    using R = detail::async_result<F>;
    using call = detail::async_call<std::decay_t<F>, R>;
    const detail::state_reference<detail::future_state<R>> state(new detail::future_state<R>);
    go(home, options, call(std::forward<F>(function), state), site);
    state->waits_at_end = true;
    return detail::future_access::make<R, future>(*state.get());
}

template <fiber_function F>
[[nodiscard]] future<detail::async_result<F>> async(
    executor& home, F&& function, std::source_location site = std::source_location::current()) {
    return async(home, fiber_options{}, std::forward<F>(function), site);
}

/// On the executor on which go() without one would start it. Aborts: outside any.
template <fiber_function F>
[[nodiscard]] future<detail::async_result<F>> async(
    const fiber_options& options, F&& function,
    std::source_location site = std::source_location::current()) {
    return async(detail::current_executor("async"), options, std::forward<F>(function), site);
}

template <fiber_function F>
[[nodiscard]] future<detail::async_result<F>> async(
    F&& function, std::source_location site = std::source_location::current()) {
    return async(detail::current_executor("async"), fiber_options{}, std::forward<F>(function),
                 site);
}

/// launch::async, alone or with deferred: as above. launch::deferred alone: function() runs in the
/// first wait() or get(), there and then, and never if nobody waits. (No place for the caller's
/// location: std::async, which launch brings along, would then be as good a match.)
template <fiber_function F>
[[nodiscard]] future<detail::async_result<F>> async(launch policy, F&& function) {
    if ((policy & launch::async) == launch::async) return async(std::forward<F>(function));
    return detail::defer_call(std::forward<F>(function));
}

template <fiber_function F>
[[nodiscard]] future<detail::async_result<F>> async(
    launch policy, executor& home, F&& function,
    std::source_location site = std::source_location::current()) {
    if ((policy & launch::async) == launch::async)
        return async(home, std::forward<F>(function), site);
    return detail::defer_call(std::forward<F>(function));
}

}  // namespace weft::inline v0
