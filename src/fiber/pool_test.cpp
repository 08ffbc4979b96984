// pool_test.cpp - fibers on a pool: waits, wakes, ends.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/exec/pool.hpp>

#include <atomic>
#include <stdexcept>
#include <thread>

#include <weft/base/errc.hpp>
#include <weft/fiber/cancel.hpp>

#include "pools.hpp"

using namespace weft;
using namespace std::chrono_literals;

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
