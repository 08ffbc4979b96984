// pool_placement_test.cpp - on which of its threads a pool runs a fiber.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/exec/pool.hpp>

#include <pthread.h>

#include <atomic>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "pools.hpp"
#include "thread_now.hpp"

using namespace weft;
using namespace std::chrono_literals;
using weft_test::thread_now;

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
