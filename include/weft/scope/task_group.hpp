// task_group.hpp - fibers that end before the block that started them.
//
//     int first = with_task_group<int>([&](task_group<int>& g) {
//         g.add([&] { return perform_one(data); });
//         g.add([&] { return perform_two(data); });
//         return g.next();                        // the other is cancelled and waited for
//     });
//
// Whatever happens in the function: when with_task_group() returns or throws, all children have
// ended. So they may refer to the locals around it. Children have the cancellation, the deadlines
// and the task locals of the fiber that opened the group.
//
// A child that throws cancels the others, and the waits of the function; what it threw comes out of
// next() or wait(), else out of with_task_group(). Those that throw after it are counted, and
// next_result() gives them out.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <expected>
#include <memory>
#include <optional>
#include <source_location>
#include <type_traits>
#include <utility>

#include <weft/base/assert.hpp>
#include <weft/fiber/go.hpp>
#include <weft/scope/detail/child.hpp>
#include <weft/scope/detail/family.hpp>
#include <weft/scope/detail/off_shared_stack.hpp>
#include <weft/scope/options.hpp>

namespace weft::inline v0 {

/// What became of one child.
template <class T>
struct task_result {
    /// The how many-eth it was to be added, from 0.
    std::size_t index;
    /// What it returned or threw; `cancelled`, if it ended by that.
    std::expected<T, std::exception_ptr> value;
};

/// Made by with_task_group(). Thread-safe: add(), cancel(), size() and failures() are, for children
/// too; next(), next_result() and wait() are for one fiber at a time (aborts if two wait).
template <class T>
class task_group {
public:
    task_group(const task_group&) = delete;
    task_group& operator=(const task_group&) = delete;

    /// Starts one more child. If the group is cancelled then the child is, too, from its beginning.
    /// Suspends: if the group is bounded (a child that adds has a place itself). Cancel: throws
    /// `cancelled`, if it has to wait. From: the fiber or thread that opened the group, and its
    /// children. Fails: as go() does; nothing was started then.
    template <fiber_function F>
        requires std::is_convertible_v < std::invoke_result_t < std::decay_t<F>
    & >, T > || std::is_void_v<T> void add(
                    F&& function, std::source_location site = std::source_location::current()) {
        add(family_.fiber_options_of_children(), std::forward<F>(function), site);
    }
    /// The same, for a fiber of its own kind or name.
    template <fiber_function F>
    void add(const fiber_options& options, F&& function,
             std::source_location site = std::source_location::current()) {
        family_.take_place();
        detail::add_child<T>(family_, options, std::forward<F>(function), site);
    }

    /// What the next child returned, in the order in which they end; or throws what it threw.
    /// Suspends: maybe. Cancel: throws `cancelled`; as it does for a child that ended by that.
    /// Aborts: if size() is 0.
    T next() {
        const auto node = take();
        if (node->error != nullptr) std::rethrow_exception(node->error);
        if constexpr (!std::is_void_v<T>) return std::move(*node->value);
    }

    /// What became of the next child, in the order in which they end.
    /// Suspends: maybe. Cancel: throws `cancelled`. Aborts: if size() is 0.
    [[nodiscard]] task_result<T> next_result() {
        const auto node = take();
        if (node->error != nullptr) return {node->index, std::unexpected(node->error)};
        if constexpr (std::is_void_v<T>)
            return {node->index, {}};
        else
            return {node->index, std::move(*node->value)};
    }

    /// Until all children have ended. Throws what failed first, unless the group collects; results
    /// stay where next() finds them.
    /// Suspends: maybe. Cancel: throws `cancelled`.
    void wait() { family_.wait_for_all(); }

    /// Asks all children to stop, those that are added later too. The function itself goes on.
    /// Suspends: never. From: whoever knows that the group lives. Stop callbacks run in it.
    void cancel(cancel_reason reason = cancel_reason::requested) noexcept {
        WEFT_ASSERT(reason != cancel_reason::none, "task_group::cancel: for no reason");
        family_.cancel(reason);
    }

    /// Children that have not ended, and results that nobody took.
    [[nodiscard]] std::size_t size() noexcept { return family_.size(); }
    /// How many children threw something else than `cancelled`.
    [[nodiscard]] std::size_t failures() noexcept { return family_.failures(); }

private:
    friend detail::off_shared_stack<task_group>;
    template <class U, class F>
    friend std::invoke_result_t<F, task_group<U>&> with_task_group(
        const task_group_options& options, F&& function);

    using taken_node = std::unique_ptr<detail::result_node<T>, detail::drop_node>;
    explicit task_group(const task_group_options& options) : family_(options) {}
    [[nodiscard]] taken_node take() {
        return taken_node(static_cast<detail::result_node<T>*>(family_.take_ended()));
    }

    detail::family family_;
};

/// function(task_group<T>&); then cancels the children that are left and waits for them.
/// Suspends: maybe. Cancel: as the function does; the last wait ignores it. From: a fiber; a plain
/// thread, if the options name an executor. Fails: as the function does; what a child threw and
/// nobody took.
template <class T, class F>
std::invoke_result_t<F, task_group<T>&> with_task_group(const task_group_options& options,
                                                        F&& function) {
    using result = std::invoke_result_t<F, task_group<T>&>;
    const detail::off_shared_stack<task_group<T>> group(options);
    detail::family& children = group->family_;
    try {
        if constexpr (std::is_void_v<result>) {
            std::forward<F>(function)(*group);
            children.leave();
            children.throw_what_failed();
        } else {
            result returned = std::forward<F>(function)(*group);
            children.leave();
            children.throw_what_failed();
            return std::forward<result>(returned);
        }
    } catch (const cancelled&) {
        children.leave();
        children.throw_what_failed();  // which was the reason, perhaps
        throw;
    } catch (...) {
        children.leave();
        throw;
    }
}

template <class T, class F>
    requires std::invocable < F, task_group<T>
& > std::invoke_result_t<F, task_group<T>&> with_task_group(F&& function) {
    return with_task_group<T>(task_group_options{}, std::forward<F>(function));
}

}  // namespace weft::inline v0
