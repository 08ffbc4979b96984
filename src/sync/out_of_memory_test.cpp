// out_of_memory_test.cpp - what channels, select and futures do when an allocation fails.
//
// Here the programs are started that do it: tests/programs/sync_failures.cpp.
//
// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "subprocess.hpp"
#include "weft_test.hpp"

namespace {

void check_failure(const std::string& name) {
    const weft_test::subprocess_result result = weft_test::run_program("sync_failures", {name});
    SCOPED_TRACE(name + ": " + result.describe());
    CHECK(result.exited_with(0));
    if (result.says("not here")) GTEST_SKIP() << result.output;
    CHECK(result.says("right"));
}

}  // namespace

WEFT_TEST("sync out of memory: a send whose i-th allocation fails loses nothing, for every i") {
    check_failure("sends");
}

WEFT_TEST("sync out of memory: a select whose i-th allocation fails loses nothing, for every i") {
    check_failure("selects");
}

WEFT_TEST("sync out of memory: futures whose i-th allocation fails leave nothing, for every i") {
    check_failure("futures");
}
