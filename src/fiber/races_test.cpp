// races_test.cpp - what once went wrong between two sides of a protocol, a test each.
//
// SPDX-License-Identifier: Apache-2.0
#include <poll.h>

#include <atomic>
#include <csignal>
#include <deque>
#include <thread>
#include <vector>

#include <weft/exec/post.hpp>
#include <weft/fiber/cancel.hpp>
#include <weft/fiber/run.hpp>
#include <weft/fiber/suspend_hook.hpp>

#include "loops.hpp"
#include "test_points.hpp"

using namespace weft;
using namespace std::chrono_literals;
using weft_test::hold_at;

namespace {

constexpr wait_reason for_test{"waits for the test"};

}  // namespace

#if defined(WEFT_CHECKS) && WEFT_CHECKS
WEFT_TEST("races: an unpark that comes late does not end another wait") {
    loop s;
    fiber_handle parked;
    std::atomic<bool> ready = false;
    std::atomic<bool> unparked = false;
    bool waited_in_full = false;
    const hold_at unpark_is_held("unpark: the permit is awaited");
    go(s, [&] {
        parked = this_fiber::handle();
        ready = true;
        // Its deadline comes while the unpark is held, and this fiber goes on to other waits.
        while (!hold_at::somebody_is_held())
            static_cast<void>(park_until(std::chrono::steady_clock::now() + 5ms));
        waiter* waiting = nullptr;
        bool woken = false;
        go([&] {
            hold_at::let_go();
            while (!unparked) yield();
            woken = true;
            if (waiting->claim()) waiting->wake();
        });
        wait(for_test, no_deadline, [&waiting](waiter& me) noexcept {
            waiting = &me;
            return true;
        });
        waited_in_full = woken;
        while (!woken) yield();
        CHECK(park());  // the permit is there, whoever was late
    });
    std::thread other([&] {
        while (!ready) std::this_thread::yield();
        while (!hold_at::is_over()) unpark(parked);  // one of them finds it waiting
        unparked = true;
    });
    s.run();
    other.join();
    CHECK(waited_in_full);
}
#endif

MATRIX_TEST("races: an event between publishing and leaving brings the fiber back to itself") {
    // Only a portable context has a signal mask of its own to lose.
    const auto blocked = [] {
        sigset_t mask;
        ::pthread_sigmask(SIG_SETMASK, nullptr, &mask);
        return ::sigismember(&mask, SIGUSR1) == 1 || ::sigismember(&mask, SIGTERM) == 1;
    };
    int turns = 0;
    spawn([&] {
        for (; turns < 5; ++turns)
            wait(for_test, no_deadline, [](waiter& me) noexcept {
                if (me.claim()) me.wake();
                return true;
            });
        CHECK(!blocked());
    });
    run();
    CHECK(turns == 5);
}

