// wait_group_test.cpp - wait_group, its guard, and scope_exit.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/sync/wait_group.hpp>

#include <memory>
#include <optional>
#include <string>

#include <weft/fiber/cancel.hpp>
#include <weft/sync/scope_exit.hpp>

#include "crowd.hpp"

using namespace weft;
using namespace std::chrono_literals;
using weft_test::with_test_points;

MATRIX_TEST("wait_group: lets everybody go when the last is done, in the order they came") {
    wait_group wg(2);
    std::string log;
    for (const char name : {'a', 'b', 'c'})
        spawn([&, name] {
            wg.wait();
            log += name;
        });
    run_until_blocked();
    wg.done();
    run_until_blocked();
    CHECK(log.empty());
    CHECK(wg.count() == 1);
    wg.done();
    run();
    CHECK(log == "abc");
    wg.wait();  // nothing is left to wait for
}

MATRIX_TEST("wait_group: the guard says done at the end, also on an exception") {
    wait_group wg;
    std::string log;
    for (int i = 0; i < 3; ++i) {
        wg.add();
        spawn([&, i] {
            try {
                const auto done = wg.guard();
                yield();
                if (i == 1) throw i;
            } catch (int) { log += 'x'; }
        });
    }
    spawn([&] {
        wg.wait();
        log += 'd';
    });
    run();
    CHECK(log == "xd");
}

MATRIX_TEST("wait_group: a wait that is cancelled throws, one with a deadline says so") {
    wait_group wg(1);
    std::string log;
    fiber f(s, options(), [&] {
        const auto late = wg.wait_for(5ms);
        log += late.error() == std::errc::timed_out ? 't' : '?';
        try {
            wg.wait();
        } catch (const cancelled& c) { log += c.reason() == cancel_reason::requested ? 'c' : '?'; }
        log += wg.wait_for(1h).error() == std::errc::operation_canceled ? 'r' : '?';
        wg.done();
        wg.wait();  // it has happened
        log += 'd';
    });
    run_until_blocked();
    advance(5ms);
    CHECK(log == "t");
    f.request_stop();
    run();
    CHECK(log == "tcrd");
    f.detach();
}

CROWD_TEST("wait_group: stress, whoever waits destroys it as soon as it wakes") {
    const with_test_points points;
    const long count = rounds(500'000);
    std::unique_ptr<wait_group> shared;
    std::atomic<wait_group*> now = nullptr;
    std::atomic<bool> end = false;
    crowd(2, [&](int i) {
        if (i == 0) {
            for (long round = 0; round < count; ++round) {
                shared = std::make_unique<wait_group>(1);
                now = shared.get();
                shared->wait();
                shared.reset();
            }
            end = true;
        } else {
            while (!end)
                if (wait_group* const one = now.exchange(nullptr))
                    one->done();
                else
                    weft_test::yield_or_pass();
        }
    });
}

CROWD_TEST("wait_group: stress, fibers and threads wait, everybody is let go") {
    const with_test_points points;
    const long count = rounds(200'000);
    std::vector<std::unique_ptr<wait_group>> groups;
    for (long i = 0; i < count; ++i) groups.push_back(std::make_unique<wait_group>(3));
    std::atomic<long> through = 0;
    crowd(6, [&](int i) {
        for (long round = 0; round < count; ++round) {
            wait_group& one = *groups[static_cast<std::size_t>(round)];
            if (i % 2 == 0) one.done();
            if (i == 3)
                while (!one.wait_for(1us)) {}
            one.wait();
            through.fetch_add(1);
        }
    });
    CHECK(through == count * 6);
}

WEFT_TEST("wait_group misuse: aborts by name") {
    weft_test::allow_threads_in_death_tests();
    EXPECT_DEATH(wait_group().done(), "wait_group: done.. called more often than add");
    EXPECT_DEATH(wait_group().add(static_cast<std::size_t>(-2)), "wait_group: add.. of more than");
    const auto destroy_while_waiting = [] {
        loop s({.external_wakes = false});
        std::optional<wait_group> wg(1);
        go(s, [&] { wg->wait(); });
        s.run_until_blocked();
        wg.reset();
    };
    EXPECT_DEATH(destroy_while_waiting(), "wait_group: destroyed while somebody waits");
    const auto on_a_swapped_stack = [] {
        loop s({.external_wakes = false});
        go(s, {.kind = stack_kind::swapped}, [] {
            wait_group wg(1);
            wg.wait();
        });
        s.run();
    };
    EXPECT_DEATH(on_a_swapped_stack(), "wait_group: lies in the stack of a swapped fiber");
}

WEFT_TEST("scope_exit: runs when the scope is left, unless it was released or moved from") {
    std::string log;
    {
        const scope_exit first([&] { log += 'a'; });
        scope_exit second([&] { log += 'b'; });
        second.release();
        scope_exit third([&] { log += 'c'; });
        const scope_exit fourth(std::move(third));
    }
    CHECK(log == "ca");
    try {
        const scope_exit always([&] { log += 'x'; });
        throw 1;
    } catch (int) {}
    CHECK(log == "cax");
}
