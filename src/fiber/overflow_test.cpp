// overflow_test.cpp - a stack overflow in a fiber says in which, and where its stack is.
//
// The program that overflows is tests/programs/overflow_fiber.cpp. What else there is to say of
// overflows is in src/stack/overflow_test.cpp.
//
// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "overflow_support.hpp"

using namespace weft_test;

namespace {

void check_overflow(const std::string& where) {
    const subprocess_result result = run_program("overflow_fiber", {where});
    SCOPED_TRACE(where + ": " + result.describe());
    check_overflow_line(result, "fiber 'parser'");
    CHECK(result.says("body at "));
    CHECK(died_of_a_fault(result));
    CHECK(!result.says("went on"));
}

}  // namespace

WEFT_TEST("overflow: of a fiber is reported with its name, whatever its kind") {
    for (const char* kind : {"own", "ucontext", "thread", "swapped"}) check_overflow(kind);
}

WEFT_TEST("overflow: of a fiber is reported on a worker of a pool") { check_overflow("pool"); }

WEFT_TEST("overflow: the fiber is named that another switched to, not that other") {
    check_overflow("switched");
}

WEFT_TEST("overflow: the fiber is named that runs on the stack of one that has ended") {
    check_overflow("inherited");
}
