// options.hpp - what a fiber can be told at its creation.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

#include <weft/stack/stack.hpp>

namespace weft::inline v0 {

/// How a fiber leaves in the middle and comes back: the back ends of coroutine (docs/back_ends.md).
enum class stack_kind : unsigned char {
    own = 1,   // a stack of its own and the switch of this build
    ucontext,  // a stack of its own and swapcontext
    thread,    // an OS thread of its own, of which one runs at a time
    swapped,   // on a shared stack of its worker; parked, it costs the bytes that it uses
};

/// What a fiber can be told at its creation.
struct fiber_options {
    /// For reports. Copied.
    std::string_view name = {};
    /// What it runs on (docs/back_ends.md).
    stack_kind kind = stack_kind::own;
    /// At least this many usable bytes; 0: default_stack_size().
    std::size_t stack_size = 0;
    /// Where the stack comes from; nullptr: the worker's cache over shared_stacks(). It must
    /// outlive the fiber, and give and take on whatever thread runs it.
    stack_source* stacks = nullptr;
    /// Stays on the worker that first runs it.
    bool pinned = false;
    /// The number, from 0, of the worker that runs it and no other: it is pinned there from the
    /// beginning. It must be less than executor::workers().
    std::optional<unsigned> worker = {};
};

}  // namespace weft::inline v0
