// fiber_local_test.cpp - values of which each fiber has its own.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/fiber/fiber_local.hpp>

#include <string>

#include "loops.hpp"

using namespace weft;

MATRIX_TEST("fiber_local: each fiber has its own, destroyed at its end, the last made first") {
    static std::string log;
    log.clear();
    struct tells {
        int number = 0;
        ~tells() { log += std::to_string(number); }
    };
    fiber_local<tells> first;
    fiber_local<tells> second;
    for (int i = 0; i < 2; ++i)
        spawn([&, i] {
            CHECK(first->number == 0);
            first->number = 10 * i + 1;
            yield();
            second->number = 10 * i + 2;
            CHECK(first->number == 10 * i + 1);
        });
    run();
    CHECK(log == "211211");
}

WEFT_TEST("fiber_local misuse: outside a fiber it aborts") {
    fiber_local<int> local;
    EXPECT_DEATH(static_cast<void>(*local), "fiber_local: used outside any fiber");
}