WEFT_TEST("races: a fiber of an executor over two loops is never on two threads, in stress") {
    struct over_two final : executor {
        void post(runnable* r) override { (turn++ % 2 == 0 ? first : second)->post(r); }
        void defer(runnable* r) override { post(r); }
        loop* first;
        loop* second;
        std::atomic<unsigned> turn = 0;
    };
    const long rounds = weft_test::stress_count(20'000);
    loop a;
    loop b;
    over_two both;
    both.first = &a;
    both.second = &b;
    a.add_work(1);
    b.add_work(1);
    std::atomic<bool> end = false;
    std::atomic<waiter*> waiting = nullptr;
    std::atomic<int> inside = 0;
    bool alone = true;
    for (loop* one : {&a, &b})
        go(*one, [&] {
            while (!end) yield();
        });
    go(both, [&] {
        for (long i = 0; i < rounds; ++i) {
            if (inside.fetch_add(1) != 0) alone = false;
            inside.fetch_sub(1);
            wait(for_test, no_deadline, [&waiting](waiter& me) noexcept {
                waiting = &me;
                std::this_thread::yield();  // the waker comes before this one has left
                return true;
            });
        }
        end = true;
        a.add_work(-1);
        b.add_work(-1);
    });
    std::thread runs_a([&] { a.run(); });
    std::thread runs_b([&] { b.run(); });
    while (!end)
        if (waiter* const one = waiting.exchange(nullptr)) {
            if (one->claim()) one->wake();
        } else {
            std::this_thread::yield();
        }
    runs_a.join();
    runs_b.join();
    CHECK(alone);
}

WEFT_TEST("races: a user's executor with next() loses nobody when an event is there already") {
    struct queue final : executor {
        void post(runnable* r) override { all.push_back(r); }
        void defer(runnable* r) override { post(r); }
        runnable* next() noexcept override {
            if (all.empty()) return nullptr;
            runnable* const r = all.front();
            all.pop_front();
            return r;
        }
        std::deque<runnable*> all;
    } e;
    int done = 0;
    go(e, [&] {
        yield();
        wait(for_test, no_deadline, [](waiter&) noexcept { return false; });
        ++done;
    });
    go(e, [&] {
        yield();
        yield();
        ++done;
    });
    while (runnable* r = e.next())
        while ((r = r->run()) != nullptr) {}
    CHECK(done == 2);
}

WEFT_TEST("races: the descriptor becomes readable after a step, too") {
    loop s;
    const int descriptor = s.descriptor();
    const auto readable = [&] {
        pollfd watched{.fd = descriptor, .events = POLLIN, .revents = 0};
        return ::poll(&watched, 1, 0) == 1;
    };
    s.poll();
    s.step();
    CHECK(!readable());
    std::thread([&] { post(s, [] {}); }).join();
    CHECK(readable());
    s.poll();
}

WEFT_TEST("races: a fiber that comes back to a loop that ends is asked to stop") {
    loop there;
    there.add_work(1);
    std::thread runs([&] { there.run(); });
    std::atomic<int> stage = 0;
    bool stopped = false;
    {
        loop here;
        go(here, [&] {
            on(there, [&] {
                stage = 1;
                while (stage != 2) yield();
            });
            stopped = !sleep_for(24h);
        });
        while (stage != 1) here.step();
        go(here, [&] { stage = 2; });  // runs when the loop ends, and all have been asked
    }
    there.add_work(-1);
    runs.join();
    CHECK(stopped);
}

WEFT_TEST("races: fibers that starve for a stack are all told when there is none to wait for") {
    struct none final : stack_source {
        stack take(std::size_t) override { throw std::bad_alloc(); }
        void give_back(stack) noexcept override {}
    } empty;
    int unhandled = 0;
    loop s({.external_wakes = false,
            .unhandled = [&](std::exception_ptr, runnable&) { ++unhandled; }});
    go(s, [] {
        yield();
        yield();
    });
    for (int i = 0; i < 3; ++i) go(s, {.stacks = &empty}, [] {});
    const stuck_report stuck = s.run();
    EXPECT_FALSE(stuck) << stuck.text();
    CHECK(unhandled == 3);
    loop other;
    go(s, [&] {
        go({.stacks = &empty}, [] {});
        yield();
        switch_to(other);  // and takes the last stack away
    });
    CHECK(!s.run());
    CHECK(unhandled == 4);
    other.run();
}

WEFT_TEST("races: an exception is not lost when the handle goes while the callable is destroyed") {
    struct throws {
        throws() = default;
        throws(throws&& other) noexcept : armed(std::exchange(other.armed, false)) {}
        ~throws() {
            if (armed) yield();
        }
        void operator()() { throw 7; }
        bool armed = true;
    };
    int unhandled = 0;
    loop s({.external_wakes = false,
            .unhandled = [&](std::exception_ptr, runnable&) { ++unhandled; }});
    go(s, [] {
        fiber f(throws{});
        yield();
        f.detach();
    });
    s.run();
    CHECK(unhandled == 1);
}

WEFT_TEST("races: a loop that others may wake runs inside a fiber of one that nobody may") {
    loop outer({.external_wakes = false});
    bool ran = false;
    loop inner;
    inner.add_work(1);
    std::thread other([&] {
        post(inner, [&] {
            ran = true;
            inner.add_work(-1);
        });
    });
    go(outer, [&] { inner.run(); });
    CHECK(!outer.run());
    other.join();
    CHECK(ran);
}

MATRIX_TEST("races: a wait that ends otherwise is withdrawn while its waiter is still there") {
    waiter* listed = nullptr;
    const auto wait_here = [&](time_point deadline) {
        return wait(
            for_test, deadline,
            [list = &listed](waiter& me) noexcept {
                *list = &me;
                return true;
            },
            [&](waiter& me) noexcept {
                CHECK(listed == &me);
                CHECK(!me.claim());
                listed = nullptr;
            });
    };
    CHECK(wait_here(std::chrono::steady_clock::now() + 1ms) == wait_outcome::timed_out);
    CHECK(listed == nullptr);
    std::vector<wait_outcome> outcomes;
    fiber f(s, options(), [&] {
        outcomes.push_back(wait_here(clock.now() + 1ms));
        outcomes.push_back(wait_here(no_deadline));
        outcomes.push_back(wait_here(no_deadline));
        outcomes.push_back(wait_here(no_deadline));  // cancelled already: neither is called
    });
    run_until_blocked();
    advance(1ms);
    if (listed->claim()) listed->wake();
    run_until_blocked();
    f.request_stop();
    run_until_blocked();
    using enum wait_outcome;
    CHECK((outcomes == std::vector{timed_out, event, cancelled, cancelled}));
    f.detach();
}

// A canceller on another thread claims the fiber while it takes what it waits for.
WEFT_TEST("races: on a loop, an event that is used up is not lost to a canceller") {
    using enum stack_kind;
    for (const stack_kind kind : {own, ucontext, thread, swapped})
        for (const bool hooked : {false, true}) {
            loop s;
            suspend_hook hook;
            wait_outcome first{};
            wait_outcome second{};
            fiber f(s, {.kind = kind}, [&] {
                if (hooked) this_fiber::set_suspend_hook(&hook);
                first = wait(for_test, no_deadline, [canceller = &f](waiter&) noexcept {
                    std::thread([canceller] { canceller->request_stop(); }).join();
                    return false;
                });
                second = wait(for_test, no_deadline, [](waiter&) noexcept { return true; });
            });
            s.run();
            f.join();
            CHECK(first == wait_outcome::event);
            CHECK(second == wait_outcome::cancelled);
        }
}
