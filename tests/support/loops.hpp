// loops.hpp - tests on a loop of their own, with a clock that stands still until they move it.
//
//     MATRIX_TEST("fiber: runs until it yields") {
//         std::string log;
//         spawn([&] { log += 'a'; yield(); log += 'b'; });
//         run_until_blocked();
//         CHECK(log == "ab");
//     }
//
// LOOP_TEST makes one test, MATRIX_TEST one for each kind of stack: (own), (ucontext), (thread),
// (swapped). The body is a member of loop_fixture. A test fails if a fiber, a stack or a timer is
// left at its end. The locals of the body may be shared among fibers; those of a fiber may not, for
// those of a swapped one go away while it is parked.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include <weft/exec/loop.hpp>
#include <weft/fiber/fiber.hpp>
#include <weft/fiber/go.hpp>
#include <weft/fiber/suspend.hpp>
#include <weft/fiber/this_fiber.hpp>

#include "backends.hpp"
#include "weft_test.hpp"

namespace weft_test {

class loop_fixture {
public:
    explicit loop_fixture(weft::stack_kind k) : kind(k) {}

    weft::manual_clock clock;
    weft::loop s{{.external_wakes = false, .clock = &clock}};
    const weft::stack_kind kind;

    [[nodiscard]] weft::fiber_options options(weft::fiber_options wanted = {}) const {
        wanted.kind = kind;
        return wanted;
    }
    template <class F>
    void spawn(F&& function) {
        weft::go(s, options(), std::forward<F>(function));
    }
    template <class F>
    void spawn(weft::fiber_options wanted, F&& function) {
        weft::go(s, options(wanted), std::forward<F>(function));
    }
    /// Until everything ended; stuck fibers are a failure.
    void run() {
        const weft::stuck_report stuck = s.run();
        EXPECT_FALSE(stuck) << stuck.text();
    }
    std::size_t run_until_blocked() { return s.run_until_blocked(); }
    /// Moves the clock and runs what is due.
    void advance(std::chrono::nanoseconds by) {
        clock.advance(by);
        s.run_until_blocked();
    }
};

template <class Test>
void run_loop_test(weft::stack_kind kind) {
    allow_threads_in_death_tests();
    const std::size_t before = stacks_in_use();
    {
        Test test(kind);
        test.body();
        EXPECT_EQ(test.s.alive(), 0U) << "a fiber is left";
        EXPECT_FALSE(test.s.next_deadline()) << "a timer is left";
    }
    EXPECT_EQ(stacks_in_use(), before) << "a stack was not given back";
}

template <class Test, weft::stack_kind Kind>
void run_loop_test_of_kind() {
    run_loop_test<Test>(Kind);
}

template <class Test>
bool add_loop_test(std::string_view sentence, const char* file, int line) {
    return add(sentence, "", file, line, &run_loop_test_of_kind<Test, weft::stack_kind::own>);
}

template <class Test>
bool add_matrix_test(std::string_view sentence, const char* file, int line) {
    using enum weft::stack_kind;
    add(sentence, "own", file, line, &run_loop_test_of_kind<Test, own>);
    add(sentence, "ucontext", file, line, &run_loop_test_of_kind<Test, ucontext>);
    add(sentence, "thread", file, line, &run_loop_test_of_kind<Test, thread>);
    return add(sentence, "swapped", file, line, &run_loop_test_of_kind<Test, swapped>);
}

}  // namespace weft_test

#define WEFT_LOOP_TEST_AT(sentence, adder, name)                      \
    namespace {                                                       \
    struct name : weft_test::loop_fixture {                           \
        using loop_fixture::loop_fixture;                             \
        void body();                                                  \
    };                                                                \
    }                                                                 \
    [[maybe_unused]] static const bool WEFT_TEST_NAME(name, _added) = \
        weft_test::adder<name>(sentence, __FILE__, __LINE__);         \
    void name::body()
#define LOOP_TEST(sentence) \
    WEFT_LOOP_TEST_AT(sentence, add_loop_test, WEFT_TEST_NAME(loop_test_at_line_, __LINE__))
#define MATRIX_TEST(sentence) \
    WEFT_LOOP_TEST_AT(sentence, add_matrix_test, WEFT_TEST_NAME(loop_test_at_line_, __LINE__))
