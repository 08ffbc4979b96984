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
#include <optional>
#include <ranges>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

#include <weft/scope/task_group.hpp>
#include <weft/sync/detail/wait_word.hpp>

namespace weft::inline v0 {

/// What the first to end returns, or throws; the others are cancelled.
/// Suspends: always. Cancel: throws `cancelled`.
template <std::invocable F, std::invocable... More>
auto race(F&& first, More&&... more) {
    using result = std::common_type_t<std::invoke_result_t<F>, std::invoke_result_t<More>...>;
    return with_task_group<result>([&](task_group<result>& g) {
        g.add(std::ref(first));
        (g.add(std::ref(more)), ...);
        return g.next();
    });
}

/// A tuple of what they return; std::monostate in place of void.
/// Suspends: always. Cancel: throws `cancelled`.
template <std::invocable... F>
auto all(F&&... functions) {
    const auto fill = [](auto& slot, auto& function) {
        if constexpr (std::is_void_v<std::invoke_result_t<decltype(function)>>) {
            function();
            slot.emplace();
        } else {
            slot.emplace(function());
        }
    };
    using results =
        std::tuple<std::optional<std::conditional_t<std::is_void_v<std::invoke_result_t<F>>,
                                                    std::monostate, std::invoke_result_t<F>>>...>;
    results slots;
    auto parts = std::forward_as_tuple(functions...);
    with_task_group<void>([&](task_group<void>& g) {
        [&]<std::size_t... I>(std::index_sequence<I...>) {
            (g.add([&] { fill(std::get<I>(slots), std::get<I>(parts)); }), ...);
        }
        (std::index_sequence_for<F...>());
        g.wait();
        if (!std::apply([](const auto&... slot) { return (slot.has_value() && ...); }, slots))
            detail::throw_cancelled();  // one of them ended by that
    });
    return std::apply([](auto&... slot) { return std::tuple(std::move(*slot)...); }, slots);
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
