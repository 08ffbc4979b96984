// carry.hpp - the slow half of a switch: what goes with a context besides its registers.
//
// The two words of exception state that the C++ runtime keeps per thread belong to the computation,
// not to the thread: otherwise two contexts that switch inside their catch blocks would rethrow
// each other's exceptions. Whoever leaves puts its own away, and takes them up when it goes on:
//
//      A, in a catch block            B, in none
//      must_put_away(): put_away()
//      switch  ---------------------> goes on, and finds none
//                                     must_put_away() says no
//      take_up()  <------------------ switch
//
// Nearly always both are zero, and must_put_away() says so with three loads and a branch. What was
// put away is taken up where it was, in the same frame (carry_and_swap), so whoever switches need
// not ask about the other side. Floating-point control words go along only with a context that was
// made to keep its own.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <weft/base/thread_block.hpp>
#include <weft/context/context_state.hpp>

namespace weft::inline v0::detail {

/// Whether one that leaves has more to keep than registers. True at the first switch of each
/// thread, and while a context runs that keeps its own floating-point control words: the thread's
/// exception words are then said to be unknown.
[[gnu::always_inline]] inline bool must_put_away(const exception_words& words) noexcept {
    return words.any();
}

[[gnu::always_inline]] inline bool must_put_away() noexcept {
    return must_put_away(*exceptions_of_this_thread());
}

/// Takes the thread's exception state into `from`, which is empty, and its floating-point control
/// words if the one that runs keeps its own. The thread has none, and its own words, afterwards.
void put_away(context_state& from) noexcept;

/// The same for a context that is finished: there is nothing of it to keep.
void put_away_finished() noexcept;

/// What put_away() took, for the one that goes on.
void take_up(const context_state& mine) noexcept;

/// A context that keeps its own floating-point control words goes on, or begins, with these.
void keep_fp_control(std::uint64_t own) noexcept;

}  // namespace weft::inline v0::detail
