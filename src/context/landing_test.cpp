// landing_test.cpp - every indirect branch of a switch meets a landing pad, on aarch64 (BTI).
//
// SPDX-License-Identifier: Apache-2.0
#include "subprocess.hpp"
#include "weft_test.hpp"

#if defined(__aarch64__)

WEFT_TEST("landing: a switch and a throw where the processor asks for landing pads") {
    const weft_test::subprocess_result result = weft_test::run_program("context_landing", {});
    SCOPED_TRACE(result.describe());
    CHECK(result.exited_with(0));
    if (result.says("unchecked"))
        GTEST_SKIP() << "this processor does not check indirect branches (no BTI)";
    CHECK(result.says("right\n"));
}

#endif
