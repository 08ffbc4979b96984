// context.hpp - the transfer of control, and nothing else.
//
// A context is a place where a computation stopped: stack pointer, frame pointer, resume address.
// Three functions work on it: make() prepares one on a stack, swap() leaves one for another, jump()
// leaves for another and saves nothing. No thread, no queue, no ownership of stacks: those are
// above (coroutine) and beside (stack). docs/switch.md draws the frames.
//
// Two implementations stand behind one contract, each a class: native_context (x86-64 and aarch64,
// a handful of instructions) and portable_context (ucontext, wherever that exists). `context` names
// the one that this build uses by default.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <weft/base/version.hpp>
#include <weft/context/native_context.hpp>
#include <weft/context/portable_context.hpp>

namespace weft::inline v0 {

#if WEFT_NATIVE_SWITCH
/// The context of this build.
using context = native_context;
#else
/// The context of this build.
using context = portable_context;
#endif

}  // namespace weft::inline v0

#include <weft/context/swap_in_frame.hpp>  // native_context::swap()
