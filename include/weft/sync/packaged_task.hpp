// packaged_task.hpp - a function whose result goes to a future: std's packaged_task.
//
//     packaged_task<int(int)> twice([](int n) { return 2 * n; });
//     future<int> f = twice.get_future();
//     go(s, [t = std::move(twice)]() mutable { t(21); });
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <utility>

#include <weft/sync/future.hpp>

namespace weft::inline v0 {

namespace detail {

template <class Function>
struct signature_of;
template <class Signature>
struct signature_of<std::function<Signature>> {
    using type = Signature;
};

template <class R, class... Args>
class task_state : public future_state<R> {
public:
    virtual void call(Args... args) = 0;
    /// A new one with the same function.
    [[nodiscard]] virtual task_state* renew() = 0;
};

template <class F, class R, class... Args>
class task_state_of final : public task_state<R, Args...> {
public:
    template <class G>
    explicit task_state_of(G&& function) : function_(std::forward<G>(function)) {}

    void call(Args... args) override {
        this->begin_setting();
        this->store_result_of(
            [&]() -> R { return std::invoke_r<R>(function_, std::forward<Args>(args)...); });
        this->complete();
    }
    [[nodiscard]] task_state<R, Args...>* renew() override {
        return new task_state_of(std::move(function_));
    }

private:
    F function_;
};

}  // namespace detail

/// As std::packaged_task: a callable whose result goes to a future.
template <class Signature>
class packaged_task;

/// Thread-safe: no. One that is destroyed before it was called breaks its promise.
template <class R, class... Args>
class packaged_task<R(Args...)> {
public:
    packaged_task() noexcept = default;
    /// Fails: std::bad_alloc, and as the function's construction does.
    template <class F>
        requires(!std::same_as<std::remove_cvref_t<F>, packaged_task> &&
                 std::is_invocable_r_v<R, std::decay_t<F>&, Args...>)
    explicit packaged_task(F&& function)
        : state_(
              new detail::task_state_of<std::decay_t<F>, R, Args...>(std::forward<F>(function))) {}
    packaged_task(packaged_task&&) noexcept = default;
    packaged_task& operator=(packaged_task&& other) noexcept {
        packaged_task(std::move(other)).swap(*this);
        return *this;
    }
    ~packaged_task() {
        if (state_) state_->abandon();
    }

    /// Whether it has a task.
    [[nodiscard]] bool valid() const noexcept { return static_cast<bool>(state_); }
    /// Each has the other's task.
    void swap(packaged_task& other) noexcept { std::swap(state_, other.state_); }

    /// Once. Fails: std::future_error (no_state, future_already_retrieved).
    [[nodiscard]] future<R> get_future() {
        detail::require_state(state_.get());
        return detail::future_access::make<R, future>(*state_.get());
    }

    /// Calls the function; what it returns or throws goes to the future.
    /// Suspends: if the function does. Fails: std::future_error (no_state,
    /// promise_already_satisfied).
    void operator()(Args... args) {
        detail::require_state(state_.get());
        const auto kept = state_;  // whoever waits may destroy the task
        kept->call(std::forward<Args>(args)...);
    }

    /// Forgets the result, and can be called anew. Fails: std::future_error (no_state),
    /// std::bad_alloc, and as the function's move does.
    void reset() {
        detail::require_state(state_.get());
        packaged_task renewed;
        renewed.state_ = reference(state_->renew());
        swap(renewed);
    }

private:
    using reference = detail::state_reference<detail::task_state<R, Args...>>;
    reference state_;
};

template <class R, class... Args>
packaged_task(R (*)(Args...)) -> packaged_task<R(Args...)>;
// What std::function makes of a callable object, as the standard library has it.
template <class F, class Signature = decltype(std::function(std::declval<F>()))>
packaged_task(F) -> packaged_task<typename detail::signature_of<Signature>::type>;

/// a.swap(b).
template <class Signature>
void swap(packaged_task<Signature>& a, packaged_task<Signature>& b) noexcept {
    a.swap(b);
}

}  // namespace weft::inline v0
