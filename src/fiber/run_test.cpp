// run_test.cpp - a program in one call.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/fiber/run.hpp>

#include <stdexcept>

#include <weft/exec/pool.hpp>
#include <weft/fiber/go.hpp>
#include <weft/fiber/this_fiber.hpp>

#include "weft_test.hpp"

using namespace weft;

WEFT_TEST("run: runs on all CPUs and returns what the function returns") {
    CHECK(run([] { return 42; }) == 42);
    EXPECT_THROW(run([] { throw std::runtime_error("out"); }), std::runtime_error);
    CHECK(run([] { return this_fiber::executor().workers(); }) == usable_cpus());
    int ended = 0;
    run([&] {
        go([&] {
            static_cast<void>(park());
            ++ended;
        });
        yield();
    });
    CHECK(ended == 1);
}
