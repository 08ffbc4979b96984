// future_stress_test.cpp - futures between fibers and plain threads, on loops and on pools.
//
// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <vector>

#include <weft/sync/async.hpp>
#include <weft/sync/future.hpp>
#include <weft/sync/when.hpp>

#include "crowd.hpp"

using namespace weft;
using namespace std::chrono_literals;
using weft_test::gathering;
using weft_test::with_test_points;
using weft_test::yield_or_pass;

namespace {

long rounds_for(stack_kind kind, long full) {
    return weft_test::stress_count(kind == stack_kind::thread ? full / 10 : full);
}

void destroy_at_once(const gathering& gather, long rounds) {
    const with_test_points points;
    struct both {
        promise<long> p;
        future<long> f = p.get_future();
    };
    std::unique_ptr<both> shared;
    std::atomic<both*> now = nullptr;
    std::atomic<bool> end = false;
    gather(2, [&](int who) {
        if (who == 0) {
            for (long i = 0; i < rounds; ++i) {
                shared = std::make_unique<both>();
                now = shared.get();
                CHECK(shared->f.get() == 7);
                shared.reset();
            }
            end = true;
        } else {
            while (!end)
                if (both* const one = now.exchange(nullptr))
                    one->p.set_value(7);
                else
                    yield_or_pass();
        }
    });
}

void wait_in_many_ways(const gathering& gather, long rounds) {
    const with_test_points points;
    std::vector<promise<long>> promises(static_cast<std::size_t>(rounds));
    std::vector<shared_future<long>> futures;
    for (auto& p : promises) futures.push_back(p.get_future().share());
    std::atomic<long> sum = 0;
    gather(6, [&](int who) {
        for (long i = 0; i < rounds; ++i) {
            const auto at = static_cast<std::size_t>(i);
            if (who == 0) promises[at].set_value(i);
            const shared_future<long> mine = futures[at];
            if (who % 2 == 1)
                while (mine.wait_for(1us) != future_status::ready) {}
            sum += mine.get();
        }
    });
    CHECK(sum == rounds * (rounds - 1) / 2 * 6);
}

void complete_many(const gathering& gather, long rounds) {
    const with_test_points points;
    for (long round = 0; round < rounds; ++round) {
        std::vector<promise<int>> promises(5);
        std::vector<shared_future<int>> futures;
        for (auto& p : promises) futures.push_back(p.get_future().share());
        gather(6, [&](int who) {
            if (who < 5) return promises[static_cast<std::size_t>(who)].set_value(who);
            const auto any = when_any(futures).get();
            CHECK(any.futures[any.index].get() == static_cast<int>(any.index));
            int sum = 0;
            for (const auto& one : when_all(futures).get()) sum += one.get();
            CHECK(sum == 10);
        });
    }
}

}  // namespace

CROWD_TEST("future stress: whoever waits destroys promise and future as soon as it wakes") {
    destroy_at_once(gather(), rounds_for(kind, 200'000));
}

CROWD_TEST("future stress: fibers and threads wait for one, with deadlines and without") {
    wait_in_many_ways(gather(), rounds_for(kind, 200'000));
}

CROWD_TEST("future stress: when_all and when_any, completed by fibers and threads") {
    complete_many(gather(), rounds_for(kind, 50'000));
}

POOL_TEST("future stress: many async functions on a pool, all of them waited for") {
    const long rounds = rounds_for(kind, 100'000);
    std::atomic<long> ran = 0;
    const auto tree = [&](auto& self, int depth) -> long {
        ++ran;
        if (depth == 0) return 1;
        auto left = async(options(), [&] { return self(self, depth - 1); });
        return 1 + left.get();
    };
    for (long i = 0; i < rounds / 10; ++i) {
        static_cast<void>(async(p, options(), [&] { ++ran; }));
    }
    CHECK(ran == rounds / 10);
    // The children of a swapped one could not see its locals.
    CHECK(kind == stack_kind::swapped ||
          async(p, options(), [&] { return tree(tree, 20); }).get() == 21);
}
