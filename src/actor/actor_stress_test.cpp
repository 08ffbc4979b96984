// actor_stress_test.cpp - many fibers and threads on few actors, on loops and pools.
//
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <mutex>
#include <vector>

#include <weft/actor/actor_context.hpp>
#include <weft/sync/event.hpp>
#include <weft/sync/wait_group.hpp>

#include "crowd.hpp"

using namespace weft;
using namespace std::chrono_literals;
using weft_test::with_test_points;
using weft_test::yield_or_pass;

namespace {

// State that only whoever is inside may touch; between two waits nobody else does.
struct actor {
    actor_context context;
    long entered = 0;
    long inside = 0;

    void touch() {
        context.assert_held();
        if (++inside != 1) ADD_FAILURE() << "two are inside";
        WEFT_TEST_POINT("actor: inside");
        --inside;
        ++entered;
    }
};

// The same numbers everywhere.
class numbers {
public:
    explicit numbers(int seed) : state_(static_cast<unsigned>(seed) * 2654435761U + 1) {}
    unsigned below(unsigned limit) {
        state_ = state_ * 1664525U + 1013904223U;
        return (state_ >> 8) % limit;
    }

private:
    unsigned state_;
};

// A thread stays in what it holds, so two of them that entered one from another could wait for each
// other.
bool is_thread() { return !this_fiber::get_id(); }

void call(std::vector<actor>& all, numbers& random, int depth) {
    actor& mine = all[random.below(static_cast<unsigned>(all.size()))];
    const std::lock_guard inside(mine.context);
    mine.touch();
    if (random.below(3) == 0) yield_or_pass();
    mine.touch();
    if (depth > 0 && !is_thread()) {
        call(all, random, depth - 1);
        mine.touch();
    }
}

}  // namespace

CROWD_TEST("actor_context: stress, two are never inside, whatever they wait for") {
    const with_test_points points;
    const long each = rounds(40'000);
    actor one;
    event never(event_reset::manual);
    crowd(6, [&](int i) {
        for (long round = 0; round < each; ++round) {
            const std::lock_guard inside(one.context);
            one.touch();
            if ((round + i) % 4 == 0) yield_or_pass();
            if ((round + i) % 16 == 1) static_cast<void>(never.wait_for(1us));
            one.touch();
        }
    });
    CHECK(one.entered == each * 12);
}

CROWD_TEST("actor_context: stress, ten actors that call one another in any order never deadlock") {
    const with_test_points points;
    const long each = rounds(12'000);
    std::vector<actor> all(10);
    std::atomic<long> calls = 0;
    crowd(9, [&](int i) {
        numbers random(i);
        for (long round = 0; round < each; ++round) {
            call(all, random, static_cast<int>(random.below(5)));
            ++calls;
        }
    });
    CHECK(calls == each * 9);
    for (const actor& one : all) CHECK(one.context.try_lock() && one.inside == 0);
    for (const actor& one : all) one.context.unlock();
}

CROWD_TEST("actor_context: stress of deadlines and cancellation against entering and coming back") {
    const with_test_points points;
    const long each = rounds(20'000);
    actor first;
    actor second;
    event never(event_reset::manual);
    std::atomic<int> running = 6;
    std::atomic<long> late = 0;
    weft_test::scope_slots scopes(6);
    std::thread canceller([&] {
        while (running.load() != 0) {
            scopes.cancel_one();
            std::this_thread::yield();
        }
    });
    crowd(6, [&](int i) {
        for (long round = 0; round < each && !is_thread(); ++round) {
            const auto scope = scopes.enter(i);
            const std::lock_guard inside(first.context);
            first.touch();
            if (second.context.try_lock_for(std::chrono::microseconds(round % 5))) {
                second.touch();
                static_cast<void>(never.wait_for(std::chrono::microseconds(round % 3)));
                second.touch();
                second.context.unlock();
            } else {
                ++late;
            }
            first.touch();
            sleep_for(std::chrono::microseconds(round % 3));
            first.touch();
        }
        for (long round = 0; round < each && is_thread(); ++round) {
            const std::lock_guard inside(second.context);
            second.touch();
            yield_or_pass();
        }
        --running;
    });
    canceller.join();
    CHECK(first.entered == each * 4 * 3);
    CHECK(second.entered == each * 2 + (each * 4 - late) * 2);
}

CROWD_TEST("actor_context: stress, the last one to be inside destroys it") {
    struct shared {
        actor_context context;
        int users = 3;
    };
    const with_test_points points;
    const long each = rounds(80'000);
    std::vector<shared*> all;
    for (long i = 0; i < each; ++i) all.push_back(new shared);
    crowd(3, [&](int) {
        for (shared* one : all) {
            one->context.lock();
            yield_or_pass();  // the others come, and this one comes back
            const bool last = --one->users == 0;
            one->context.unlock();
            if (last) delete one;
        }
    });
}

MATRIX_TEST("actor_context: ten thousand fibers on one actor, in the order in which they came") {
    const int count = kind == stack_kind::thread ? 200 : 10'000;
    actor one;
    std::vector<int> order;
    one.context.lock();
    for (int i = 0; i < count; ++i)
        spawn([&, i] {
            const std::lock_guard inside(one.context);
            one.touch();
            order.push_back(i);
        });
    run_until_blocked();
    CHECK(order.empty());
    one.context.unlock();
    run();
    REQUIRE(order.size() == static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i)
        if (order[static_cast<std::size_t>(i)] != i) ADD_FAILURE() << i << " is out of order";
}

POOL_TEST("actor_context: ten thousand fibers on one actor, each enters once") {
    const int count = kind == stack_kind::thread ? 100 : 10'000;
    actor one;
    wait_group all(static_cast<std::size_t>(count));
    one.context.lock();
    for (int i = 0; i < count; ++i)
        spawn([&] {
            {
                const std::lock_guard inside(one.context);
                one.touch();
                yield();
                one.touch();
            }
            all.done();
        });
    one.context.unlock();
    all.wait();
    CHECK(one.entered == 2L * count);
}

// Whoever leaves wakes the next, which takes the slot; others still get their turn.
WEFT_TEST("actor_context: a busy actor does not keep a worker from other fibers") {
    constexpr int count = 2'000;
    pool p({.workers = 1});
    actor one;
    int since = 0;  // entered since the other fiber ran
    int most = 0;
    bool end = false;
    one.context.lock();
    wait_group there(count);
    wait_group all(count);
    for (int i = 0; i < count; ++i)
        go(p, [&] {
            there.done();
            {
                const std::lock_guard inside(one.context);
                one.touch();
                most = std::max(most, ++since);
            }
            all.done();
        });
    there.wait();
    go(p, [&] {
        while (!end) {
            since = 0;
            yield();
        }
    });
    go(p, [&] {
        all.wait();
        end = true;
    });
    one.context.unlock();
    p.drain();
    CHECK(one.entered == count);
    CHECK(most <= 200);
}
