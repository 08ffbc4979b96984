// wait_test.cpp - suspend and wait, sleeping, park and unpark.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/fiber/suspend.hpp>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include <weft/base/test_point.hpp>
#include <weft/fiber/no_suspend.hpp>

#include "loops.hpp"

using namespace weft;
using namespace std::chrono_literals;

namespace {

constexpr wait_reason for_test{"waits for the test"};
constexpr wait_reason firmly{"waits for the test, firmly", false};

// The smallest primitive: one waiter, one signal.
struct signal {
    waiter* waiting = nullptr;
    bool set = false;

    wait_outcome wait_for(const wait_reason& reason, time_point deadline) {
        const wait_outcome outcome = wait(reason, deadline, [this](waiter& me) noexcept {
            if (set) return false;
            waiting = &me;
            return true;
        });
        waiting = nullptr;
        return outcome;
    }
    void notify() {
        set = true;
        if (waiting != nullptr && waiting->claim()) waiting->wake();
    }
};

// Lets threads meet at the test points.
void yield_at_points(const char*) noexcept { std::this_thread::yield(); }

struct with_test_points {
    with_test_points() { detail::at_test_points = &yield_at_points; }
    ~with_test_points() { detail::at_test_points = nullptr; }
};

}  // namespace

MATRIX_TEST("suspend: the callback runs off the fiber and decides what runs next") {
    std::string log;
    runnable* stopped = nullptr;
    spawn([&] {
        log += 'a';
        suspend([&](runnable* r) noexcept -> runnable* {
            CHECK(!this_fiber::get_id());
            stopped = r;
            return nullptr;
        });
        log += 'c';
    });
    spawn([&] { log += 'b'; });
    run_until_blocked();
    CHECK(log == "ab");
    REQUIRE(stopped != nullptr);
    s.post(stopped);
    run();
    CHECK(log == "abc");
}

MATRIX_TEST("suspend: returning the fiber itself goes straight on") {
    int rounds = 0;
    spawn([&] {
        for (; rounds < 10; ++rounds) suspend([](runnable* r) noexcept { return r; });
    });
    run();
    CHECK(rounds == 10);
}

MATRIX_TEST("suspend: another runnable is a tail transfer") {
    std::string log;
    runnable* first = nullptr;
    spawn([&] {
        suspend([&](runnable* r) noexcept -> runnable* {
            first = r;
            return nullptr;
        });
        log += 'a';
    });
    spawn([&] {
        suspend([&](runnable* r) noexcept -> runnable* {
            s.post(r);
            return first;
        });
        log += 'b';
    });
    run();
    CHECK(log == "ab");
}

MATRIX_TEST("wait: an event that comes later, and one that is there already") {
    signal one;
    std::vector<wait_outcome> outcomes;
    spawn([&] { outcomes.push_back(one.wait_for(for_test, no_deadline)); });
    run_until_blocked();
    CHECK(outcomes.empty());
    one.notify();
    run();
    spawn([&] { outcomes.push_back(one.wait_for(for_test, no_deadline)); });
    run();
    CHECK((outcomes == std::vector{wait_outcome::event, wait_outcome::event}));
}

MATRIX_TEST("wait: the deadline ends it, and its event comes too late") {
    signal one;
    wait_outcome outcome{};
    bool ended = false;
    spawn([&] {
        outcome = one.wait_for(for_test, clock.now() + 5ms);
        ended = true;
    });
    run_until_blocked();
    advance(5ms - 1ns);
    CHECK(!ended);
    advance(1ns);
    CHECK(ended);
    CHECK(outcome == wait_outcome::timed_out);
}

MATRIX_TEST("wait: an event before the deadline disarms the timer") {
    signal one;
    wait_outcome outcome{};
    spawn([&] { outcome = one.wait_for(for_test, clock.now() + 5ms); });
    run_until_blocked();
    CHECK(s.next_deadline());
    one.notify();
    run_until_blocked();
    CHECK(!s.next_deadline());
    CHECK(outcome == wait_outcome::event);
}

MATRIX_TEST("wait: cancellation ends it, but not one that ignores it") {
    signal one;
    signal two;
    wait_outcome first{};
    wait_outcome second{};
    fiber f(s, options(), [&] {
        second = two.wait_for(firmly, no_deadline);
        first = one.wait_for(for_test, no_deadline);
    });
    run_until_blocked();
    f.request_stop();
    run_until_blocked();
    CHECK(first == wait_outcome{});
    two.notify();
    run_until_blocked();
    CHECK(second == wait_outcome::event);
    CHECK(first == wait_outcome::cancelled);
    f.detach();
}

