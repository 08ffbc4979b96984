// carry.cpp - see carry.hpp.
//
// SPDX-License-Identifier: Apache-2.0
#include "context/carry.hpp"

#include <weft/base/assert.hpp>

#include "context/fp_control.hpp"

namespace weft::inline v0::detail {

namespace {

// So that the next switch need not look for them; unless it has to come here anyway.
void remember(exception_words& words) noexcept {
    thread_block& thread = this_thread_block();
    thread.exceptions = thread.runs_fp_keeper ? &unknown_exceptions : &words;
}

// The thread's own words waited in its block.
void keep_fp_control_no_more() noexcept {
    thread_block& thread = this_thread_block();
    write_fp_control(thread.fp_control);
    thread.runs_fp_keeper = false;
}

}  // namespace

// That it is one is known to the thread while it runs, and to the frame of its switch while it
// waits.
[[gnu::noinline, gnu::cold]] void keep_fp_control(std::uint64_t own) noexcept {
    thread_block& thread = this_thread_block();
    thread.fp_control = read_fp_control();
    write_fp_control(own);
    thread.runs_fp_keeper = true;
    thread.exceptions = &unknown_exceptions;
}

[[gnu::noinline, gnu::cold]] void put_away(context_state& from) noexcept {
    exception_words& words = *find_exception_words();
    if (words.any()) {
        from.caught_exceptions = words.caught;
        from.uncaught_exceptions = words.uncaught;
        from.flags |= context_state::holds_exceptions;
        words = {};
    }
    if (this_thread_block().runs_fp_keeper) {
        from.own_fp_control = read_fp_control();
        from.flags |= context_state::keeps_fp_control;
        keep_fp_control_no_more();
    }
    remember(words);
}

[[gnu::noinline, gnu::cold]] void put_away_finished() noexcept {
    exception_words& words = *find_exception_words();
    WEFT_ASSERT(
        !words.any(),
        "context: finished with an exception still in flight (jump() inside a catch block)");
    if (this_thread_block().runs_fp_keeper) keep_fp_control_no_more();
    remember(words);
}

[[gnu::noinline, gnu::cold]] void take_up(const context_state& mine) noexcept {
    if ((mine.flags & context_state::holds_exceptions) != 0)
        *find_exception_words() = {mine.caught_exceptions, mine.uncaught_exceptions};
    if ((mine.flags & context_state::keeps_fp_control) != 0) keep_fp_control(mine.own_fp_control);
}

}  // namespace weft::inline v0::detail
