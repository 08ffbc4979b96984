// timer_thread_test.cpp - deadlines of fibers on executors that keep no time.
//
// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <deque>
#include <string>

#include <weft/fiber/cancel.hpp>
#include <weft/fiber/fiber.hpp>
#include <weft/fiber/suspend_hook.hpp>

#include "crew.hpp"
#include "loops.hpp"

using namespace weft;
using namespace std::chrono_literals;
using weft_test::crew;

namespace {

const std::error_code late = std::make_error_code(std::errc::timed_out);
const std::error_code stopped = std::make_error_code(std::errc::operation_canceled);

constexpr stack_kind kinds[] = {stack_kind::own, stack_kind::ucontext, stack_kind::thread};

}  // namespace

WEFT_TEST("timer_thread: an earlier deadline armed later is not slept over, and none is early") {
    for (const stack_kind kind : kinds) {
        crew e;
        int early = 0;
        fiber longest(e, {.kind = kind}, [] { CHECK(sleep_for(1h).error() == stopped); });
        go(e, {.kind = kind}, [&] {
            for (const auto time : {2ms, 1ms, 0ms}) {
                const auto begin = std::chrono::steady_clock::now();
                CHECK(sleep_for(time));
                if (std::chrono::steady_clock::now() - begin < time) ++early;
            }
            longest.request_stop();
        });
        e.run();
        CHECK(early == 0);
    }
}

WEFT_TEST("timer_thread: an event comes first, a cancellation does, or the deadline") {
    for (const stack_kind kind : kinds) {
        crew e;
        std::string log;
        fiber_handle parked;
        fiber child(e, {.kind = kind}, [&] {
            parked = this_fiber::handle();
            CHECK(park_until(steady_clock_source().now() + 1h));
            log += 'a';
            CHECK(park_until(steady_clock_source().now() + 1ms).error() == late);
            log += 'b';
            CHECK(park_until(steady_clock_source().now() + 1h).error() == stopped);
            CHECK(sleep_for(1h).error() == stopped);
            log += 'c';
        });
        go(e, {.kind = kind}, [&] {
            while (!parked) yield();
            unpark(parked);
            while (log != "ab") yield();
            child.request_stop();
            child.join();
            log += 'j';
        });
        e.run();
        CHECK(log == "abcj");
    }
}

WEFT_TEST("timer_thread: a wait that ignores cancellation obeys its deadline alone") {
    crew e;
    static constexpr wait_reason deaf{"waits for nothing", false};
    wait_outcome outcome = wait_outcome::event;
    fiber child(e, [&] {
        outcome = weft::wait(deaf, steady_clock_source().now() + 20ms,
                             [](waiter&) noexcept { return true; });
    });
    child.request_stop();
    e.run();
    CHECK(outcome == wait_outcome::timed_out);
}

WEFT_TEST("timer_thread: a sleep through hooks") {
    struct counts final : suspend_hook {
        explicit counts(int& n) : left(n) {}
        runnable* suspended(runnable* r) noexcept override {
            ++left;
            return suspend_hook::suspended(r);
        }
        int& left;
    };
    crew e;
    int left = 0;
    bool slept = false;
    go(e, [&] {
        counts hook(left);
        this_fiber::set_suspend_hook(&hook);
        slept = sleep_for(1ms).has_value();
        this_fiber::set_suspend_hook(nullptr);
    });
    e.run();
    CHECK(left == 1);
    CHECK(slept);
}

WEFT_TEST("timer_thread: deadlines that pass at once, cancelled and met ones, in stress") {
    const long rounds = weft_test::stress_count(20'000);
    crew e;
    std::atomic<long> timed_out = 0;
    std::atomic<long> met = 0;
    std::atomic<long> cancels = 0;
    for (int pair = 0; pair < 8; ++pair)
        go(e, [&, pair] {
            for (long i = 0; i < rounds; ++i) {
                fiber sleeper(e, [&, i] {
                    const auto parked = park_until(steady_clock_source().now() +
                                                   std::chrono::microseconds((i + pair) % 40));
                    if (parked)
                        ++met;
                    else
                        ++(parked.error() == late ? timed_out : cancels);
                });
                if (i % 3 == 0) unpark(sleeper.handle());
                if (i % 3 == 1) sleeper.request_stop();
                if (i % 5 == 0) static_cast<void>(sleep_for(std::chrono::microseconds(i % 7)));
                sleeper.join();
            }
        });
    e.run_by(4);
    CHECK(met + timed_out + cancels == 8 * rounds);
}

WEFT_TEST("timer_thread misuse: a deadline by a clock that nobody reads aborts") {
    class other_time final : public executor {
    public:
        void post(runnable* r) override { queue.push_back(r); }
        void defer(runnable* r) override { queue.push_back(r); }
        clock_source& clock() noexcept override { return own; }
        std::deque<runnable*> queue;
        manual_clock own;
    };
    const auto misuse = [] {
        other_time e;
        go(e, [] { static_cast<void>(sleep_for(1s)); });
        while (!e.queue.empty()) {
            runnable* r = e.queue.front();
            e.queue.pop_front();
            while (r != nullptr) r = r->run();
        }
    };
    EXPECT_DEATH(misuse(), "an executor that has a clock of its own and no timers");
}
