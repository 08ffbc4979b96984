// carry.hpp - the slow half of a switch: what goes with a context besides its registers.
//
// The two words of exception state that the C++ runtime keeps per thread belong to the computation,
// not to the thread: otherwise two contexts that switch inside their catch blocks would rethrow
// each other's exceptions. Nearly always both are zero, on both sides, and must_carry() says so
// with four loads and a branch. Floating-point control words go along only with a context that was
// made to keep its own.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <weft/base/thread_block.hpp>
#include <weft/context/context_state.hpp>

namespace weft::inline v0::detail {

/// Whether a switch to `to` has to move more than registers. True at the first switch of each
/// thread, and while a context runs that keeps its own floating-point control words: the thread's
/// exception words are then said to be unknown. (Bitwise, so that it is one branch.)
[[gnu::always_inline]] inline bool must_carry(const exception_words& words,
                                              const context_state& to) noexcept {
    return (reinterpret_cast<std::uintptr_t>(words.caught) | words.uncaught | to.flags) != 0;
}

[[gnu::always_inline]] inline bool must_carry(const context_state& to) noexcept {
    return must_carry(*exceptions_of_this_thread(), to);
}

/// Takes the thread's exception state into `from` and puts that of `to` in its place; likewise the
/// floating-point control words of contexts that keep their own.
void carry(context_state& from, context_state& to) noexcept;

/// The same for a context that is finished: there is nothing of it to keep.
void carry_from_finished(context_state& to) noexcept;

}  // namespace weft::inline v0::detail
