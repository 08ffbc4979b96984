// carry.cpp - see carry.hpp.
//
// SPDX-License-Identifier: Apache-2.0
#include "context/carry.hpp"

#include <weft/base/assert.hpp>

#include "context/fp_control.hpp"

namespace weft::inline v0::detail {

namespace {

void save_exceptions(const exception_words& words, context_state& from) noexcept {
    if (!words.any()) return;
    from.caught_exceptions = words.caught;
    from.uncaught_exceptions = words.uncaught;
    from.flags |= context_state::holds_exceptions;
}

void restore_exceptions(exception_words& words, context_state& to) noexcept {
    if ((to.flags & context_state::holds_exceptions) != 0) {
        words = {to.caught_exceptions, to.uncaught_exceptions};
        to.flags &= ~context_state::holds_exceptions;
    } else {
        words = {};
    }
}

// The thread's own words wait in its block while a computation that keeps its own runs on it. That
// it is one is known to the thread while it runs, and to the context that it is saved in while it
// waits: not always the one it was made in, for one that resumes another is saved in a place of the
// other's.
void change_fp_control(context_state* from, context_state& to) noexcept {
    constexpr auto keeps = context_state::keeps_fp_control;
    thread_block& thread = this_thread_block();
    const bool keeper_leaves = thread.runs_fp_keeper;
    const bool keeper_arrives = (to.flags & keeps) != 0;
    to.flags &= ~keeps;
    if (from != nullptr && keeper_leaves) from->flags |= keeps;
    if (!keeper_leaves && !keeper_arrives) return;
    const std::uint64_t current = read_fp_control();
    if (!keeper_leaves)
        thread.fp_control = current;
    else if (from != nullptr)
        from->own_fp_control = current;
    write_fp_control(keeper_arrives ? to.own_fp_control : thread.fp_control);
    thread.runs_fp_keeper = keeper_arrives;
}

// So that the next switch need not look for them; unless it has to come here anyway.
void remember(exception_words& words) noexcept {
    thread_block& thread = this_thread_block();
    thread.exceptions = thread.runs_fp_keeper ? &unknown_exceptions : &words;
}

}  // namespace

[[gnu::noinline, gnu::cold]] void carry(context_state& from, context_state& to) noexcept {
    exception_words& words = *find_exception_words();
    save_exceptions(words, from);
    restore_exceptions(words, to);
    change_fp_control(&from, to);
    remember(words);
}

[[gnu::noinline, gnu::cold]] void carry_from_finished(context_state& to) noexcept {
    exception_words& words = *find_exception_words();
    WEFT_ASSERT(
        !words.any(),
        "context: finished with an exception still in flight (jump() inside a catch block)");
    restore_exceptions(words, to);
    change_fp_control(nullptr, to);
    remember(words);
}

}  // namespace weft::inline v0::detail
