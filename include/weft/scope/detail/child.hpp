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

/// What the child's fiber calls. Nothing destroys it as a whole: the function goes when it has run,
/// the node with whoever drops it, or with the block.
template <class T, class F>
class child_call final : public group_member {
public:
    template <class G>
    child_call(family& all, G&& function)
        : group_member{&all}, function_(std::forward<G>(function)) {}
    child_call(const child_call&) = delete;
    child_call& operator=(const child_call&) = delete;
    ~child_call() {}

    [[nodiscard]] child_node& node() noexcept { return node_; }

    /// See birth.hpp.
    static void operate(void* callable, birth_operation what) {
        auto& call = *static_cast<child_call*>(callable);
        if (what == birth_operation::end) return call.end();
        if (what == birth_operation::enlist) return call.enlist();
        if (what == birth_operation::run) call.run();
        call.finish();
    }

private:
    [[nodiscard]] family& all() const noexcept { return *static_cast<family*>(group); }

    [[gnu::noinline]] void run() noexcept {
        try {
            if constexpr (std::is_void_v<T>)
                static_cast<void>(function_());
            else
                node_.value.emplace(function_());
            node_.how = child_node::end::value;
        } catch (const cancelled&) { note(child_node::end::cancelled); } catch (...) {
            note(child_node::end::failed);
        }
    }
    [[gnu::cold, gnu::noinline]] void note(child_node::end how) noexcept {
        node_.how = how;
        node_.error = std::current_exception();
    }

    // What the callable holds may refer to the parent, and what is not kept is the child's: both go
    // while it can still wait.
    void finish() noexcept {
        function_.~F();
        if (node_.how == child_node::end::none) [[unlikely]] {  // there was no stack for it
            node_.how = child_node::end::failed;
            node_.error = std::make_exception_ptr(std::bad_alloc());
        }
        if constexpr (!std::is_void_v<T>)
            if (!all().keeps(node_)) node_.value.reset();
        ends_plainly = node_.how == child_node::end::value && all().counts_apart();
        if (node_.how == child_node::end::failed && all().announces_failures()) [[unlikely]] {
            announced_ = true;
            all().announce_failure(node_);
        }
    }

    void enlist() noexcept {
        if (!announced_) all().enlist(node_);
    }
    void end() noexcept {
        if (announced_) [[unlikely]]
            return all().announced_ended();
        all().child_ended(node_);
    }

    bool announced_ = false;  // then the node is its taker's
    union {
        F function_;
    };
    union {
        result_node<T> node_ = {};
    };
};

template <class T, class F>
inline constexpr child_birth birth_of_child{sizeof(child_call<T, F>), alignof(child_call<T, F>),
                                            &child_call<T, F>::operate};

/// A place was taken for it; it is given back if this throws.
template <class T, class F>
void add_child(family& all, const fiber_options& options, F&& function, std::source_location site) {
    using call = child_call<T, std::decay_t<F>>;
    newborn child{};
    try {
        child = allocate_child(all.home(), options, birth_of_child<T, std::decay_t<F>>, site);
        ::new (child.callable) call(all, std::forward<F>(function));
    } catch (...) {
        if (child.block != nullptr) discard_fiber(child.block);
        all.give_place();
        throw;
    }
    all.start(static_cast<call*>(child.callable)->node(), *child.block);
}

}  // namespace weft::inline v0::detail
