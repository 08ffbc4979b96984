// context_backend.hpp - the back ends with a stack of their own; inlined into coroutine_block.cpp.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <weft/coroutine/backend.hpp>
#include <weft/stack/watermark.hpp>

#include "context/switch.hpp"
#include "stack/annotate.hpp"

namespace weft::inline v0::detail {

// make() may throw once the stack is taken, and the destructor does not run then.
template <class Context>
context_backend<Context>::context_backend(const coroutine_options& options, context_entry entry,
                                          void* argument)
    : stacks_(options.stacks != nullptr ? options.stacks : &shared_stacks()) {
    stack_ = take_known(*stacks_, options.stack_size);
    try {
        if (options.measure_stack) paint(stack_);
        body_ = Context::make(
            stack_.span(), entry, argument,
            {.keep_fp_control = options.keep_fp_control, .tsan_fiber = stack_.tsan_fiber});
    } catch (...) {
        reclaim();
        throw;
    }
}

template <class Context>
context_backend<Context>::~context_backend() {
    reclaim();
}

template <class Context>
void context_backend<Context>::enter() {
    swap_here(resumer_, body_);
}

template <class Context>
void context_backend<Context>::leave() {
    swap_here(body_, resumer_);
}

template <class Context>
void context_backend<Context>::finish() {
    jump_from_here(resumer_);
}

template <class Context>
void context_backend<Context>::reclaim() noexcept {
    if (!stack_) return;
    body_ = Context();
    give_back_known(*stacks_, stack_);
    stack_ = {};
}

}  // namespace weft::inline v0::detail
