// out_of_memory_test.cpp - connections when an allocation of ours fails.
//
// Here the program is started that does it: tests/programs/io_failures.cpp.
//
// SPDX-License-Identifier: Apache-2.0
#include "subprocess.hpp"
#include "weft_test.hpp"

WEFT_TEST("io out of memory: connect says so, accept pauses and goes on, and nothing is left") {
    const weft_test::subprocess_result result = weft_test::run_program("io_failures", {});
    SCOPED_TRACE(result.describe());
    CHECK(result.exited_with(0));
    if (result.says("not here")) GTEST_SKIP() << result.output;
    CHECK(result.says("right"));
}
