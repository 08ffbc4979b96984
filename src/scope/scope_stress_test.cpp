// scope_stress_test.cpp - groups and deadlines on pools, with ends and cancellation at once.
//
// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <functional>
#include <memory>
#include <stdexcept>
#include <thread>

#include <weft/base/test_point.hpp>
#include <weft/scope/deadline.hpp>
#include <weft/scope/task_group.hpp>
#include <weft/sync/event.hpp>
#include <weft/sync/scope_exit.hpp>
#include <weft/sync/wait_group.hpp>

#include "loops.hpp"
#include "pools.hpp"
#include "test_points.hpp"

using namespace weft;
using namespace std::chrono_literals;
using weft_test::stress_count;

namespace {

// Fewer on threads, whose switches are slow.
long rounds_for(stack_kind kind, long full) {
    return stress_count(kind == stack_kind::thread ? full / 10 : full);
}

void some_yields(long count) {
    for (long i = 0; i < count; ++i) yield();
}

// A tree in which some wait, some look whether they are cancelled, and some cancel a part of it.
struct tree {
    const fiber_options options;
    std::atomic<long> added = 0;
    std::atomic<long> ended = 0;

    void grow(int depth, unsigned seed) {
        const task_group_options how{.discard = true, .shares_locals = false, .fiber = options};
        with_task_group<void>(how, [this, depth, seed](task_group<void>& g) {
            for (unsigned i = 1; i <= 4; ++i) {
                added.fetch_add(1);
                g.add([this, depth, &g, mine = (seed * 4 + i) * 2654435761U] {
                    const scope_exit end([this] { ended.fetch_add(1); });
                    if (depth != 0) grow(depth - 1, mine >> 3);
                    if (mine % 7 == 0) yield();
                    if (mine % 61 == 0) g.cancel();
                    if (mine % 11 == 0) this_fiber::throw_if_cancelled();
                    if (mine % 13 == 0) static_cast<void>(sleep_for(1us));
                });
            }
            g.wait();
        });
    }
};

}  // namespace

POOL_TEST("task_group: stress, a tree whose children are taken back, stolen and stopped") {
    const weft_test::with_test_points points;
    for (long round = rounds_for(kind, 200); round > 0; --round) {
        const auto all = std::make_unique<tree>(options());
        fiber root(p, options(), [&all, round] {
            try {
                all->grow(4, static_cast<unsigned>(round));
            } catch (const cancelled&) {}
        });
        root.join();
        ASSERT_EQ(all->added.load(), all->ended.load());
    }
}

