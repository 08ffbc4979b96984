// leak_test.cpp - the fixtures of loops and pools make a test fail that leaves something behind.
//
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest-spi.h>

#include <memory>
#include <string>

#include <weft/exec/post.hpp>
#include <weft/exec/timer_queue.hpp>
#include <weft/exec/worker.hpp>
#include <weft/stack/stack_depot.hpp>

#include "loops.hpp"
#include "pools.hpp"

using namespace weft;
using weft_test::loop_fixture;
using weft_test::pool_fixture;

namespace {

/// What such a test says when it fails; "" if it passes.
std::string failures_of(weft_test::body run) {
    using reporter = testing::ScopedFakeTestPartResultReporter;
    testing::TestPartResultArray results;
    {
        const reporter instead(reporter::INTERCEPT_ONLY_CURRENT_THREAD, &results);
        run();
    }
    std::string messages;
    for (int i = 0; i < results.size(); ++i)
        messages.append(results.GetTestPartResult(i).message()).append("\n");
    return messages;
}

bool says(const std::string& messages, const char* text) {
    return messages.find(text) != std::string::npos;
}

struct leaves_nothing : loop_fixture {
    using loop_fixture::loop_fixture;
    void body() {
        spawn([] { static_cast<void>(sleep_for(std::chrono::milliseconds(1))); });
        run_until_blocked();
        advance(std::chrono::milliseconds(1));
    }
};

struct leaves_a_fiber : loop_fixture {
    using loop_fixture::loop_fixture;
    void body() {
        spawn([] { static_cast<void>(park()); });
        run_until_blocked();
    }
};

struct leaves_a_timer : loop_fixture {
    using loop_fixture::loop_fixture;
    ~leaves_a_timer() { timer_queue::disarm(left); }
    void body() {
        post(s, [this] {
            detail::worker_of_this_thread()->timers->arm(left, clock.now() + std::chrono::hours(1));
        });
        run();
    }
    timer_node left{[](timer_node&) noexcept -> runnable* { return nullptr; }};
};

stack taken;

template <class Fixture>
struct leaves_a_stack : Fixture {
    using Fixture::Fixture;
    void body() { taken = shared_stack_depot().take(default_stack_size()); }
};

struct leaves_nothing_on_pool : pool_fixture {
    using pool_fixture::pool_fixture;
    void body() {
        spawn([] { yield(); });
    }
};

std::unique_ptr<loop> elsewhere;

struct leaves_a_fiber_elsewhere : pool_fixture {
    using pool_fixture::pool_fixture;
    void body() {
        elsewhere = std::make_unique<loop>(loop_options{.external_wakes = false});
        go(*elsewhere, {.name = "left alone"}, [] { static_cast<void>(park()); });
    }
};

template <class Test>
std::string failures_on_loop(stack_kind kind) {
    using enum stack_kind;
    using weft_test::run_loop_test_of_kind;
    switch (kind) {
        case own:
            return failures_of(&run_loop_test_of_kind<Test, own>);
        case ucontext:
            return failures_of(&run_loop_test_of_kind<Test, ucontext>);
        case thread:
            return failures_of(&run_loop_test_of_kind<Test, thread>);
        case swapped:
            break;
    }
    return failures_of(&run_loop_test_of_kind<Test, swapped>);
}

constexpr stack_kind kinds[] = {stack_kind::own, stack_kind::ucontext, stack_kind::thread,
                                stack_kind::swapped};

}  // namespace

WEFT_TEST("loop fixture: a test fails that leaves a fiber, a timer or a stack, on every kind") {
    for (const stack_kind kind : kinds) {
        EXPECT_EQ(failures_on_loop<leaves_nothing>(kind), "");
        CHECK(says(failures_on_loop<leaves_a_fiber>(kind), "a fiber is left"));
        CHECK(says(failures_on_loop<leaves_a_timer>(kind), "a timer is left"));
        CHECK(says(failures_on_loop<leaves_a_stack<loop_fixture>>(kind),
                   "a stack was not given back"));
        shared_stack_depot().give_back(taken);
    }
}

WEFT_TEST("pool fixture: a test fails that leaves a stack, or a fiber on any executor") {
    EXPECT_EQ(failures_of(&weft_test::run_pool_test<leaves_nothing_on_pool, 1>), "");
    CHECK(says(failures_of(&weft_test::run_pool_test<leaves_a_stack<pool_fixture>, 1>),
               "a stack was not given back"));
    shared_stack_depot().give_back(taken);
    CHECK(says(failures_of(&weft_test::run_pool_test<leaves_a_fiber_elsewhere, 1>), "left alone"));
    elsewhere.reset();
}
