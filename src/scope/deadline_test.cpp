// deadline_test.cpp - deadlines and shields, on a loop whose clock stands still.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/scope/deadline.hpp>

#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>

#include <weft/scope/task_group.hpp>
#include <weft/sync/event.hpp>
#include <weft/sync/mutex.hpp>

#include "crew.hpp"
#include "loops.hpp"
#include "pools.hpp"

using namespace weft;
using namespace std::chrono_literals;

namespace {

const std::error_code late = std::make_error_code(std::errc::timed_out);
const std::error_code stopped = std::make_error_code(std::errc::operation_canceled);

}  // namespace

MATRIX_TEST("deadline: a value that comes in time, and one that comes late") {
    std::string log;
    spawn([&] {
        const auto in_time = with_timeout(2ms, [] { return sleep_for(1ms), 1; });
        CHECK(in_time == 1);
        const auto too_late = with_timeout(1ms, [&] {
            CHECK(sleep_for(2ms).error() == late);
            CHECK(sleep_for(0ms).error() == late);  // and everything after it
            CHECK(this_fiber::stop_reason() == cancel_reason::timed_out);
            return 2;
        });
        CHECK(too_late.error() == late);
        CHECK(sleep_for(0ms));
        log += 'e';
    });
    run_until_blocked();
    for (int i = 0; i < 3; ++i) advance(1ms);
    CHECK(log == "e");
}

MATRIX_TEST("deadline: an expected is passed on as it is") {
    using result = std::expected<int, std::error_code>;
    result got[2];
    spawn([&] {
        got[0] = with_timeout(1ms, []() -> result {
            sleep_for(1h);
            return 3;
        });
        got[1] = with_timeout(1ms, []() -> result {
            if (const auto slept = sleep_for(1h); !slept) return std::unexpected(slept.error());
            return 3;
        });
    });
    run_until_blocked();
    advance(1ms);
    advance(1ms);
    CHECK(got[0] == 3);
    CHECK(got[1].error() == late);
}

MATRIX_TEST("deadline: cancelled is caught at the edge, other exceptions are not") {
    event never;
    std::string log;
    spawn([&] {
        const auto waited = with_timeout(1ms, [&] { never.wait(); });
        log += waited.error() == late ? 't' : '?';
        try {
            static_cast<void>(with_timeout(1ms, [] { throw std::runtime_error("x"); }));
        } catch (const std::runtime_error& e) { log += e.what(); }
    });
    run_until_blocked();
    advance(1ms);
    CHECK(log == "tx");
}

MATRIX_TEST("deadline: of two that nest the earlier counts") {
    std::string log;
    spawn([&] {
        const auto outer = with_timeout(1ms, [&] {
            const auto inner = with_timeout(5ms, [] { return sleep_for(1h), 1; });
            log += inner.has_value() ? 'v' : inner.error() == late ? 't' : '?';
            return 1;
        });
        log += outer.error() == late ? 'T' : '?';
        const auto again = with_timeout(5ms, [&] {
            const auto inner = with_timeout(1ms, [] { return sleep_for(1h), 1; });
            log += inner.error() == late ? 't' : '?';
            return 1;
        });
        log += again == 1 ? 'V' : '?';
    });
    run_until_blocked();
    advance(1ms);
    advance(1ms);
    CHECK(log == "tTtV");
}

MATRIX_TEST("deadline: one that has passed already, and a time point") {
    spawn([&] {
        int ran = 0;
        const auto zero = with_timeout(0s, [&] { return ++ran; });
        CHECK(zero.error() == late);
        const auto past = with_deadline(clock.now(), [&] { return sleep_for(1h), ++ran; });
        CHECK(past.error() == late);
        const auto future = with_deadline(clock.now() + 1ms, [&] { return ++ran; });
        CHECK(future == 3);
        const auto never = with_deadline(no_deadline, [&] { return ++ran; });
        CHECK(never == 4);
    });
    run();
}

MATRIX_TEST("deadline: children of a group inside have it") {
    std::string log;
    spawn([&] {
        const auto result = with_timeout(1ms, [&] {
            with_task_group<void>(
                {.shares_locals = false, .fiber = options()}, [&](task_group<void>& g) {
                    g.add([&] { log += sleep_for(1h).error() == late ? 't' : '?'; });
                    g.add([&] { log += sleep_for(0ms) ? 's' : '?'; });
                    g.wait();
                });
        });
        log += result.error() == late ? 'T' : '?';
    });
    run_until_blocked();
    CHECK(log == "s");
    advance(1ms);
    CHECK(log == "stT");
}