MATRIX_TEST("wait: exactly one of event, deadline and cancellation wins") {
    for (int order = 0; order < 6; ++order) {
        signal one;
        wait_outcome outcome{};
        fiber f(s, options(), [&] { outcome = one.wait_for(for_test, clock.now() + 1ms); });
        run_until_blocked();
        const auto act = [&](int what) {
            if (what == 0) one.notify();
            if (what == 1) clock.advance(1ms);
            if (what == 2) f.request_stop();
        };
        act(order % 3);
        act((order + 1 + order / 3) % 3);
        run_until_blocked();
        CHECK(outcome != wait_outcome{});
        f.detach();
    }
}

MATRIX_TEST("sleep: takes as long as it was told, in the order of deadlines") {
    std::string log;
    spawn([&] {
        CHECK(sleep_for(3ms));
        log += 'c';
    });
    spawn([&] {
        CHECK(sleep_for(1ms));
        log += 'a';
    });
    spawn([&] {
        CHECK(sleep_until(clock.now() + 2ms));
        log += 'b';
    });
    run_until_blocked();
    CHECK(log.empty());
    advance(1ms);
    CHECK(log == "a");
    advance(1ms);
    CHECK(log == "ab");
    advance(1h);
    CHECK(log == "abc");
}

MATRIX_TEST("sleep: those who sleep until the same moment wake in the order in which they began") {
    std::string log;
    for (char name = 'a'; name <= 'h'; ++name)
        spawn([&log, name] {
            sleep_for(1ms);
            log += name;
            sleep_for(1ms);
            log += static_cast<char>(name - 'a' + 'A');
        });
    run_until_blocked();
    advance(1ms);
    advance(1ms);
    CHECK(log == "abcdefghABCDEFGH");
}

WEFT_TEST("sleep_until: by any clock, never early, and so does park_until") {
    loop s;
    go(s, [] {
        const auto when = std::chrono::system_clock::now() + 2ms;
        CHECK(sleep_until(when).has_value());
        CHECK(std::chrono::system_clock::now() >= when);
        const auto exact = std::chrono::steady_clock::now() + std::chrono::duration<double>(0.002);
        CHECK(sleep_until(exact).has_value());
        CHECK(std::chrono::steady_clock::now() >= exact);
        CHECK(park_until(std::chrono::system_clock::now() + 1ms).error() == std::errc::timed_out);
    });
    s.run();
}

MATRIX_TEST("sleep: nothing, less than nothing, and longer than there is time") {
    int done = 0;
    spawn([&] {
        CHECK(sleep_for(0s));
        CHECK(sleep_for(-1h));
        CHECK(sleep_until(time_point::min()));
        ++done;
    });
    s.step();
    CHECK(done == 1);
    fiber forever(s, options(), [&] {
        CHECK(!sleep_for(std::chrono::hours::max()));
        ++done;
    });
    run_until_blocked();
    clock.advance(std::chrono::hours(24) * 365 * 100);
    run_until_blocked();
    CHECK(done == 1);
    forever.request_stop();
    run_until_blocked();
    CHECK(done == 2);
    forever.detach();
}

WEFT_TEST("sleep: on the real clock never early, on a loop and in a plain thread") {
    const auto before = std::chrono::steady_clock::now();
    CHECK(sleep_for(2ms));
    CHECK(std::chrono::steady_clock::now() - before >= 2ms);
    loop s;
    go(s, [] {
        const auto start = std::chrono::steady_clock::now();
        CHECK(sleep_for(2ms));
        CHECK(std::chrono::steady_clock::now() - start >= 2ms);
    });
    s.run();
}

