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

namespace weft::inline v0::detail {

struct fiber_block;

enum class birth_operation : unsigned char { run, destroy };
using birth_function = void (*)(void* callable, birth_operation what);

/// What the library needs to know of a callable.
struct birth {
    const fiber_options& options;
    std::size_t size;
    std::size_t alignment;
    birth_function operate;
    bool has_handle;
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

/// A block with room for the callable, on no queue yet.
/// Fails: std::bad_alloc; std::invalid_argument for options that make no sense.
[[nodiscard]] fiber_block* allocate_fiber(executor& home, const birth& how);
[[nodiscard]] void* callable_of(fiber_block& block) noexcept;
/// For a block whose callable could not be constructed.
void discard_fiber(fiber_block* block) noexcept;
/// Counts it as outstanding work and posts it. The block may be gone when this returns, unless a
/// handle refers to it.
void start_fiber(fiber_block& block) noexcept;
/// The executor of the running fiber. Aborts, naming the call, outside any.
[[nodiscard]] executor& current_executor(const char* call) noexcept;

template <class F>
[[nodiscard]] fiber_block* bear(executor& home, const fiber_options& options, F&& function,
                                bool has_handle, std::source_location site) {
    using callable = std::decay_t<F>;
    fiber_block* const block = allocate_fiber(home, {.options = options,
                                                     .size = sizeof(callable),
                                                     .alignment = alignof(callable),
                                                     .operate = &operate_callable<callable>,
                                                     .has_handle = has_handle,
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
