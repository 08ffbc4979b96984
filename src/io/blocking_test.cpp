// blocking_test.cpp - blocking(): calls on a side pool, from fibers of every kind.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/io/blocking.hpp>

#include <pthread.h>

#include <memory>
#include <semaphore>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <weft/scope/deadline.hpp>
#include <weft/sync/wait_group.hpp>

#include "crowd.hpp"

using namespace weft;
using namespace std::chrono_literals;
using weft_test::with_test_points;

namespace {

// What the tests below look at while others run.
void until(const auto& condition) {
    while (!condition()) std::this_thread::yield();
}

// A call that has begun and ends when it is told to.
struct gate {
    std::binary_semaphore begun{0};
    std::binary_semaphore open{0};
    void pass() {
        begun.release();
        open.acquire();
    }
};

}  // namespace

POOL_TEST("blocking: gives what the function returns") {
    io::side_pool side;
    std::atomic<int> got = 0;
    fiber f(p, options(), [&] { got = io::blocking(side, [] { return 42; }); });
    f.join();
    CHECK(got == 42);
    CHECK(side.counters().finished == 1);
}

POOL_TEST("blocking: what the function throws comes out of it") {
    io::side_pool side;
    std::string caught;
    fiber f(p, options(), [&] {
        try {
            io::blocking(side, [] { throw std::runtime_error("no such thing"); });
        } catch (const std::runtime_error& error) { caught = error.what(); }
    });
    f.join();
    CHECK(caught == "no such thing");
}

POOL_TEST("blocking: takes and gives what can only be moved") {
    io::side_pool side;
    int got = 0;
    fiber f(p, options(), [&] {
        auto given = std::make_unique<int>(7);
        const std::unique_ptr<int> back = io::blocking(side, [given = std::move(given)]() mutable {
            ++*given;
            return std::move(given);
        });
        got = *back;
    });
    f.join();
    CHECK(got == 8);
}

POOL_TEST("blocking: runs elsewhere, and the worker goes on meanwhile") {
    io::side_pool side({.limit = 2});
    gate g;
    std::atomic<bool> elsewhere = false;
    std::atomic<int> others = 0;
    fiber waits(p, options(), [&] {
        io::blocking(side, [&] {
            elsewhere = !this_fiber::get_id();
            g.pass();
        });
    });
    g.begun.acquire();
    fiber goes_on(p, options(), [&] {
        for (int i = 0; i < 10; ++i) {
            ++others;
            yield();
        }
    });
    goes_on.join();
    g.open.release();
    waits.join();
    CHECK(elsewhere);
    CHECK(others == 10);
}

POOL_TEST("blocking: makes threads on demand, not more than its limit") {
    io::side_pool side({.limit = 3});
    std::counting_semaphore<16> begun{0};
    std::counting_semaphore<16> open{0};
    wait_group all;
    for (int i = 0; i < 8; ++i) {
        all.add();
        spawn([&] {
            const auto done = all.guard();
            io::blocking(side, [&] {
                begun.release();
                open.acquire();
            });
        });
    }
    for (int i = 0; i < 3; ++i) begun.acquire();
    until([&] { return side.counters().queued == 5; });
    CHECK(!begun.try_acquire());
    CHECK(side.counters().threads == 3);
    CHECK(side.counters().running == 3);
    open.release(8);
    all.wait();
    CHECK(side.counters().most == 3);
    CHECK(side.counters().finished == 8);
}

POOL_TEST("blocking: what is over the limit waits in order") {
    io::side_pool side({.limit = 1});
    gate g;
    std::string order;
    wait_group all(1);
    spawn([&] {
        const auto done = all.guard();
        io::blocking(side, [&] { g.pass(); });
    });
    g.begun.acquire();
    for (char name = 'a'; name <= 'e'; ++name) {
        all.add();
        spawn([&, name] {
            const auto done = all.guard();
            io::blocking(side, [&order, name] { order += name; });
        });
        until([&] { return side.counters().queued == static_cast<std::size_t>(name - 'a') + 1; });
    }
    g.open.release();
    all.wait();
    CHECK(order == "abcde");
}

