// out_of_memory_test.cpp - the system says no: the right error, nothing lost, and on it goes.
//
// What is done and checked is in tests/programs/stack_limits.cpp, where limits are set, and in
// stack_failures.cpp, where calls of the system are made to fail. Neither can be done under ASan or
// TSan, which need address space without limit and stand in front of those calls themselves.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/stack/stack_depot.hpp>

#include <string>

#include "subprocess.hpp"
#include "weft_test.hpp"

#if !WEFT_ASAN && !WEFT_TSAN

namespace {

void check_case(const std::string& program, const std::string& name) {
    const weft_test::subprocess_result result = weft_test::run_program(program, {name});
    SCOPED_TRACE(name + ": " + result.describe());
    CHECK(result.exited_with(0));
    if (result.says("not here") || result.says("no limit")) GTEST_SKIP() << result.output;
    CHECK(result.says("right"));
}

void check_limit(const std::string& name) {
    if (weft_test::emulated) GTEST_SKIP() << "the emulator sets no such limits";
    check_case("stack_limits", name);
}

void check_failure(const std::string& name) { check_case("stack_failures", name); }

}  // namespace

WEFT_TEST("out of memory: stacks end with bad_alloc, all are usable, and none is lost") {
    check_limit("stacks");
}

WEFT_TEST("out of memory: where a whole chunk cannot be had, a smaller one is reserved") {
    check_limit("pieces");
}

WEFT_TEST("out of memory: a large stack that cannot be had leaves nothing behind") {
    check_limit("large");
}

WEFT_TEST("out of memory: coroutines end with bad_alloc, all run, and none is lost") {
    check_limit("coroutines");
}

WEFT_TEST("out of memory: guards that take mappings end with ENOMEM, and no stack is lost") {
    check_limit("mappings");
}

WEFT_TEST("out of memory: where no more memory may be locked there are as many as fit") {
    check_limit("locked");
}

WEFT_TEST("out of memory: a failing mmap is reported with its errno and changes nothing") {
    check_failure("mmap_fails");
}

WEFT_TEST("out of memory: reservations get smaller, down to a single slot, and larger again") {
    check_failure("reservations_get_smaller");
}

WEFT_TEST("out of memory: a guard that cannot be made is reported with its errno") {
    check_failure("protect_fails");
}

WEFT_TEST("out of memory: a guard that cannot be installed is reported with its errno") {
    check_failure("install_fails");
}

WEFT_TEST("out of memory: where guards cannot be installed the others are used") {
    check_failure("probe_is_refused");
    check_failure("probe_has_no_memory");
    check_failure("probe_is_told_a_lie");
}

WEFT_TEST("out of memory: a trim that fails does no harm") { check_failure("trim_fails"); }

WEFT_TEST("out of memory: an allocation that fails is bad_alloc and changes nothing") {
    check_failure("new_fails");
}

WEFT_TEST("out of memory: a coroutine that gets no stack leaves nothing behind") {
    check_failure("coroutine_gets_no_stack");
}

WEFT_TEST("out of memory: without an alternate signal stack coroutines run all the same") {
    check_failure("signal_stack_has_no_memory");
    check_failure("signal_stack_is_refused");
    check_failure("signal_stack_cannot_be_kept");
    check_failure("signal_stack_has_no_key");
}

WEFT_TEST("out of memory: a handler that cannot be installed is an error with errno") {
    check_failure("handler_is_refused");
}

#endif
