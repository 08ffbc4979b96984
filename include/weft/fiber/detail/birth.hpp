// birth.hpp - how a callable becomes a fiber, as far as the headers have to know it.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <source_location>
#include <type_traits>
#include <utility>

#include <weft/exec/executor.hpp>
#include <weft/fiber/options.hpp>

namespace weft::inline v0 {
struct wait_reason;
}

namespace weft::inline v0::detail {

struct fiber_block;

enum class birth_operation : unsigned char {
    run,
    destroy,
    // Of a child of a group only:
    end,    // everything of its fiber is gone but the block; off its stack
    whose,  // the group that it belongs to, as the result
};
using birth_function = const void* (*)(void* callable, birth_operation what);

/// The options of those who give none: known by its address.
inline constexpr fiber_options nothing_told{};
/// Whether it might as well be that.
[[nodiscard]] constexpr bool tells_nothing(const fiber_options& options) noexcept {
    return options.name.empty() && options.kind == stack_kind::own && options.stack_size == 0 &&
           options.stacks == nullptr && !options.pinned && !options.worker.has_value();
}

/// What the library needs to know of a callable.
struct birth {
    const fiber_options& options;
    std::size_t size;
    std::size_t alignment;
    birth_function operate;
    bool has_handle;
    bool is_child;
    bool is_trivial;  // nothing is to be done at its end
    std::source_location site;
};

template <class F>
const void* operate_callable(void* callable, birth_operation what) {
    F& function = *static_cast<F*>(callable);
    if (what == birth_operation::run)
        static_cast<void>(function());
    else
        function.~F();
    return nullptr;
}

/// A group's, which does all of it by itself.
template <class F>
concept child_callable = std::convertible_to<decltype(&F::operate_child), birth_function>;

template <class F>
inline constexpr bool is_trivial_callable =
    std::is_trivially_destructible_v<F> && !child_callable<F>;

template <class F>
[[nodiscard]] constexpr birth_function operation_of() noexcept {
    if constexpr (child_callable<F>)
        return &F::operate_child;
    else
        return &operate_callable<F>;
}

/// A block with room for the callable, on no queue yet.
/// Fails: std::bad_alloc; std::invalid_argument for options that make no sense.
[[nodiscard]] fiber_block* allocate_fiber(executor& home, const birth& how);
[[nodiscard]] void* callable_of(fiber_block& block) noexcept;
/// For a block whose callable could not be constructed.
void discard_fiber(fiber_block* block) noexcept;
/// Counts it as outstanding work and posts it. The block may be gone when this returns, unless a
/// handle refers to it.
void start_fiber(fiber_block& block) noexcept;
/// Children of this group that nobody has started run as plain calls on the stack of the fiber that
/// waits for them, each as a fiber of its own, until there is none that could: then the caller
/// waits as usual. Only on a pool.
void run_unstarted_children(const void* group, const wait_reason& reason) noexcept;
/// The executor of the running fiber. Aborts, naming the call, outside any.
[[nodiscard]] executor& current_executor(const char* call) noexcept;

template <class F>
[[nodiscard]] fiber_block* bear(executor& home, const fiber_options& options, F&& function,
                                bool has_handle, std::source_location site) {
    using callable = std::decay_t<F>;
    fiber_block* const block = allocate_fiber(home, {.options = options,
                                                     .size = sizeof(callable),
                                                     .alignment = alignof(callable),
                                                     .operate = operation_of<callable>(),
                                                     .has_handle = has_handle,
                                                     .is_child = child_callable<callable>,
                                                     .is_trivial = is_trivial_callable<callable>,
                                                     .site = site});
    try {
        ::new (callable_of(*block)) callable(std::forward<F>(function));
    } catch (...) {
        discard_fiber(block);
        throw;
    }
    return block;
}

}  // namespace weft::inline v0::detail