POOL_TEST("blocking: a call that has not begun is withdrawn when its fiber is cancelled") {
    io::side_pool side({.limit = 1});
    gate g;
    std::atomic<bool> ran = false;
    std::atomic<int> said = 0;
    fiber first(p, options(), [&] { io::blocking(side, [&] { g.pass(); }); });
    g.begun.acquire();
    fiber thrown(p, options(), [&] {
        try {
            io::blocking(side, [&] { ran = true; });
        } catch (const cancelled&) { ++said; }
    });
    fiber reported(p, options(), [&] {
        const auto result = io::try_blocking(side, [&] { ran = true; });
        if (!result && result.error() == std::errc::operation_canceled) ++said;
        const auto again = io::try_blocking(side, [&] { ran = true; });  // it is said again
        if (!again) ++said;
    });
    until([&] { return side.counters().queued == 2; });
    thrown.request_stop();
    reported.request_stop();
    thrown.join();
    reported.join();
    CHECK(said == 3);
    CHECK(side.counters().queued == 0);
    g.open.release();
    first.join();
    CHECK(!ran);
    CHECK(side.counters().finished == 1);
}

POOL_TEST("blocking: a call that runs is waited for, and its result returned, though cancelled") {
    io::side_pool side;
    gate g;
    std::atomic<int> got = 0;
    std::atomic<bool> next_says = false;
    fiber f(p, options(), [&] {
        got = io::blocking(side, [&] {
            g.pass();
            return 5;
        });
        next_says = !sleep_for(1h);
    });
    g.begun.acquire();
    f.request_stop();
    CHECK(got == 0);
    g.open.release();
    f.join();
    CHECK(got == 5);
    CHECK(next_says);
}

POOL_TEST("blocking: a deadline withdraws what has not begun") {
    io::side_pool side({.limit = 1});
    gate g;
    std::atomic<bool> late = false;
    fiber first(p, options(), [&] { io::blocking(side, [&] { g.pass(); }); });
    g.begun.acquire();
    fiber second(p, options(), [&] {
        const auto result =
            with_timeout(1ms, [&] { return io::try_blocking(side, [] { return 1; }); });
        late = !result && result.error() == std::errc::timed_out;
    });
    second.join();
    CHECK(late);
    g.open.release();
    first.join();
}

WEFT_TEST("blocking: threads that are idle end, and others are made when needed") {
    io::side_pool side({.limit = 4, .idle = 1ms});
    loop s;
    for (int i = 0; i < 4; ++i) go(s, [&] { io::blocking(side, [] {}); });
    s.run();
    until([&] { return side.counters().threads == 0; });
    go(s, [&] { io::blocking(side, [] {}); });
    s.run();
    CHECK(side.counters().finished == 5);
}

WEFT_TEST("blocking: a thread that is free is used again") {
    io::side_pool side;
    loop s;
    go(s, [&] {
        for (int i = 0; i < 50; ++i) io::blocking(side, [] {});
    });
    s.run();
    CHECK(side.counters().started == 1);
    side.end_idle();
    CHECK(side.counters().threads == 0);
}

WEFT_TEST("blocking: the limit can be changed while calls wait") {
    io::side_pool side({.limit = 1});
    pool p({.workers = 2});
    std::counting_semaphore<8> begun{0};
    std::counting_semaphore<8> open{0};
    for (int i = 0; i < 4; ++i)
        go(p, [&] {
            io::blocking(side, [&] {
                begun.release();
                open.acquire();
            });
        });
    begun.acquire();
    until([&] { return side.counters().queued == 3; });
    side.set_limit(3);
    begun.acquire();
    begun.acquire();
    CHECK(side.limit() == 3);
    side.set_limit(1);
    open.release(4);
    p.drain();
    CHECK(side.counters().finished == 4);
    for (int i = 0; i < 4; ++i) go(p, [&] { io::blocking(side, [] {}); });
    p.drain();
    CHECK(side.counters().threads <= 1);
    EXPECT_THROW(side.set_limit(0), std::invalid_argument);
    EXPECT_THROW(io::side_pool({.limit = 0}), std::invalid_argument);
    EXPECT_THROW(io::side_pool({.idle = -1ns}), std::invalid_argument);
}

