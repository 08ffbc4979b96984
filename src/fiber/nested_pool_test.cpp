// nested_pool_test.cpp - pools and loops inside fibers of a pool, and between them.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/exec/pool.hpp>

#include <pthread.h>

#include <atomic>
#include <memory>
#include <thread>

#include <weft/exec/loop.hpp>

#include "pools.hpp"
#include "thread_now.hpp"

using namespace weft;
using namespace std::chrono_literals;
using weft_test::thread_now;

POOL_TEST("pool: is made, drained and destroyed inside a fiber of another") {
    std::atomic<int> ran = 0;
    spawn([&] {
        auto inner = std::make_unique<pool>(pool_options{.workers = 2});
        for (int i = 0; i < 10; ++i)
            go(*inner, [&] {
                yield();
                ++ran;
            });
        inner->drain();
        CHECK(ran == 10);
        go(*inner, [&] { ++ran; });
        inner.reset();
        CHECK(ran == 11);
    });
    p.drain();
    CHECK(ran == 11);
}

POOL_TEST("pool: a loop runs inside one of its fibers, which waits when that is idle") {
    std::atomic<bool> done = false;
    loop inner;
    inner.add_work(1);
    spawn([&] {
        inner.run();
        done = true;
    });
    std::atomic<int> others = 0;
    for (int i = 0; i < 100; ++i) spawn([&] { ++others; });
    while (others < 100) std::this_thread::yield();  // also on one worker: the loop let go of it
    CHECK(!done);
    go(inner, options(), [&] {
        sleep_for(1us);
        inner.add_work(-1);
    });
    p.drain();
    CHECK(done);
}

POOL_TEST("pool: fibers move between pool and loop on purpose") {
    if (kind != stack_kind::own && kind != stack_kind::ucontext) return;
    loop here;
    here.add_work(1);
    spawn([&] {
        const pthread_t before = thread_now();
        on(here, [&] { CHECK(thread_now() != before); });
        switch_to(here);
        CHECK(&this_fiber::executor() == &here);
        switch_to(p);
        CHECK(&this_fiber::executor() == &p);
        here.add_work(-1);
    });
    here.run();
}
