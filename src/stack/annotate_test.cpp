// annotate_test.cpp - LeakSanitizer looks for pointers on the stacks of suspended coroutines.
//
// SPDX-License-Identifier: Apache-2.0
#include "stack/annotate.hpp"

#include "subprocess.hpp"
#include "weft_test.hpp"

#if WEFT_ASAN

namespace {

weft_test::subprocess_result run_leak_program(const char* what) {
    return weft_test::run_program("stack_leak", {what}, {"ASAN_OPTIONS=detect_leaks=1"});
}

}  // namespace

WEFT_TEST("annotate: what only the stack of a suspended coroutine knows is no leak") {
    const weft_test::subprocess_result result = run_leak_program("kept");
    SCOPED_TRACE(result.describe());
    CHECK(result.exited_with(0));
    CHECK(!result.says("LeakSanitizer"));
}

WEFT_TEST("annotate: what a suspended coroutine has lost is a leak") {
    const weft_test::subprocess_result result = run_leak_program("lost");
    SCOPED_TRACE(result.describe());
    CHECK(!result.exited_with(0));
    CHECK(result.says("LeakSanitizer: detected memory leaks"));
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