MATRIX_TEST("deadline: cancellation from outside is told apart") {
    std::string log;
    fiber f(s, options(), [&] {
        event never;
        const auto result = with_timeout(1h, [&] {
            log += sleep_for(1min).error() == stopped ? 'c' : '?';
            this_fiber::throw_if_cancelled();
        });
        log += result.error() == stopped ? 'C' : '?';
    });
    run_until_blocked();
    f.request_stop();
    run();
    CHECK(log == "cC");
    f.detach();
}

MATRIX_TEST("deadline: stop tokens and stop_requested know it, too") {
    std::string log;
    spawn([&] {
        const auto result = with_timeout(1ms, [&] {
            const std::stop_token token = get_stop_token();
            CHECK(!token.stop_requested());
            sleep_for(1h);
            CHECK(token.stop_requested());
        });
        CHECK(!result);
        const auto busy = with_timeout(1ms, [&] {
            clock.advance(1ms);
            CHECK(this_fiber::stop_requested());
        });
        CHECK(!busy);
        log += 'e';
    });
    run_until_blocked();
    advance(1ms);
    CHECK(log == "e");
}

MATRIX_TEST("shield: keeps cancellation out, and may have a deadline of its own") {
    std::string log;
    fiber f(s, options(), [&] {
        log += park() ? 'p' : 'c';
        log += shield([] { return sleep_for(1ms) ? 's' : 'c'; });
        const auto limited = shield(1ms, [] { return sleep_for(1h) ? 's' : 'c'; });
        log += limited.has_value() ? '?' : 't';
        log += sleep_for(0ms) ? 's' : 'c';
    });
    run_until_blocked();
    f.request_stop();
    run_until_blocked();
    CHECK(log == "c");
    advance(1ms);
    CHECK(log == "cs");
    advance(1ms);
    CHECK(log == "cstc");
    f.detach();
}

MATRIX_TEST("deadline: one that fires while its fiber leaves is waited for") {
    int rounds = 0;
    spawn([&] {
        for (; rounds < 20; ++rounds) {
            const auto result = with_timeout(1ms, [&] {
                yield();                               // armed by nothing yet
                CHECK(!this_fiber::stop_requested());  // now it is
                clock.advance(1ms);
                for (int i = 0; i < rounds % 4; ++i) yield();
            });
            static_cast<void>(result);
        }
    });
    spawn([&] {
        while (rounds < 20) yield();
    });
    run();
    CHECK(rounds == 20);
}

LOOP_TEST("deadline: goes with a fiber to another executor") {
    loop other({.external_wakes = false, .clock = &clock});
    std::string log;
    spawn([&] {
        const auto result = with_timeout(1ms, [&] {
            CHECK(!this_fiber::stop_requested());
            switch_to(other);
            log += sleep_for(1h).error() == late ? 't' : '?';
        });
        log += result.error() == late ? 'T' : '?';
    });
    run_until_blocked();
    other.run_until_blocked();
    CHECK(!s.next_deadline());
    clock.advance(1ms);
    other.run_until_blocked();
    CHECK(log == "tT");
}

MATRIX_TEST("deadline: fires also while its fiber waits for what cannot be cancelled") {
    mutex m;
    std::error_code seen;
    spawn([&] {
        m.lock();
        sleep_for(5ms);
        m.unlock();
    });
    spawn([&] {
        const auto result = with_timeout(1ms, [&] {
            const std::lock_guard inside(m);
            return 1;
        });
        if (!result) seen = result.error();
    });
    run_until_blocked();
    advance(1ms);
    advance(5ms);
    run();
    CHECK(seen == late);
}

WEFT_TEST("with_timeout misuse: outside any fiber aborts, and names what was called") {
    EXPECT_DEATH(static_cast<void>(with_timeout(1s, [] {})), "with_timeout");
    EXPECT_DEATH(static_cast<void>(with_deadline(time_point(), [] {})), "with_deadline");
    EXPECT_DEATH(static_cast<void>(shield(1s, [] {})), "shield");
    EXPECT_DEATH(shield([] {}), "shield");
}

WEFT_TEST("deadline: on an executor that keeps no time it is the executor that cancels") {
    weft_test::crew e;
    std::thread::id cancelled_by;
    go(e, [&] {
        CHECK(with_timeout(1h, [] { return sleep_for(1ms), 1; }) == 1);
        const auto too_late = with_timeout(1ms, [&] {
            const std::stop_callback told(this_fiber::get_stop_token(),
                                          [&] { cancelled_by = std::this_thread::get_id(); });
            CHECK(sleep_for(1h).error() == late);
            return 2;
        });
        CHECK(too_late.error() == late);
    });
    e.run();
    CHECK(cancelled_by == std::this_thread::get_id());
}
