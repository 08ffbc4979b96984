// overflow_test.cpp - a stack overflow says whose it is, and then the process dies as it would.
//
// The programs that overflow are tests/programs/overflow_*.cpp; fibers' are in src/fiber.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/stack/overflow.hpp>

#include <csignal>
#include <string>

#include "overflow_support.hpp"

using namespace weft_test;

namespace {

constexpr bool with_sanitizer = WEFT_ASAN || WEFT_TSAN;

void check_overflow(const std::string& where, const std::string& way) {
    const subprocess_result result = run_program("overflow_coroutine", {where, way});
    SCOPED_TRACE(where + ", " + way + ": " + result.describe());
    check_overflow_line(result, "coroutine 'parser'");
    CHECK(died_of_a_fault(result));
    CHECK(!result.says("went on"));
}

subprocess_result run_case(const std::string& name) {
    return run_program("overflow_handlers", {name});
}

}  // namespace

WEFT_TEST("overflow: by recursion is reported on every back end") {
    for (const char* where : {"own", "ucontext", "thread", "swapped"})
        check_overflow(where, "recursion");
}

WEFT_TEST("overflow: by one large frame is reported on every back end") {
    for (const char* where : {"own", "ucontext", "thread", "swapped"})
        check_overflow(where, "frame");
}

WEFT_TEST("overflow: by alloca is reported on every back end") {
    for (const char* where : {"own", "ucontext", "thread", "swapped"})
        check_overflow(where, "alloca");
}

// What a frame of 96 KiB does in code that was compiled without -fstack-clash-protection.
WEFT_TEST("overflow: by a touch far below the stack is reported") {
    for (const char* where : {"own", "ucontext", "thread", "swapped"})
        check_overflow(where, "skip");
}

WEFT_TEST("overflow: by a frame of 96 KiB at the end of a stack is reported, not the neighbour's") {
    for (const char* where : {"own", "ucontext", "thread", "swapped"}) check_overflow(where, "end");
}

WEFT_TEST("overflow: is reported in a thread other than the main one") {
    for (const char* way : {"recursion", "frame", "alloca"}) check_overflow("elsewhere", way);
}

WEFT_TEST("overflow: among nested coroutines the one that overflowed is named") {
    check_overflow("inner", "recursion");
    check_overflow("outer", "recursion");
}

WEFT_TEST("overflow: a null pointer inside a coroutine is none") {
    for (const char* where : {"own", "ucontext", "thread", "swapped", "elsewhere"}) {
        const subprocess_result result = run_program("overflow_coroutine", {where, "null"});
        SCOPED_TRACE(where + (": " + result.describe()));
        CHECK(!result.says("weft: "));  // as a line of ours begins; not weft::name in a backtrace
        CHECK(!result.says("went on"));
        CHECK(died_of_a_fault(result) || WEFT_ASAN);  // UBSan may see it first
    }
}

WEFT_TEST("overflow: of a depot's stack on which a nameless context runs is reported") {
    const subprocess_result result = run_program("overflow_context", {"alone"});
    SCOPED_TRACE(result.describe());
    check_overflow_line(result, "a context");
    CHECK(died_of_a_fault(result));
}

WEFT_TEST("overflow: of a context that a coroutine runs is not called the coroutine's") {
    for (const char* where : {"below", "above"}) {
        const subprocess_result result = run_program("overflow_context", {where});
        SCOPED_TRACE(where + (": " + result.describe()));
        check_overflow_line(result, "a context");
        CHECK(died_of_a_fault(result));
    }
}

WEFT_TEST("overflow: a handler that was there before is called after the line") {
    for (const char* name : {"siginfo", "plain"}) {
        const subprocess_result result = run_case(name);
        SCOPED_TRACE(name + (": " + result.describe()));
        check_overflow_line(result, "coroutine 'parser'");
        CHECK(result.says("bytes deep\nhandler\n"));
        CHECK(result.exited_with(42));
    }
}

WEFT_TEST("overflow: where the signal was ignored it still kills") {
    const subprocess_result result = run_case("ignored");
    SCOPED_TRACE(result.describe());
    check_overflow_line(result, "coroutine 'parser'");
    CHECK(result.killed_by(SIGSEGV));
}

WEFT_TEST("overflow: a handler that was there before may recover, again and again") {
    if (with_sanitizer) GTEST_SKIP() << "the sanitizers do not follow such a jump";
    const subprocess_result result = run_case("recovers");
    SCOPED_TRACE(result.describe());
    CHECK(count_of(overflow_opening, result.output) == 2);
    CHECK(result.says("went on"));
    CHECK(result.exited_with(0));
}

WEFT_TEST("overflow: a handler that came later can pass the fault on") {
    const subprocess_result result = run_case("in_front");
    SCOPED_TRACE(result.describe());
    CHECK(result.says(std::string("handler\n") + overflow_opening));
    check_overflow_line(result, "coroutine 'parser'");
    CHECK(died_of_a_fault(result));
}

WEFT_TEST("overflow: disabled, it is not reported, and kills as before") {
    for (const char* name : {"disabled_before", "disabled_after", "in_front_and_disabled"}) {
        const subprocess_result result = run_case(name);
        SCOPED_TRACE(name + (": " + result.describe()));
        CHECK(!result.says("weft: "));  // as a line of ours begins; not weft::name in a backtrace
        CHECK(!result.says("went on"));
        CHECK(died_of_a_fault(result));
    }
}

WEFT_TEST("overflow: disabled and enabled again, it is reported once") {
    for (const char* name : {"enabled_again", "in_front_and_enabled_again"}) {
        const subprocess_result result = run_case(name);
        SCOPED_TRACE(name + (": " + result.describe()));
        check_overflow_line(result, "coroutine 'parser'");
        CHECK(died_of_a_fault(result));
    }
}

WEFT_TEST("overflow: disabling gives the handler that was there before back, and it stays") {
    for (const char* name : {"disabled_gives_the_old_handler_back", "disabled_stays_so"}) {
        const subprocess_result result = run_case(name);
        SCOPED_TRACE(name + (": " + result.describe()));
        CHECK(result.exited_with(0));
    }
}

WEFT_TEST("overflow: a SIGSEGV that somebody sent does what it did before, and is no overflow") {
    const subprocess_result sent = run_case("sent");
    SCOPED_TRACE(sent.describe());
    CHECK(!sent.says("weft: "));
    CHECK(!sent.says("went on"));
    CHECK(died_of_a_fault(sent));
    const subprocess_result ignored = run_case("sent_and_ignored");
    SCOPED_TRACE(ignored.describe());
    CHECK(ignored.says(std::string("still here\n") + overflow_opening));
    CHECK(ignored.killed_by(SIGSEGV));
}

WEFT_TEST("overflow: a thread that has an alternate signal stack keeps it") {
    const subprocess_result result = run_case("keeps_a_signal_stack");
    SCOPED_TRACE(result.describe());
    check_overflow_line(result, "coroutine 'parser'");
    CHECK(died_of_a_fault(result));
}

WEFT_TEST("overflow: a thread that ends leaves no alternate signal stack behind") {
    if (with_sanitizer || emulated) GTEST_SKIP() << "these map memory of their own";
    const subprocess_result result = run_case("threads_leave_nothing");
    SCOPED_TRACE(result.describe());
    CHECK(result.exited_with(0));
}
