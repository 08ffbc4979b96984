// isolated.hpp - a value that can be touched only inside of its own context.
//
//     isolated<std::map<key, page>> pages;
//     pages.with([&](auto& all) { all.erase(old); });
//
// There is no other way to the value, so the compiler finds whoever forgets. Inside with() another
// fiber may come in while this one waits: see docs/actor.md.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <functional>
#include <mutex>
#include <type_traits>
#include <utility>

#include <weft/actor/actor_context.hpp>

namespace weft::inline v0 {

template <class T>
class isolated {
public:
    isolated() requires std::default_initializable<T>
    = default;
    template <class... Args>
        requires(sizeof...(Args) > 0 && std::constructible_from<T, Args...>)
    explicit isolated(Args&&... args) : value_(std::forward<Args>(args)...) {}
    isolated(const isolated&) = delete;
    isolated& operator=(const isolated&) = delete;
    ~isolated() = default;

    /// What function(value) returns, called inside the context. Not a reference: what that refers
    /// to would be used outside. Suspends: maybe. Cancel: ignored. From: any fiber or thread.
    /// Fails: as the function does, and as actor_context::lock().
    template <class F>
    decltype(auto) with(F&& function) {
        return call(std::forward<F>(function), value_);
    }
    template <class F>
    decltype(auto) with(F&& function) const {
        return call(std::forward<F>(function), value_);
    }

    /// The value, for a function that is called inside with() and was not handed it.
    /// Suspends: never. Aborts: outside the context, in builds with WEFT_CHECKS=1.
    [[nodiscard]] T& value() noexcept {
        check();
        return value_;
    }
    [[nodiscard]] const T& value() const noexcept {
        check();
        return value_;
    }

    /// For std::lock_guard and its kin, around several uses of value().
    [[nodiscard]] const actor_context& context() const noexcept { return context_; }

private:
    // Unconstrained: a constraint would try a generic function with the const value, too.
    template <class F, class V>
    std::invoke_result_t<F, V&> call(F&& function, V& value) const {
        static_assert(!std::is_reference_v<std::invoke_result_t<F, V&>>,
                      "isolated::with: the function returns a reference, to be used outside");
        const std::lock_guard inside(context_);
        return std::invoke(std::forward<F>(function), value);
    }
    void check() const noexcept {
        WEFT_CHECK(context_.is_held(), "isolated: touched outside of its context");
    }

    actor_context context_;
    T value_{};
};

}  // namespace weft::inline v0