MATRIX_TEST("sleep: a million armed and disarmed deadlines leave nothing behind") {
    const long count = weft_test::stress_count(kind == stack_kind::thread ? 50'000 : 1'000'000);
    signal one;
    long events = 0;
    spawn([&] {
        for (long i = 0; i < count; ++i) {
            one.set = false;
            if (one.wait_for(for_test, clock.now() + 1h) == wait_outcome::event) ++events;
        }
    });
    spawn([&] {
        while (events < count) {
            one.notify();
            yield();
        }
    });
    run();
    CHECK(events == count);
}

MATRIX_TEST("park: waits for its permit, and takes one that was there") {
    std::string log;
    fiber_handle parked;
    spawn([&] {
        parked = this_fiber::handle();
        CHECK(park());
        log += 'a';
        CHECK(park());
        log += 'b';
    });
    run_until_blocked();
    CHECK(log.empty());
    unpark(parked);
    unpark(parked);  // one permit, not two
    run_until_blocked();
    CHECK(log == "a");
    unpark(parked);
    run();
    CHECK(log == "ab");
    unpark(parked);  // it has ended
}

MATRIX_TEST("park: a deadline and cancellation end it, and leave the permit") {
    std::vector<std::errc> errors;
    fiber f(s, options(), [&] {
        errors.push_back(static_cast<std::errc>(park_until(clock.now() + 1ms).error().value()));
        errors.push_back(static_cast<std::errc>(park().error().value()));
        unpark(this_fiber::handle());
        CHECK(park());  // the permit is there, so nothing has to wait
    });
    run_until_blocked();
    advance(1ms);
    f.request_stop();
    run_until_blocked();
    CHECK((errors == std::vector{std::errc::timed_out, std::errc::operation_canceled}));
    f.detach();
}

WEFT_TEST("park: stress of unpark from another thread, no permit is lost") {
    const with_test_points points;
    const long count = weft_test::stress_count(300'000);
    loop s;
    fiber_handle parked;
    std::atomic<bool> ready = false;
    std::atomic<long> taken = 0;
    go(s, [&] {
        parked = this_fiber::handle();
        ready.store(true, std::memory_order_release);
        while (taken < count) {
            park();
            ++taken;
        }
    });
    std::thread other([&] {
        while (!ready.load(std::memory_order_acquire)) std::this_thread::yield();
        for (long i = 0; i < count; ++i) {
            unpark(parked);
            while (taken.load() <= i) std::this_thread::yield();
        }
    });
    s.run();
    other.join();
    CHECK(taken == count);
}

WEFT_TEST("wait: stress of cancel, deadline and event from three threads, each wait ends once") {
    const with_test_points points;
    const long rounds = weft_test::stress_count(10'000);
    // Three threads that yield on a machine that is busy otherwise: a round may take long.
    const auto until = std::chrono::steady_clock::now() + 5s;
    long done = 0;
    loop s;
    std::atomic<long> round = 0;
    std::atomic<cancel_scope*> scope = nullptr;
    fiber_handle parked;
    long outcomes[3] = {};
    go(s, [&] {
        parked = this_fiber::handle();
        for (long i = 1; i <= rounds && std::chrono::steady_clock::now() < until; ++i) {
            cancel_scope mine;
            scope.store(&mine);
            round.store(i, std::memory_order_release);
            const auto result = park_until(std::chrono::steady_clock::now() + 20us);
            if (result)
                ++outcomes[0];
            else
                ++outcomes[result.error() == std::errc::timed_out ? 1 : 2];
            while (scope.exchange(nullptr) == nullptr) std::this_thread::yield();
            done = i;
        }
        round.store(-1, std::memory_order_release);
    });
    std::thread waker([&] {
        while (round.load(std::memory_order_acquire) == 0) std::this_thread::yield();
        for (long seen = 0; seen != -1; seen = round.load(std::memory_order_acquire)) {
            unpark(parked);
            std::this_thread::yield();
        }
    });
    std::thread canceller([&] {
        while (round.load(std::memory_order_acquire) != -1) {
            if (cancel_scope* const one = scope.exchange(nullptr)) {
                one->cancel();
                scope.store(one);
            }
            // With it given back: who yields only with it in hand, on one CPU, keeps it for ever.
            std::this_thread::yield();
        }
    });
    s.run();
    waker.join();
    canceller.join();
    CHECK(outcomes[0] + outcomes[1] + outcomes[2] == done);
}

WEFT_TEST("wait misuse: yield, suspend and park outside a fiber abort by name") {
    EXPECT_DEATH(yield(), "yield: called outside any fiber");
    EXPECT_DEATH(suspend([](runnable* r) noexcept { return r; }), "suspend: called outside any");
    EXPECT_DEATH(static_cast<void>(park()), "park: called outside any fiber");
    EXPECT_DEATH(static_cast<void>(park_until(time_point{})), "park_until: called outside any");
    EXPECT_DEATH(static_cast<void>(this_fiber::executor()), "this_fiber::executor: called outside");
}

MATRIX_TEST("no_suspend: what waits inside aborts and names the scope") {
    const auto misuse = [this](auto wait_somehow) {
        spawn([wait_somehow] {
            const no_suspend guard("the list is inconsistent");
            wait_somehow();
        });
        s.run();
    };
    EXPECT_DEATH(misuse([] { sleep_for(1s); }), "no_suspend.*the list is inconsistent");
    EXPECT_DEATH(misuse([] { yield(); }), "no_suspend.*the list is inconsistent");
    spawn([] {
        { const no_suspend guard("short"); }
        yield();
    });
    run();
}
