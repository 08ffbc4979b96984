// event_test.cpp - event, manual and automatic.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/sync/event.hpp>

#include <memory>
#include <string>

#include <weft/fiber/cancel.hpp>

#include "crowd.hpp"

using namespace weft;
using namespace std::chrono_literals;
using weft_test::with_test_points;

MATRIX_TEST("event: a manual one lets everybody through until it is reset") {
    event happened;
    std::string log;
    const auto wait_as = [&](char name) {
        spawn([&, name] {
            happened.wait();
            log += name;
        });
    };
    wait_as('a');
    wait_as('b');
    run_until_blocked();
    CHECK(log.empty());
    happened.set();
    run();
    CHECK(log == "ab");
    wait_as('c');
    run();
    CHECK(log == "abc");
    CHECK(happened.is_set());
    CHECK(happened.try_wait());
    happened.reset();
    CHECK(!happened.try_wait());
    wait_as('d');
    run_until_blocked();
    CHECK(log == "abc");
    happened.set();
    run();
    CHECK(log == "abcd");
}

MATRIX_TEST("event: an automatic one lets one through for each set, the eldest first") {
    event happened(event_reset::automatic);
    std::string log;
    for (const char name : {'a', 'b'})
        spawn([&, name] {
            happened.wait();
            log += name;
        });
    run_until_blocked();
    happened.set();
    CHECK(!happened.is_set());
    run_until_blocked();
    CHECK(log == "a");
    happened.set();
    happened.set();  // nobody else waits: it is kept, once
    run();
    CHECK(log == "ab");
    CHECK(happened.try_wait());
    CHECK(!happened.try_wait());
}

MATRIX_TEST("event: a deadline is reported, cancellation throws, and takes nothing") {
    event happened(event_reset::automatic);
    std::string log;
    fiber f(s, options(), [&] {
        log += happened.wait_for(5ms).error() == std::errc::timed_out ? 't' : '?';
        try {
            happened.wait();
        } catch (const cancelled&) { log += 'c'; }
        log += happened.wait_for(1h).error() == std::errc::operation_canceled ? 'r' : '?';
        happened.set();
        happened.wait();  // it has happened
        log += 'e';
    });
    run_until_blocked();
    advance(5ms);
    f.request_stop();
    run();
    CHECK(log == "tcre");
    f.detach();
}

CROWD_TEST("event: stress, an automatic one is taken once for each set") {
    const with_test_points points;
    const long count = rounds(200'000);
    event asked(event_reset::automatic);
    event answered(event_reset::automatic);
    std::atomic<long> turns = 0;
    crowd(6, [&](int i) {
        if (i >= 3) return;
        if (i == 0) {
            for (long j = 0; j < 2 * count; ++j) {
                asked.set();
                answered.wait();
                if (turns.load() != j + 1) ADD_FAILURE() << "not one turn for each set";
            }
        } else {
            for (long j = 0; j < count; ++j) {
                while (!asked.wait_for(std::chrono::microseconds(j % 3 + 1))) {}
                ++turns;
                answered.set();
            }
        }
    });
    CHECK(turns == 2 * count);
}

CROWD_TEST("event: stress, whoever waits destroys it as soon as it wakes") {
    const with_test_points points;
    const long count = rounds(500'000);
    std::unique_ptr<event> one;
    std::atomic<event*> now = nullptr;
    std::atomic<bool> end = false;
    crowd(2, [&](int i) {
        if (i == 0) {
            for (long j = 0; j < count; ++j) {
                one = std::make_unique<event>();
                now = one.get();
                one->wait();
                one.reset();
            }
            end = true;
        } else {
            while (!end)
                if (event* const given = now.exchange(nullptr))
                    given->set();
                else
                    weft_test::yield_or_pass();
        }
    });
}
