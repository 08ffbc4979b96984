// fiber.hpp - the handle of a fiber, as std::jthread is that of a thread.
//
//     fiber f(loop, [](std::stop_token stop) { while (!stop.stop_requested()) ...; });
//     f.join();
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <functional>
#include <source_location>
#include <stop_token>
#include <tuple>

#include <weft/fiber/cancel.hpp>
#include <weft/fiber/go.hpp>
#include <weft/fiber/this_fiber.hpp>

namespace weft::inline v0 {

class fiber;

namespace detail {

// What a fiber with arguments calls; the stop token comes first if the function takes one.
template <class F, class... Args>
class bound_call {
public:
    template <class G, class... Values>
    explicit bound_call(G&& function, Values&&... values)
        : function_(std::forward<G>(function)), values_(std::forward<Values>(values)...) {}

    void operator()() {
        std::apply(
            [this](Args&... values) {
                if constexpr (std::invocable<F, std::stop_token, Args...>)
                    std::invoke(std::move(function_), get_stop_token(), std::move(values)...);
                else
                    std::invoke(std::move(function_), std::move(values)...);
            },
            values_);
    }

private:
    F function_;
    std::tuple<Args...> values_;
};

/// An executor and the line that named it.
struct executor_at {
    template <std::derived_from<executor> E>
    executor_at(E& named, std::source_location at = std::source_location::current()) noexcept
        : home(named), site(at) {}
    executor& home;
    std::source_location site;
};

/// As that of go(). Of more arguments than three which line asked is not known.
[[nodiscard]] inline executor_at executor_here(std::source_location site = {}) {
    return executor_at(current_executor("fiber"), site);
}

template <class F, class... Args>
concept callable_with = std::invocable<std::decay_t<F>, std::decay_t<Args>...> ||
    std::invocable<std::decay_t<F>, std::stop_token, std::decay_t<Args>...>;

// What may stand first where no executor and no options do.
template <class F>
concept no_place = !std::derived_from<std::remove_cvref_t<F>, executor> &&
                   !std::same_as<std::remove_cvref_t<F>, fiber_options> &&
                   !std::same_as<std::remove_cvref_t<F>, fiber>;

}  // namespace detail

/// Thread-safe: no; the fiber behind it runs where it runs.
class fiber {
public:
    /// As std::jthread::id.
    using id = fiber_id;

    fiber() noexcept = default;

    // Version 14 indents whatever follows a constrained constructor by one more.
    // clang-format off

    /// Starts function(args...), or function(stop_token, args...).
    /// Fails: as go() does.
    template <class F, class... Args>
        requires detail::callable_with<F, Args...>
    fiber(detail::executor_at where, const fiber_options& options, F&& function, Args&&... args) {
        using call = detail::bound_call<std::decay_t<F>, std::decay_t<Args>...>;
        start(detail::bear(where.home, options,
                           call(std::forward<F>(function), std::forward<Args>(args)...), true,
                           where.site));
    }
    template <class F, class... Args>
        requires detail::callable_with<F, Args...>
    fiber(detail::executor_at where, F&& function, Args&&... args)
        : fiber(where, fiber_options{}, std::forward<F>(function), std::forward<Args>(args)...) {}

