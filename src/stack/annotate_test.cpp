// annotate_test.cpp - LeakSanitizer looks for pointers on the stacks of suspended coroutines.
//
// SPDX-License-Identifier: Apache-2.0
#include "stack/annotate.hpp"

#include "subprocess.hpp"
#include "weft_test.hpp"

#if WEFT_ASAN

namespace {

weft_test::subprocess_result run_leak_program(const char* source, const char* what) {
    return weft_test::run_program("stack_leak", {source, what}, {"ASAN_OPTIONS=detect_leaks=1"});
}

void expect_no_leak(const weft_test::subprocess_result& result) {
    SCOPED_TRACE(result.describe());
    CHECK(result.exited_with(0));
    CHECK(!result.says("LeakSanitizer"));
}

void expect_leak(const weft_test::subprocess_result& result) {
    SCOPED_TRACE(result.describe());
    CHECK(!result.exited_with(0));
    CHECK(result.says("LeakSanitizer: detected memory leaks"));
}

}  // namespace

WEFT_TEST("annotate: what only the stack of a suspended coroutine knows is no leak") {
    expect_no_leak(run_leak_program("depot", "kept"));
}

WEFT_TEST("annotate: what a suspended coroutine has lost is a leak") {
    expect_leak(run_leak_program("depot", "lost"));
}

WEFT_TEST("annotate: the same on stacks of a user's source") {
    expect_no_leak(run_leak_program("user", "kept"));
    expect_leak(run_leak_program("user", "lost"));
}

WEFT_TEST("annotate: what only the stack of a waiting fiber knows is no leak on a user's stack") {
    expect_no_leak(run_leak_program("user", "fibers"));
}

WEFT_TEST("annotate: a stack that went back to its source keeps nothing from being a leak") {
    expect_leak(run_leak_program("user", "ended"));
    expect_leak(run_leak_program("depot", "ended"));
}

WEFT_TEST("annotate: a stack that is used again after a trim is looked at again") {
    expect_no_leak(run_leak_program("depot", "trimmed"));
}

#endif

WEFT_TEST("annotate: a stack has a fiber of ThreadSanitizer exactly where there is one") {
    const weft::stack s = weft::shared_stacks().take(weft::default_stack_size());
    CHECK((s.tsan_fiber != nullptr) == WEFT_TSAN);
    weft::shared_stacks().give_back(s);
    const weft::stack again = weft::shared_stacks().take(weft::default_stack_size());
    CHECK(again.tsan_fiber == s.tsan_fiber);
    weft::shared_stacks().give_back(again);
}
