// actor_group_test.cpp - task groups, deadlines and async inside of actors.
//
// SPDX-License-Identifier: Apache-2.0
#include <mutex>

#include <weft/actor/actor_context.hpp>
#include <weft/actor/isolated.hpp>
#include <weft/scope/deadline.hpp>
#include <weft/scope/task_group.hpp>
#include <weft/sync/async.hpp>

#include "loops.hpp"
#include "pools.hpp"

using namespace weft;
using namespace std::chrono_literals;

// They may run on the parent's stack, and are fibers of their own all the same.
POOL_TEST("actor_context: a group's children enter the context in which their parent waits") {
    if (kind == stack_kind::swapped) return;  // children use the locals of their parent
    actor_context context;
    int entered = 0;
    fiber f(p, options(), [&] {
        const std::lock_guard inside(context);
        with_task_group<void>([&](task_group<void>& g) {
            for (int i = 0; i < 20; ++i)
                g.add([&] {
                    CHECK(!context.is_held());
                    const std::lock_guard guard(context);
                    ++entered;
                    yield();
                    CHECK(context.is_held());
                });
            g.wait();
            CHECK(context.is_held());
        });
        CHECK(context.is_held());
    });
    f.join();
    CHECK(entered == 20);
}

POOL_TEST("actor_context: a deadline inside of it, and a future of what enters it") {
    actor_context context;
    isolated<int> number(0);
    fiber f(p, options(), [&] {
        const std::lock_guard inside(context);
        if (kind != stack_kind::swapped) {
            const auto late = with_timeout(1ms, [&] { return sleep_for(1h); });
            CHECK(!late);
        }
        CHECK(context.is_held());
        auto counted = async([&] {
            const std::lock_guard guard(context);
            return number.with([](int& n) { return ++n; });
        });
        CHECK(counted.get() == 1);
        CHECK(context.is_held());
    });
    f.join();
}
