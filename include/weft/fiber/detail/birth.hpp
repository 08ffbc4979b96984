// birth.hpp - how a callable becomes a fiber, as far as the headers have to know it.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <source_location>
#include <type_traits>
#include <utility>

#include <weft/exec/executor.hpp>
#include <weft/fiber/options.hpp>

namespace weft::inline v0 {
class cancel_scope;
enum class cancel_reason : unsigned char;
struct wait_reason;
}

namespace weft::inline v0::detail {

struct fiber_block;

enum class birth_operation : unsigned char {
    run,  // a child of a group throws nothing, and destroys what it called, too
    destroy,
    // Of a child of a group only.
    enlist,  // whoever cancels the group has to find it from now on
    end,     // everything of its fiber is gone but the block
};
using birth_function = void (*)(void* callable, birth_operation what);

/// What is known of a group without its lock.
struct group_state {
    /// Why all of it was cancelled. Set under the lock.
    std::atomic<cancel_reason> reason = {};
    /// A part of the number of children, which the parent alone counts; modulo 2^64.
    std::atomic<std::uint64_t> apart = 0;

    void count_apart(std::uint64_t change) noexcept {
        apart.store(apart.load(std::memory_order_relaxed) + change, std::memory_order_relaxed);
    }
};

/// What the callable of a child begins with: the group that it belongs to.
struct group_member {
    group_state* group;
    /// It has run, and if nobody was to find it meanwhile then its end is nothing to the group but
    /// one less: birth_operation::end, or if its parent knows of it, apart.
    bool ends_plainly = false;
};

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
void operate_callable(void* callable, birth_operation what) {
    F& function = *static_cast<F*>(callable);
    if (what == birth_operation::run)
        static_cast<void>(function());
    else
        function.~F();
}

/// The same of the callable of a child: one for each type of them.
struct child_birth {
    std::size_t size;
    std::size_t alignment;
    birth_function operate;
};
/// A block, and the room for its callable.
struct newborn {
    fiber_block* block;
    void* callable;
};

/// A block with room for the callable, on no queue yet.
/// Fails: std::bad_alloc; std::invalid_argument for options that make no sense.
[[nodiscard]] fiber_block* allocate_fiber(executor& home, const birth& how);
[[nodiscard]] void* callable_of(fiber_block& block) noexcept;
/// The same for a child, whose callable is a group_member.
[[nodiscard]] newborn allocate_child(executor& home, const fiber_options& options,
                                     const child_birth& how, std::source_location site);
/// For a block whose callable could not be constructed.
void discard_fiber(fiber_block* block) noexcept;
/// Counts it as outstanding work and posts it. The block may be gone when this returns, unless a
/// handle refers to it.
void start_fiber(fiber_block& block) noexcept;
/// Children of this group that nobody has started run as plain calls on the stack of the fiber that
/// waits for them, each as a fiber of its own, until there is none that could: then the caller
/// waits as usual. Only on a pool.
void run_unstarted_children(const group_state& group, const cancel_scope& body,
                            const wait_reason& reason) noexcept;
/// The executor of the running fiber; without one, that whose worker runs here. Aborts, naming the
/// call, outside any.
[[nodiscard]] executor& current_executor(const char* call) noexcept;

template <class F>
[[nodiscard]] fiber_block* bear(executor& home, const fiber_options& options, F&& function,
                                bool has_handle, std::source_location site) {
    using callable = std::decay_t<F>;
    constexpr bool trivial = std::is_trivially_destructible_v<callable>;
    fiber_block* const block = allocate_fiber(home, {.options = options,
                                                     .size = sizeof(callable),
                                                     .alignment = alignof(callable),
                                                     .operate = &operate_callable<callable>,
                                                     .has_handle = has_handle,
                                                     .is_child = false,
                                                     .is_trivial = trivial,
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