POOL_TEST("task_group: stress, cancel against completion, and no result is lost") {
    const weft_test::with_test_points points;
    constexpr int children = 4;
    for (long round = rounds_for(kind, 10'000); round > 0; --round) {
        std::atomic<int> completed = 0;
        int values = 0;
        int stopped = 0;
        with_task_group<int>({.home = &p, .fiber = options()}, [&](task_group<int>& g) {
            for (int i = 0; i < children; ++i)
                g.add([&, i] {
                    some_yields((round + i) % 3);
                    this_fiber::throw_if_cancelled();
                    completed.fetch_add(1);
                    return 1;
                });
            g.add([&, round] {
                some_yields(round % 4);
                g.cancel();
                return 0;
            });
            while (g.size() != 0) {
                const task_result<int> one = g.next_result();
                if (one.value)
                    values += *one.value;
                else
                    ++stopped;
            }
        });
        ASSERT_EQ(values, completed.load());
        ASSERT_EQ(values + stopped, children);
    }
}

POOL_TEST("task_group: stress, a parent that is stopped while its children end") {
    const weft_test::with_test_points points;
    struct shared {
        std::atomic<int> alive = 0;
        std::atomic<bool> left_one = false;
    } all;
    for (long round = rounds_for(kind, 10'000); round > 0; --round) {
        fiber parent(p, options(), [&, round] {
            const scope_exit check([&] {
                if (all.alive != 0) all.left_one = true;
            });
            with_task_group<void>({.shares_locals = false, .fiber = options()}, [&](auto& g) {
                for (int i = 0; i < 3; ++i) {
                    all.alive.fetch_add(1);
                    g.add([&all, n = (round + i) % 4] {
                        const scope_exit gone([&all] { all.alive.fetch_sub(1); });
                        if (n == 3) park();
                        some_yields(n);
                    });
                }
                g.wait();
            });
        });
        for (long i = round % 5; i > 0; --i) std::this_thread::yield();
        parent.request_stop();
        parent.join();
        ASSERT_FALSE(all.left_one);
    }
}

POOL_TEST("task_group: stress, several children that fail, in groups inside groups") {
    const weft_test::with_test_points points;
    std::atomic<int> alive = 0;
    for (long round = rounds_for(kind, 5'000); round > 0; --round) {
        int caught = 0;
        const task_group_options inside{.shares_locals = false, .fiber = options()};
        try {
            with_task_group<void>({.home = &p, .fiber = options()}, [&](task_group<void>& g) {
                for (int i = 0; i < 3; ++i)
                    g.add([&, i] {
                        alive.fetch_add(1);
                        const scope_exit gone([&alive] { alive.fetch_sub(1); });
                        with_task_group<void>(inside, [&alive, i, round](task_group<void>& inner) {
                            inner.add([&alive] {
                                alive.fetch_add(1);
                                const scope_exit over([&alive] { alive.fetch_sub(1); });
                                park();
                            });
                            inner.add([i, round] {
                                some_yields((round + i) % 3);
                                throw std::runtime_error("x");
                            });
                            inner.wait();
                        });
                    });
                g.wait();
            });
        } catch (const std::runtime_error&) { ++caught; }
        ASSERT_EQ(caught, 1);
        ASSERT_EQ(alive.load(), 0);
    }
}

POOL_TEST("deadline: stress, it fires while its waiter is being woken") {
    const weft_test::with_test_points points;
    std::atomic<long> in_time = 0;
    std::atomic<long> late = 0;
    const long rounds = rounds_for(kind, 20'000);
    for (long round = 0; round < rounds; ++round) {
        event set;
        wait_group both(2);
        spawn([&, round] {
            const auto done = both.guard();
            const auto result =
                with_timeout(std::chrono::nanoseconds(round % 64 * 200), [&] { set.wait(); });
            (result ? in_time : late).fetch_add(1);
            static_cast<void>(sleep_for(0s));
            if (this_fiber::stop_requested()) late.fetch_add(1'000'000);  // it was left
        });
        spawn([&, round] {
            const auto done = both.guard();
            some_yields(round % 5);
            set.set();
        });
        both.wait();
    }
    p.drain();
    CHECK(in_time + late == rounds);
}

POOL_TEST("deadline: stress, it cancels a tree whose children end at the same moment") {
    const weft_test::with_test_points points;
    std::atomic<int> alive = 0;
    std::atomic<bool> left_one = false;
    for (long round = rounds_for(kind, 5'000); round > 0; --round) {
        fiber parent(p, options(), [&, round] {
            const auto result = with_timeout(std::chrono::microseconds(round % 16), [&] {
                with_task_group<void>({.shares_locals = false, .fiber = options()}, [&](auto& g) {
                    for (int i = 0; i < 3; ++i) {
                        alive.fetch_add(1);
                        g.add([&alive, n = round + i] {
                            const scope_exit gone([&alive] { alive.fetch_sub(1); });
                            if (n % 3 == 0)
                                park();
                            else
                                sleep_for(std::chrono::microseconds(n % 16));
                        });
                    }
                    g.wait();
                });
            });
            static_cast<void>(result);
            if (alive != 0) left_one = true;
        });
        parent.join();
        ASSERT_FALSE(left_one);
    }
}

WEFT_TEST("task_group: stress, many parked children are cancelled and joined") {
    loop s;
    const long count = stress_count(1'000'000);
    long stopped = 0;
    go(s, [&] {
        with_task_group<void>({.discard = true}, [&](task_group<void>& g) {
            for (long i = 0; i < count; ++i)
                g.add([&] {
                    if (!park()) ++stopped;
                });
            yield();
        });
    });
    s.run();
    CHECK(stopped == count);
}

WEFT_TEST("task_group: stress, a tree deeper than the canceller's stack could recurse") {
    loop s;
    const long depth = stress_count(1'000'000);
    long stopped = 0;
    const std::function<void(long)> nest = [&](long left) {
        if (left == 0) {
            if (!park()) ++stopped;
            return;
        }
        with_task_group<void>([&](task_group<void>& g) {
            g.add([&, left] { nest(left - 1); });
            g.wait();
        });
    };
    fiber f(s, [&] { nest(depth); });
    s.run_until_blocked();
    f.request_stop();
    s.run();
    CHECK(stopped == 1);
    f.detach();
}
