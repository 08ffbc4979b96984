// algorithms.hpp - what is done often with a task group, in one call.
//
//     auto answer = race([&] { return ask(a); }, [&] { return ask(b); });     // the first result
//     auto [x, y] = all([&] { return left(); }, [&] { return right(); });     // both
//     for_each(urls, 8, [&](const url& u) { fetch(u); });                     // eight at a time
//
// Each opens a group, and so has its rules: nobody is left running when it returns or throws, what
// one throws cancels the others and comes out. From: a fiber that is not swapped.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <ranges>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

#include <weft/scope/task_group.hpp>
#include <weft/sync/detail/wait_word.hpp>

namespace weft::inline v0 {

namespace detail {

/// Where all() keeps what a function returns, and as what it gives it out.
template <class R>
struct kept_result {
    using type = std::remove_cvref_t<R>;
    std::optional<type> kept;

    template <class F>
    void keep(F&& function) {
        kept.emplace(std::invoke(std::forward<F>(function)));
    }
    [[nodiscard]] type give() { return std::move(*kept); }
};
template <class R>
struct kept_result<R&> {
    using type = R&;
    std::optional<R*> kept;

    template <class F>
    void keep(F&& function) {
        kept.emplace(std::addressof(std::invoke(std::forward<F>(function))));
    }
    [[nodiscard]] type give() { return **kept; }
};
template <class R>
    requires std::is_void_v<R>
struct kept_result<R> {
    using type = std::monostate;
    std::optional<type> kept;

    template <class F>
    void keep(F&& function) {
        std::invoke(std::forward<F>(function));
        kept.emplace();
    }
    [[nodiscard]] type give() { return *kept; }
};

/// What race() returns: a reference, if all return one and these have one in common.
template <class... R>
struct race_result {
    using type = std::common_type_t<R...>;
};
template <class... R>
    requires(std::is_lvalue_reference_v<R>&&...)
&&std::is_lvalue_reference_v<std::common_reference_t<R...>> struct race_result<R...> {
    using type = std::common_reference_t<R...>;
};

/// For a group: the address of what is referred to.
template <class R, class F>
decltype(auto) call_for_result(F&& function) {
    if constexpr (std::is_lvalue_reference_v<R>)
        return std::addressof(static_cast<R>(std::invoke(std::forward<F>(function))));
    else
        return std::invoke(std::forward<F>(function));
}

}  // namespace detail

/// What the first to end returns, or throws; the others are cancelled. A reference, if all return
/// lvalues of one type, or of types with a base in common.
/// Suspends: always. Cancel: throws `cancelled`.
template <std::invocable F, std::invocable... More>
auto race(F&& first, More&&... more) ->
    typename detail::race_result<std::invoke_result_t<F>, std::invoke_result_t<More>...>::type {
    using result =
        typename detail::race_result<std::invoke_result_t<F>, std::invoke_result_t<More>...>::type;
    using passed =
        std::conditional_t<std::is_lvalue_reference_v<result>, std::add_pointer_t<result>, result>;
    const auto run = [&]() -> passed {
        return with_task_group<passed>([&](task_group<passed>& g) {
            const auto add = [&g]<class G>(std::type_identity<G>, auto& function) {
                g.add([&function]() -> decltype(auto) {
                    return detail::call_for_result<result>(std::forward<G>(function));
                });
            };
            add(std::type_identity<F>(), first);
            (add(std::type_identity<More>(), more), ...);
            return g.next();
        });
    };
    if constexpr (std::is_lvalue_reference_v<result>)
        return *run();
    else
        return run();
}

/// A tuple of what they return; std::monostate in place of void. Where one returns an lvalue there
/// is a reference to it, as std::tie makes; an rvalue reference is moved from.
/// Suspends: always. Cancel: throws `cancelled`.
template <std::invocable... F>
auto all(F&&... functions) {
    std::tuple<detail::kept_result<std::invoke_result_t<F>>...> slots;
    auto parts = std::forward_as_tuple(std::forward<F>(functions)...);
    with_task_group<void>([&](task_group<void>& g) {
        [&]<std::size_t... I>(std::index_sequence<I...>) {
            (g.add([&] { std::get<I>(slots).keep(std::forward<F>(std::get<I>(parts))); }), ...);
        }
        (std::index_sequence_for<F...>());
        g.wait();
        if (!std::apply([](const auto&... slot) { return (slot.kept.has_value() && ...); }, slots))
            detail::throw_cancelled();  // one of them ended by that
    });
    return std::apply(
        [](auto&... slot) {
            return std::tuple<typename detail::kept_result<std::invoke_result_t<F>>::type...>(
                slot.give()...);
        },
        slots);
}

/// function(item) for each, at most `limit` at once; 0: all.
/// Suspends: maybe. Cancel: throws `cancelled`.
template <std::ranges::input_range Range, class F>
    requires std::invocable<F&, std::ranges::range_reference_t<Range>>
void for_each(Range&& range, std::size_t limit, F&& function) {
    using reference = std::ranges::range_reference_t<Range>;
    // Only those of a forward range stay where they are while the next one is looked at.
    constexpr bool they_stay =
        std::is_lvalue_reference_v<reference> && std::ranges::forward_range<Range>;
    std::size_t added = 0;
    std::atomic<std::size_t> done = 0;
    with_task_group<void>({.limit = limit, .discard = true}, [&](task_group<void>& g) {
        for (auto&& item : range) {
            if constexpr (they_stay)
                g.add([&function, &done, &item] {
                    std::invoke(function, item);
                    ++done;
                });
            else
                g.add([&function, &done,
                       kept = std::ranges::range_value_t<Range>(
                           std::forward<decltype(item)>(item))]() mutable {
                    if constexpr (std::is_lvalue_reference_v<reference>)
                        std::invoke(function, kept);
                    else
                        std::invoke(function, std::move(kept));
                    ++done;
                });
            ++added;
        }
        g.wait();
        if (done != added) detail::throw_cancelled();  // one of them ended by that
    });
}

}  // namespace weft::inline v0
