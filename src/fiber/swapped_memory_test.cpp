// swapped_memory_test.cpp - no memory to copy a swapped fiber out for the one that goes on.
//
// Nobody called who could be told by an exception, as the resumer of a coroutine is. The program
// that dies of it is tests/programs/swapped_failures.cpp.
//
// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "subprocess.hpp"
#include "weft_test.hpp"

WEFT_TEST("swapped: no memory to copy one out ends the program, and it says so") {
    for (const std::string name : {"loop", "pool"}) {
        const auto result = weft_test::run_program("swapped_failures", {name});
        SCOPED_TRACE(name + ": " + result.describe());
        if (result.says("not here")) GTEST_SKIP() << result.output;
        CHECK(!result.exited_with(0));
        CHECK(result.says("weft: "));
        CHECK((result.says("bad_alloc") || result.says("no memory")));
    }
}
