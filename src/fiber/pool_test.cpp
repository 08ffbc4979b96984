// pool_test.cpp - fibers on a pool: waits, wakes, ends, and where they may run.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/exec/pool.hpp>

#include <pthread.h>

#include <atomic>
#include <latch>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include <weft/base/errc.hpp>
#include <weft/exec/loop.hpp>
#include <weft/fiber/cancel.hpp>
#include <weft/fiber/run.hpp>

#include "pools.hpp"
#include "thread_now.hpp"

using namespace weft;
using namespace std::chrono_literals;
using weft_test::thread_now;

POOL_TEST("pool: fibers yield, sleep, and wait for their children") {
    std::atomic<int> sum = 0;
    for (int i = 0; i < 50; ++i)
        spawn([&] {
            for (int j = 0; j < 10; ++j) yield();
            sleep_for(1us);
            fiber child(options(), [&] { ++sum; });
            child.join();
            ++sum;
        });
    p.drain();
    CHECK(sum == 100);
}

POOL_TEST("pool: unpark comes before or after park, and is never lost") {
    for (int round = 0; round < 20; ++round) {
        std::atomic<int> got = 0;
        fiber parked(p, options(), [&] {
            for (int i = 0; i < 10; ++i)
                if (park()) ++got;
        });
        const fiber_handle handle = parked.handle();
        while (got < 10) {
            unpark(handle);
            std::this_thread::yield();
        }
        parked.join();
    }
}

POOL_TEST("pool: a nested wait never deadlocks, however few workers there are") {
    std::atomic<int> leaves = 0;
    struct tree {
        using fixture = const weft_test::pool_fixture*;
        static void grow(fixture test, std::atomic<int>& leaves, int depth) {
            if (depth == 0) {
                ++leaves;
                return;
            }
            const auto child = [test, &leaves, depth] { grow(test, leaves, depth - 1); };
            fiber left(test->options(), child);
            fiber right(test->options(), child);
            left.join();
            right.join();
        }
    };
    const weft_test::pool_fixture* const test = this;
    spawn([&leaves, test] { tree::grow(test, leaves, 6); });
    p.drain();
    CHECK(leaves == 64);
}

POOL_TEST("pool: cancelling races waiting, and every fiber ends") {
    for (int round = 0; round < 50; ++round) {
        fiber sleeper(p, options(), [] {
            while (sleep_for(1h)) {}
        });
        fiber parker(p, options(), [] {
            while (park()) {}
        });
        fiber waiter_for_ever(p, options(), [] {
            static constexpr wait_reason reason{"waits for nothing"};
            CHECK(wait(reason, no_deadline, [](waiter&) noexcept { return true; }) ==
                  wait_outcome::cancelled);
        });
        sleeper.request_stop();
        parker.request_stop();
        waiter_for_ever.request_stop();
    }
}

POOL_TEST("pool: an exception comes out of join, wherever it was thrown") {
    fiber f(p, options(), [] {
        yield();
        throw std::runtime_error("out");
    });
    EXPECT_THROW(f.join(), std::runtime_error);
}

POOL_TEST("pool: ends while fibers wait and new ones come") {
    std::atomic<int> ended = 0;
    {
        pool inner({.workers = p.workers()});
        for (int i = 0; i < 20; ++i)
            go(inner, options(), [this, &inner, &ended] {
                go(inner, options(), [&ended] {
                    static_cast<void>(park());
                    ++ended;
                });
                static_cast<void>(sleep_for(1h));
                go(inner, options(), [&ended] {
                    CHECK(this_fiber::stop_requested());
                    ++ended;
                });
                ++ended;
            });
    }
    CHECK(ended == 60);
}

POOL_TEST("pool: after shutdown go from outside fails with errc::shutdown") {
    pool other({.workers = 1});
    go(other, options(), [] {});
    CHECK(!other.shutdown(10s));
    try {
        go(other, options(), [] {});
        CHECK(false);
    } catch (const std::system_error& refused) { CHECK(refused.code() == errc::shutdown); }
}

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

POOL_TEST("pool: a pinned fiber stays on its thread over every kind of wait") {
    for (int i = 0; i < 20; ++i)
        go(p, options({.pinned = true}), [] {
            const pthread_t mine = thread_now();
            for (int j = 0; j < 20; ++j) {
                yield();
                CHECK(thread_now() == mine);
                sleep_for(1us);
                CHECK(thread_now() == mine);
            }
        });
    p.drain();
}

POOL_TEST("pool: a fiber that names its worker runs there") {
    if (kind == stack_kind::thread) return;
    std::mutex mutex;
    std::vector<std::set<pthread_t>> threads(p.workers());
    for (unsigned i = 0; i < 4 * p.workers(); ++i)
        go(p, options({.worker = i % p.workers()}), [&, i] {
            for (int j = 0; j < 5; ++j) {
                const pthread_t now = thread_now();
                {
                    const std::lock_guard lock(mutex);
                    threads[i % p.workers()].insert(now);
                }
                yield();
            }
        });
    p.drain();
    std::set<pthread_t> all;
    for (const auto& one : threads) {
        CHECK(one.size() == 1);
        all.insert(one.begin(), one.end());
    }
    CHECK(all.size() == p.workers());
    EXPECT_THROW(go(p, options({.worker = p.workers()}), [] {}), std::invalid_argument);
    EXPECT_THROW(fiber(p, options({.worker = 70000}), [] {}), std::invalid_argument);
}

WEFT_TEST("pool: a swapped fiber may start anywhere, and stays where it started") {
    pool p({.workers = 2});
    std::mutex mutex;
    std::set<pthread_t> starts;
    std::atomic<int> started = 0;
    for (int i = 0; i < 2; ++i)
        go(p, {.kind = stack_kind::swapped}, [&] {
            const pthread_t mine = thread_now();
            {
                const std::lock_guard lock(mutex);
                starts.insert(mine);
            }
            ++started;
            while (started < 2) std::this_thread::yield();  // both at once: two threads
            for (int j = 0; j < 100; ++j) {
                yield();
                CHECK(thread_now() == mine);
            }
        });
    p.drain();
    CHECK(starts.size() == 2);
}

WEFT_TEST("pool: with force_migrate a fiber is elsewhere after each stop") {
    pool p({.workers = 2, .force_migrate = true});
    go(p, [&] {
        for (int j = 0; j < 20; ++j) {
            const pthread_t before = thread_now();
            suspend([&p](runnable* r) noexcept -> runnable* {
                p.post(r);
                return nullptr;
            });
            CHECK(thread_now() != before);
        }
    });
    p.drain();
}

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
