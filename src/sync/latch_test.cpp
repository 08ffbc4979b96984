// latch_test.cpp - latch and barrier.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/sync/latch.hpp>

#include <memory>
#include <optional>
#include <string>

#include <weft/fiber/cancel.hpp>
#include <weft/sync/barrier.hpp>

#include "crowd.hpp"

using namespace weft;
using weft_test::with_test_points;

MATRIX_TEST("latch: opens once the count is zero, and stays open") {
    latch start(3);
    std::string log;
    spawn([&] {
        start.wait();
        log += 'a';
    });
    spawn([&] {
        start.arrive_and_wait();
        log += 'b';
    });
    run_until_blocked();
    CHECK(!start.try_wait());
    start.count_down(2);
    CHECK(start.try_wait());
    run();
    CHECK(log == "ab");
    start.wait();
}

MATRIX_TEST("latch: cancellation ends a wait by throwing, and arrive_and_wait ignores it") {
    latch start(3);
    std::string log;
    fiber f(s, options(), [&] {
        try {
            start.wait();
        } catch (const cancelled&) { log += 'c'; }
        start.arrive_and_wait();
        log += 'd';
    });
    run_until_blocked();
    f.request_stop();
    run_until_blocked();
    CHECK(log == "c");
    start.count_down(2);
    run();
    CHECK(log == "cd");
    f.detach();
}

MATRIX_TEST("barrier: nobody goes on before all have arrived, and the completion has run") {
    int met = 0;
    std::string log;
    const auto completion = [&]() noexcept { ++met; };
    barrier meeting(3, completion);
    for (const char name : {'a', 'b', 'c'})
        spawn([&, name] {
            for (int i = 0; i < 3; ++i) {
                CHECK(met == i);
                log += name;
                meeting.arrive_and_wait();
                CHECK(met == i + 1);
            }
        });
    run();
    CHECK(met == 3);
    CHECK(log.size() == 9);
}

MATRIX_TEST("barrier: arriving and waiting may be apart, and one may drop out") {
    int met = 0;
    std::string log;
    const auto completion = [&]() noexcept { ++met; };
    barrier meeting(2, completion);
    spawn([&] {
        auto token = meeting.arrive();
        log += 'a';
        meeting.wait(std::move(token));
        log += 'b';
        meeting.arrive_and_wait();  // alone now
        log += 'c';
    });
    run_until_blocked();
    CHECK(log == "a");
    spawn([&] { meeting.arrive_and_drop(); });
    run();
    CHECK(log == "abc");
    CHECK(met == 2);
}

MATRIX_TEST("barrier: cancellation ends a wait by throwing, but the arrival counts") {
    barrier meeting(2);
    std::string log;
    fiber f(s, options(), [&] {
        auto token = meeting.arrive();
        try {
            meeting.wait(std::move(token));
        } catch (const cancelled&) { log += 'c'; }
    });
    run_until_blocked();
    f.request_stop();
    run_until_blocked();
    CHECK(log == "c");
    spawn([&] {
        meeting.arrive_and_wait();
        log += 'd';
    });
    run();
    CHECK(log == "cd");
    f.detach();
}

CROWD_TEST("barrier: stress, all are in the same phase") {
    const with_test_points points;
    const long count = rounds(100'000);
    std::atomic<long> arrived = 0;
    std::atomic<long> phase = 0;
    const auto completion = [&]() noexcept {
        if (arrived != 6 * (phase + 1)) ADD_FAILURE() << "not all have arrived";
        ++phase;
    };
    barrier meeting(6, completion);
    crowd(6, [&](int i) {
        for (long j = 0; j < count; ++j) {
            ++arrived;
            if (i % 2 == 0)
                meeting.wait(meeting.arrive());
            else
                meeting.arrive_and_wait();
            if (phase < j + 1) ADD_FAILURE() << "goes on too early";
        }
    });
    CHECK(phase == count);
}

CROWD_TEST("latch: stress, whoever waits destroys it as soon as it wakes") {
    const with_test_points points;
    const long count = rounds(500'000);
    std::unique_ptr<latch> one;
    std::atomic<latch*> now = nullptr;
    std::atomic<bool> end = false;
    crowd(2, [&](int i) {
        if (i == 0) {
            for (long j = 0; j < count; ++j) {
                one = std::make_unique<latch>(1);
                now = one.get();
                one->wait();
                one.reset();
            }
            end = true;
        } else {
            while (!end)
                if (latch* const given = now.exchange(nullptr))
                    given->count_down();
                else
                    weft_test::yield_or_pass();
        }
    });
}

WEFT_TEST("latch misuse: aborts by name, and so does a barrier") {
    latch small(1);
    EXPECT_DEATH(small.count_down(2), "latch: counted down below zero");
    barrier few(1);
    EXPECT_DEATH(static_cast<void>(few.arrive(2)), "barrier: more arrive than are expected");
    const auto destroy_while_waiting = [] {
        loop s({.external_wakes = false});
        std::optional<latch> one(1);
        go(s, [&] { one->wait(); });
        s.run_until_blocked();
        one.reset();
    };
    EXPECT_DEATH(destroy_while_waiting(), "latch: destroyed while somebody waits");
}

WEFT_TEST("latch: a const one can be waited for, and so can a barrier, with any completion") {
    const latch open(0);
    open.wait();
    int completed = 0;
    barrier b(1, [&] { ++completed; });
    std::as_const(b).wait(b.arrive());
    CHECK(completed == 1);
}
