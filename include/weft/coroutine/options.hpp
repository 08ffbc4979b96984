// options.hpp - what a coroutine can be told at its creation.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include <weft/stack/stack.hpp>

namespace weft::inline v0 {

class shared_stack;
class thread_cache;

/// What a coroutine can be told at its creation.
struct coroutine_options {
    /// For reports; the first 31 bytes are kept.
    std::string_view name = {};
    /// At least this many usable bytes.
    std::size_t stack_size = default_stack_size();
    /// Where the stack comes from; nullptr: shared_stacks(). It must outlive the coroutine.
    stack_source* stacks = nullptr;
    /// Paints the stack, so that stack_high_water() can tell how much of it was used.
    bool measure_stack = false;
    /// Rounding mode and the like are the coroutine's own (context_options).
    bool keep_fp_control = false;
    /// thread back end: where OS threads wait for their next coroutine; nullptr: each has its own.
    thread_cache* threads = nullptr;
    /// swapped back end: the stack that it shares with others. Must be set there.
    shared_stack* shared = nullptr;
};

}  // namespace weft::inline v0
