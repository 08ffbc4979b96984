// child.hpp - a child of a task group: what it calls, and where its result goes.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <optional>
#include <type_traits>
#include <utility>

#include <weft/scope/detail/family.hpp>

namespace weft::inline v0::detail {

/// As std::optional, on the heap.
template <class T>
class result_elsewhere {
public:
    template <class R>
    void emplace(R&& result) {
        held_ = std::make_unique<T>(std::forward<R>(result));
    }
    void reset() noexcept { held_.reset(); }
    [[nodiscard]] T& operator*() noexcept { return *held_; }

private:
    std::unique_ptr<T> held_;
};

/// What is aligned to more than a control block is lies elsewhere.
template <class T>
struct result_node final : child_node {
    std::conditional_t<(alignof(T) > 64), result_elsewhere<T>, std::optional<T>> value;
};
template <>
struct result_node<void> final : child_node {};

/// What the child's fiber calls. It is adopted, and then has a node, once the fiber is made. The
/// node is destroyed by whoever drops it, and never by the call.
template <class T, class F>
class child_call {
public:
    template <class G>
    explicit child_call(G&& function) : function_(std::in_place, std::forward<G>(function)) {}
    child_call(child_call&& other) noexcept(std::is_nothrow_move_constructible_v<F>)
        : function_(std::move(other.function_)) {}
    child_call& operator=(child_call&&) = delete;
    ~child_call() = default;

    child_node& adopt(family& all) noexcept {
        family_ = &all;
        node_ = ::new (static_cast<void*>(room_)) result_node<T>;
        return *node_;
    }

    /// See birth.hpp.
    static const void* operate_child(void* callable, birth_operation what) {
        auto& call = *static_cast<child_call*>(callable);
        switch (what) {
            case birth_operation::run:
                call.run();
                break;
            case birth_operation::destroy:
                call.finish();
                break;
            case birth_operation::end:
                call.family_->child_ended(call.node_);
                break;
            case birth_operation::whose:
                break;
        }
        return call.family_;
    }

private:
    void run() noexcept {
        try {
            if constexpr (std::is_void_v<T>)
                static_cast<void>((*function_)());
            else
                node_->value.emplace((*function_)());
            node_->how = child_node::end::value;
        } catch (const cancelled&) {
            node_->how = child_node::end::cancelled;
            node_->error = std::current_exception();
        } catch (...) {
            node_->how = child_node::end::failed;
            node_->error = std::current_exception();
        }
    }

    // What the callable holds may refer to the parent, and what is not kept is the child's: both go
    // while it can still wait.
    void finish() noexcept {
        if (family_ == nullptr) return;
        function_.reset();
        if (node_->how == child_node::end::none) {  // it never ran: there was no stack for it
            node_->how = child_node::end::failed;
            node_->error = std::make_exception_ptr(std::bad_alloc());
        }
        if constexpr (!std::is_void_v<T>)
            if (!family_->keeps(*node_)) node_->value.reset();
        if (family_->announce_failure(*node_)) node_ = nullptr;  // it is its taker's
    }

    family* family_ = nullptr;
    result_node<T>* node_ = nullptr;
    std::optional<F> function_;
    alignas(result_node<T>) std::byte room_[sizeof(result_node<T>)];  // for the node
};

/// A place was taken for it; it is given back if this throws.
template <class T, class F>
void add_child(family& all, const fiber_options& options, F&& function, std::source_location site) {
    using call = child_call<T, std::decay_t<F>>;
    fiber_block* block = nullptr;
    try {
        block = bear(all.home(), options, call(std::forward<F>(function)), false, site);
    } catch (...) {
        all.give_place();
        throw;
    }
    all.start(static_cast<call*>(callable_of(*block))->adopt(all), *block);
}

}  // namespace weft::inline v0::detail
