// switch_to_test.cpp - fibers that go on on another executor.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/fiber/fiber.hpp>

#include <thread>

#include <weft/exec/loop.hpp>

#include "thread_now.hpp"
#include "weft_test.hpp"

using namespace weft;
using weft_test::thread_now;

WEFT_TEST("on: runs a function on another executor and comes back, in stress between two threads") {
    const long rounds = weft_test::stress_count(100'000);
    loop here;
    loop there;
    there.add_work(1);
    std::thread runs([&] { there.run(); });
    const auto main_thread = thread_now();
    long right = 0;
    go(here, [&] {
        for (long i = 0; i < rounds; ++i) {
            const bool elsewhere = on(there, [&] { return thread_now() != main_thread; });
            if (elsewhere && thread_now() == main_thread) ++right;
        }
    });
    here.run();
    there.add_work(-1);
    runs.join();
    CHECK(right == rounds);
}

WEFT_TEST("switch_to: an exception in flight goes along, also to another thread") {
    loop here;
    loop there;
    there.add_work(1);
    std::thread runs([&] { there.run(); });
    int caught = 0;
    here.add_work(1);  // it comes back
    go(here, [&] {
        try {
            throw 5;
        } catch (int) {
            switch_to(there);
            try {
                throw;
            } catch (int i) { caught = i; }
            switch_to(here);
            here.add_work(-1);
        }
    });
    here.run();
    there.add_work(-1);
    runs.join();
    CHECK(caught == 5);
}

WEFT_TEST("switch_to misuse: outside a fiber it aborts by name, and so does on") {
    loop s;
    EXPECT_DEATH(switch_to(s), "switch_to: called outside any fiber");
    EXPECT_DEATH(on(s, [] {}), "called outside any fiber ..on");
}