WEFT_TEST("blocking: in a plain thread it is a plain call") {
    io::side_pool side;
    const auto here = std::this_thread::get_id();
    CHECK(io::blocking(side, [] { return std::this_thread::get_id(); }) == here);
    CHECK(io::try_blocking(side, [] { return std::this_thread::get_id(); }) == here);
    CHECK(side.counters().started == 0);
}

WEFT_TEST("blocking: inside a blocking call it is a plain call") {
    io::side_pool side({.limit = 1});
    loop s;
    int got = 0;
    go(s, [&] { got = io::blocking(side, [&] { return io::blocking(side, [] { return 3; }); }); });
    s.run();
    CHECK(got == 3);
}

WEFT_TEST("blocking: its threads have names") {
    io::side_pool side({.name = "reader"});
    loop s;
    std::string name;
    go(s, [&] {
        name = io::blocking(side, [] {
            char text[16] = "";
            ::pthread_getname_np(::pthread_self(), text, sizeof text);
            return std::string(text);
        });
    });
    s.run();
    CHECK(name == "reader-0");
}

WEFT_TEST("blocking: an expected that the function returns is not wrapped once more") {
    io::side_pool side;
    loop s;
    std::expected<int, std::error_code> got = 0;
    go(s, [&] {
        got = io::try_blocking(side, []() -> std::expected<int, std::error_code> {
            return std::unexpected(std::make_error_code(std::errc::io_error));
        });
    });
    s.run();
    CHECK(!got && got.error() == std::errc::io_error);
}

WEFT_TEST("blocking: the shared pool is there") {
    loop s;
    int got = 0;
    go(s, [&] { got = io::blocking([] { return 9; }); });
    s.run();
    CHECK(got == 9);
    CHECK(io::shared_side_pool().limit() >= 1);
}

CROWD_TEST("blocking: stress, each call runs once and gives its own result") {
    const with_test_points points;
    const long count = rounds(20'000);
    io::side_pool side({.limit = 3, .idle = 100us});
    std::atomic<long> ran = 0;
    std::atomic<long> sum = 0;
    crowd(6, [&](int i) {
        for (long j = 0; j < count; ++j)
            sum += io::blocking(side, [&ran, i, j] {
                ++ran;
                return i * 1000 + j;
            });
    });
    CHECK(ran == 6 * count);
    CHECK(sum == 15 * 1000 * count + 6 * (count * (count - 1) / 2));
}

CROWD_TEST("blocking: stress of cancellation against the beginning of calls") {
    const with_test_points points;
    const long count = rounds(20'000);
    io::side_pool side({.limit = 1});
    weft_test::scope_slots slots(4);
    std::atomic<long> ran = 0;
    std::atomic<long> returned = 0;
    std::atomic<long> withdrawn = 0;
    std::atomic<int> left = 4;
    crowd(7, [&](int i) {
        if (i == 2) {
            while (left != 0) {
                slots.cancel_one();
                std::this_thread::yield();
            }
        } else if (i % 3 != 2) {
            const int slot = i < 2 ? i : i - 1;  // 0, 1, 3, 4, 6
            if (slot > 3) return;
            for (long j = 0; j < count; ++j) {
                const auto inside = slots.enter(slot);
                const auto result = io::try_blocking(side, [&ran] { return ++ran; });
                ++(result ? returned : withdrawn);
            }
            --left;
        }
    });
    CHECK(returned == ran);
    CHECK(returned + withdrawn == 4 * count);
}