    /// On the executor on which go() without one would start it. Aborts: outside any.
    template <class F>
        requires detail::callable_with<F>
    fiber(const fiber_options& options, F&& function,
          std::source_location site = std::source_location::current())
        : fiber(detail::executor_here(site), options, std::forward<F>(function)) {}
    template <class F>
        requires(detail::callable_with<F> && detail::no_place<F>)
    explicit fiber(F&& function, std::source_location site = std::source_location::current())
        : fiber(detail::executor_here(site), fiber_options{}, std::forward<F>(function)) {}
    /// The same with arguments. A pack before the line could not be deduced: one to three by hand.
    template <class F, class A>
        requires detail::callable_with<F, A>
    fiber(const fiber_options& options, F&& function, A&& a,
          std::source_location site = std::source_location::current())
        : fiber(detail::executor_here(site), options, std::forward<F>(function),
                std::forward<A>(a)) {}
    template <class F, class A, class B>
        requires detail::callable_with<F, A, B>
    fiber(const fiber_options& options, F&& function, A&& a, B&& b,
          std::source_location site = std::source_location::current())
        : fiber(detail::executor_here(site), options, std::forward<F>(function),
                std::forward<A>(a), std::forward<B>(b)) {}
    template <class F, class A, class B, class C>
        requires detail::callable_with<F, A, B, C>
    fiber(const fiber_options& options, F&& function, A&& a, B&& b, C&& c,
          std::source_location site = std::source_location::current())
        : fiber(detail::executor_here(site), options, std::forward<F>(function),
                std::forward<A>(a), std::forward<B>(b), std::forward<C>(c)) {}
    template <class F, class A>
        requires(detail::callable_with<F, A> && detail::no_place<F>)
    explicit fiber(F&& function, A&& a,
                   std::source_location site = std::source_location::current())
        : fiber(fiber_options{}, std::forward<F>(function), std::forward<A>(a), site) {}
    template <class F, class A, class B>
        requires(detail::callable_with<F, A, B> && detail::no_place<F>)
    explicit fiber(F&& function, A&& a, B&& b,
                   std::source_location site = std::source_location::current())
        : fiber(fiber_options{}, std::forward<F>(function), std::forward<A>(a),
                std::forward<B>(b), site) {}
    template <class F, class A, class B, class C>
        requires(detail::callable_with<F, A, B, C> && detail::no_place<F>)
    explicit fiber(F&& function, A&& a, B&& b, C&& c,
                   std::source_location site = std::source_location::current())
        : fiber(fiber_options{}, std::forward<F>(function), std::forward<A>(a),
                std::forward<B>(b), std::forward<C>(c), site) {}
    /// With more of them reports do not say where it was started, unless the executor is named.
    template <class F, class... Args>
        requires(sizeof...(Args) > 3 && detail::callable_with<F, Args...>)
    fiber(const fiber_options& options, F&& function, Args&&... args)
        : fiber(detail::executor_here(), options, std::forward<F>(function),
                std::forward<Args>(args)...) {}
    template <class F, class... Args>
        requires(sizeof...(Args) > 3 && detail::callable_with<F, Args...> && detail::no_place<F>)
    explicit fiber(F&& function, Args&&... args)
        : fiber(detail::executor_here(), fiber_options{}, std::forward<F>(function),
                std::forward<Args>(args)...) {}

    fiber(fiber&& other) noexcept : block_(std::exchange(other.block_, nullptr)) {}
    fiber& operator=(fiber&& other) noexcept {
        fiber taken(std::move(other));
        std::swap(block_, taken.block_);
        return *this;
    }
    /// Requests stop and waits for the end. Cancel: ignored. An exception that left the fiber goes
    /// to executor::unhandled(), so a handle that was not joined must not outlive the executor.
    /// From: as join().
    ~fiber();

    /// Waits for the end, and throws what left the fiber.
    /// Suspends: maybe. Cancel: throws `cancelled`, and it can be joined again. From: any fiber or
    /// thread, but not the fiber itself. Aborts: if there is nothing to join; in a posted callable,
    /// if the fiber has not ended.
    void join();
    /// Lets it run alone. What leaves it then goes to executor::unhandled().
    void detach() noexcept;
    /// Whether there is something to join or detach.
    [[nodiscard]] bool joinable() const noexcept { return block_ != nullptr; }

    /// Asks the fiber to stop; its waits that can be cancelled are. True: it had not been asked.
    /// From: any thread.
    bool request_stop() noexcept;
    /// Empty without a fiber.
    [[nodiscard]] fiber_id get_id() const noexcept { return fiber_id(block_); }
    /// For unpark().
    [[nodiscard]] fiber_handle handle() const noexcept;
    /// What get_stop_token() says in the fiber itself, outside of any scope. Without a fiber: one
    /// that no stop is possible for.
    /// Suspends: never. From: any thread. Fails: std::bad_alloc.
    [[nodiscard]] std::stop_token get_stop_token() const;
    /// Each is the handle of the other's fiber.
    void swap(fiber& other) noexcept { std::swap(block_, other.block_); }
    friend void swap(fiber& a, fiber& b) noexcept { a.swap(b); }

private:
    void start(detail::fiber_block* block) noexcept;

    detail::fiber_block* block_ = nullptr;
};
// clang-format on

}  // namespace weft::inline v0
