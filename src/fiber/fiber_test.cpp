// fiber_test.cpp - the handle: joining, stopping, detaching; cancellation; locals; other executors.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/fiber/fiber.hpp>

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <weft/fiber/cancel.hpp>
#include <weft/fiber/dump.hpp>
#include <weft/fiber/fiber_local.hpp>

#include "loops.hpp"

using namespace weft;
using namespace std::chrono_literals;

// --- joining

MATRIX_TEST("fiber: join waits for the end, from a fiber") {
    std::string log;
    std::unique_ptr<fiber> child;
    spawn([&] {
        child = std::make_unique<fiber>(options(), [&] {
            log += 'a';
            yield();
            log += 'b';
        });
        CHECK(child->joinable());
        child->join();
        CHECK(!child->joinable());
        log += 'c';
    });
    run();
    CHECK(log == "abc");
}

MATRIX_TEST("fiber: one that ended can still be joined, and gives its exception") {
    fiber child(s, options(), [] { throw std::runtime_error("from the child"); });
    run();
    std::string caught;
    spawn([&] {
        try {
            child.join();
        } catch (const std::runtime_error& e) { caught = e.what(); }
    });
    run();
    CHECK(caught == "from the child");
}

MATRIX_TEST("fiber: arguments are moved to it, the stop token comes first if it is wanted") {
    int sum = 0;
    bool stopped = false;
    fiber a(
        s, options(), [&](int x, std::unique_ptr<int> y) { sum = x + *y; }, 3,
        std::make_unique<int>(4));
    fiber b(
        s, options(),
        [&](std::stop_token stop, int) {
            while (!stop.stop_requested()) yield();
            stopped = true;
        },
        1);
    for (int i = 0; i < 10; ++i) s.step();
    CHECK(sum == 7);
    CHECK(!stopped);
    CHECK(b.request_stop());
    CHECK(!b.request_stop());
    run();
    CHECK(stopped);
    a.detach();
    b.detach();
}

MATRIX_TEST("fiber: its destructor requests stop and joins") {
    std::string log;
    spawn([&] {
        {
            const fiber child(options(), [&] {
                log += sleep_for(1h) ? 's' : 'c';
                yield();
                log += 'e';
            });
            yield();
        }
        log += 'd';
    });
    run();
    CHECK(log == "ced");
}

MATRIX_TEST("fiber: a moved handle moves the duty to join") {
    std::string log;
    spawn([&] {
        fiber a(options(), [&] { log += 'a'; });
        fiber b(std::move(a));
        CHECK(!a.joinable());
        a = std::move(b);
        a.join();
        log += 'j';
        CHECK(!a.joinable());
    });
    run();
    CHECK(log == "aj");
}

WEFT_TEST("fiber: an exception that nobody joins goes to the handler") {
    int seen = 0;
    loop s({.unhandled = [&](std::exception_ptr, runnable&) { ++seen; }});
    fiber early(s, [] { throw 1; });
    early.detach();
    s.run();
    CHECK(seen == 1);
    fiber late(s, [] { throw 2; });
    s.run();
    CHECK(seen == 1);
    late.detach();
    CHECK(seen == 2);
    {
        const fiber destroyed(s, [] { throw 3; });
        s.run();
    }
    CHECK(seen == 3);
}

WEFT_TEST("fiber: join from a plain thread, in stress") {
    const long rounds = weft_test::stress_count(100'000);
    loop s;
    s.add_work(1);
    std::thread runs([&] { s.run(); });
    long sum = 0;
    for (long i = 0; i < rounds; ++i) {
        fiber f(s, [&] {
            if (i % 2 == 0) yield();
            ++sum;
        });
        f.join();
        CHECK(sum == i + 1);
    }
    s.add_work(-1);
    runs.join();
    CHECK(sum == rounds);
}

MATRIX_TEST("fiber: a cancelled join throws, and can be done again") {
    std::string log;
    fiber child(s, options(), [&] {
        park();
        log += 'e';
    });
    fiber parent(s, options(), [&] {
        try {
            child.join();
        } catch (const cancelled& c) { log += c.reason() == cancel_reason::requested ? 'c' : '?'; }
        CHECK(child.joinable());
    });
    run_until_blocked();
    parent.request_stop();
    run_until_blocked();
    CHECK(log == "c");
    unpark(child.handle());
    run();
    CHECK(log == "ce");
    spawn([&] { child.join(); });
    run();
    parent.detach();
}

WEFT_TEST("fiber misuse: joining nothing, or itself, aborts") {
    EXPECT_DEATH(fiber().join(), "fiber::join: there is nothing to join");
    const auto misuse = [] {
        loop s;
        fiber* me = nullptr;
        fiber f(s, [&] { me->join(); });
        me = &f;
        s.run();
    };
    EXPECT_DEATH(misuse(), "fiber::join: a fiber cannot join itself");
}

// --- cancellation

MATRIX_TEST("cancel: it is level-triggered, every wait says it again") {
    int cancelled_waits = 0;
    fiber f(s, options(), [&] {
        for (int i = 0; i < 3; ++i)
            if (!sleep_for(1h)) ++cancelled_waits;
        if (!park()) ++cancelled_waits;
        yield();  // ignores it
    });
    run_until_blocked();
    f.request_stop();
    run();
    CHECK(cancelled_waits == 4);
    f.detach();
}

MATRIX_TEST("cancel: a scope cancels what is inside it, and nothing after it") {
    std::string log;
    std::unique_ptr<cancel_scope> scope;
    spawn([&] {
        {
            scope = std::make_unique<cancel_scope>();
            log += sleep_for(1h) ? 's' : 'c';
            CHECK(scope->is_cancelled());
            scope.reset();
        }
        log += sleep_for(1ms) ? 's' : 'c';
    });
    run_until_blocked();
    scope->cancel();
    run_until_blocked();
    CHECK(log == "c");
    advance(1ms);
    CHECK(log == "cs");
}

MATRIX_TEST("cancel: scopes nest, and a shield keeps the outside out") {
    std::string log;
    std::unique_ptr<cancel_scope> outer;
    std::unique_ptr<cancel_scope> shielded;
    std::unique_ptr<cancel_scope> inner;
    spawn([&] {
        outer = std::make_unique<cancel_scope>();
        shielded = std::make_unique<cancel_scope>(cancel_scope::shield::yes);
        inner = std::make_unique<cancel_scope>();
        log += sleep_for(1h) ? 's' : 'c';  // by inner alone
        inner.reset();
        log += sleep_for(0s) ? 's' : 'c';  // shielded from outer
        CHECK(!this_fiber::stop_requested());
        shielded.reset();
        CHECK(this_fiber::stop_requested());
        log += sleep_for(0s) ? 's' : 'c';
        outer.reset();
        log += sleep_for(0s) ? 's' : 'c';
    });
    run_until_blocked();
    outer->cancel();
    run_until_blocked();
    CHECK(log.empty());
    inner->cancel();
    run();
    CHECK(log == "cscs");
}

MATRIX_TEST("cancel: the stop token is the innermost scope's, and its callbacks run") {
    std::string log;
    std::unique_ptr<cancel_scope> scope;
    fiber f(s, options(), [&] {
        const std::stop_token own = get_stop_token();
        scope = std::make_unique<cancel_scope>();
        const std::stop_token inner = get_stop_token();
        // Not among the locals: those of a swapped fiber go away while it is parked.
        using callback = std::stop_callback<std::function<void()>>;
        const auto a = std::make_unique<callback>(own, [&] { log += 'o'; });
        const auto b = std::make_unique<callback>(inner, [&] { log += 'i'; });
        park();
        CHECK(inner.stop_requested());
        CHECK(!own.stop_requested());
        scope.reset();
        park();
        CHECK(own.stop_requested());
    });
    run_until_blocked();
    scope->cancel();
    run_until_blocked();
    CHECK(log == "i");
    f.request_stop();
    run();
    CHECK(log == "io");
    f.detach();
}

MATRIX_TEST("cancel: throw_if_cancelled ends the fiber at its edge") {
    bool after = false;
    fiber f(s, options(), [&] {
        park();
        this_fiber::throw_if_cancelled();
        after = true;
    });
    run_until_blocked();
    f.request_stop();
    run();
    CHECK(!after);
    spawn([&] { f.join(); });  // which is no exception
    run();
}

WEFT_TEST("loop: its end asks everybody to stop, those that never started too") {
    std::string log;
    {
        loop s;
        go(s, [&] { log += sleep_for(1h) ? 's' : 'c'; });
        s.step();
        go(s, [&] {
            log += sleep_for(1h) ? 's' : 'u';
            go([&] { log += park() ? 's' : 'n'; });
        });
    }
    CHECK(log == "ucn" || log == "cun");
}

WEFT_TEST("loop misuse: its end aborts with a list when somebody can never end") {
    const auto misuse = [] {
        static constexpr wait_reason deaf{"waits for nobody", false};
        loop s({.external_wakes = false});
        go(s, {.name = "the deaf one"},
           [] { wait(deaf, no_deadline, [](waiter&) noexcept { return true; }); });
        s.run_until_blocked();
    };
    EXPECT_DEATH(misuse(), "destroyed while these cannot end(.|\n)*the deaf one: waits for nobody");
}

LOOP_TEST("loop: run reports who is stuck and on what") {
    fiber_handle h;
    go(s, {.name = "stuck one"}, [&] {
        h = this_fiber::handle();
        park();
    });
    const stuck_report report = s.run();
    REQUIRE(report.waiters.size() == 1);
    CHECK(report.text().find("fiber stuck one: is parked, started at ") == 0);
    CHECK(report.text().find("fiber_test.cpp:") != std::string::npos);
    std::vector<std::string> dumped;
    dump([&](std::string_view line) { dumped.emplace_back(line); });
    CHECK(dumped == report.waiters);
    unpark(h);
    run();
}

WEFT_TEST("cancel: one asked to stop before it ran knows it in its token and in its scopes") {
    loop s({.external_wakes = false});
    bool token = false;
    bool scope = false;
    fiber f(s, [&](std::stop_token stop) {
        token = stop.stop_requested();
        const cancel_scope inside;
        scope = inside.is_cancelled() && this_fiber::stop_requested();
    });
    f.request_stop();
    s.run();
    CHECK(token);
    CHECK(scope);
    f.detach();
}

// Then what runs next is the very fiber that leaves, which has to come back to itself.
WEFT_TEST("sleep: a deadline that passes while the fiber is about to leave is not lost") {
    using enum stack_kind;
    for (const stack_kind kind : {own, ucontext, thread, swapped}) {
        loop s;
        const int turns = kind == thread ? 200 : 3000;
        int slept = 0;
        for (int i = 0; i < 4; ++i)
            go(s, {.kind = kind}, [&] {
                for (int turn = 0; turn < turns; ++turn) {
                    sleep_for(std::chrono::nanoseconds(turn % 300));
                    ++slept;
                }
            });
        s.run();
        CHECK(slept == 4 * turns);
    }
}

WEFT_TEST("dump: a handle's fiber tells the line that started it") {
    loop s;
    fiber f(s, [] { park(); });
    const auto line = std::to_string(__LINE__ - 1);
    s.step();
    std::string all;
    dump([&](std::string_view one) { all += one; });
    CHECK(all.find("fiber_test.cpp:" + line) != std::string::npos);
    f.request_stop();
    s.run();
    f.detach();
}

// --- locals

MATRIX_TEST("fiber_local: each fiber has its own, destroyed at its end, the last made first") {
    static std::string log;
    log.clear();
    struct tells {
        int number = 0;
        ~tells() { log += std::to_string(number); }
    };
    fiber_local<tells> first;
    fiber_local<tells> second;
    for (int i = 0; i < 2; ++i)
        spawn([&, i] {
            CHECK(first->number == 0);
            first->number = 10 * i + 1;
            yield();
            second->number = 10 * i + 2;
            CHECK(first->number == 10 * i + 1);
        });
    run();
    CHECK(log == "211211");
}

WEFT_TEST("fiber_local misuse: outside a fiber it aborts") {
    fiber_local<int> local;
    EXPECT_DEATH(static_cast<void>(*local), "fiber_local: used outside any fiber");
}

// --- loops in fibers of loops, and moving between executors

namespace {

// Compilers keep what std::this_thread::get_id() said over a call, for they take pthread_self() to
// be constant.
[[gnu::noinline]] std::thread::id thread_now() {
    asm volatile("" ::: "memory");
    return std::this_thread::get_id();
}

}  // namespace

WEFT_TEST("loop: run inside a fiber of another lets that one's other fibers run") {
    std::string log;
    loop outer;
    go(outer, [&] {
        loop inner;
        go(inner, [&] {
            log += 'a';
            sleep_for(2ms);
            log += 'd';
        });
        inner.run();
        log += 'e';
    });
    go(outer, [&] {
        log += 'b';
        yield();
        log += 'c';
    });
    outer.run();
    CHECK(log == "abcde");
}

WEFT_TEST("loop: a fiber of an inner loop posts to the outer one") {
    std::string log;
    loop outer;
    go(outer, [&] {
        loop inner({.external_wakes = false});
        go(inner, [&] {
            go(outer, [&] { log += 'o'; });
            log += 'i';
        });
        inner.run();
    });
    outer.run();
    CHECK(log == "io");
}

WEFT_TEST("on: runs a function on another executor and comes back, in stress between two threads") {
    const long rounds = weft_test::stress_count(100'000);
    loop here;
    loop there;
    there.add_work(1);
    std::thread runs([&] { there.run(); });
    const auto main_thread = thread_now();
    long right = 0;
    go(here, [&] {
        for (long i = 0; i < rounds; ++i) {
            const bool elsewhere = on(there, [&] { return thread_now() != main_thread; });
            if (elsewhere && thread_now() == main_thread) ++right;
        }
    });
    here.run();
    there.add_work(-1);
    runs.join();
    CHECK(right == rounds);
}

WEFT_TEST("switch_to: an exception in flight goes along, also to another thread") {
    loop here;
    loop there;
    there.add_work(1);
    std::thread runs([&] { there.run(); });
    int caught = 0;
    here.add_work(1);  // it comes back
    go(here, [&] {
        try {
            throw 5;
        } catch (int) {
            switch_to(there);
            try {
                throw;
            } catch (int i) { caught = i; }
            switch_to(here);
            here.add_work(-1);
        }
    });
    here.run();
    there.add_work(-1);
    runs.join();
    CHECK(caught == 5);
}

namespace {

// An executor with post and defer and nothing else, run by hand.
class plain_executor final : public executor {
public:
    void post(runnable* r) override {
        const std::lock_guard lock(mutex_);
        queue_.push_back(r);
    }
    void defer(runnable* r) override { post(r); }
    void run_all() {
        while (runnable* r = take()) do
                r = r->run();
            while (r != nullptr);
    }

private:
    runnable* take() {
        const std::lock_guard lock(mutex_);
        if (queue_.empty()) return nullptr;
        runnable* const r = queue_.front();
        queue_.pop_front();
        return r;
    }
    std::mutex mutex_;
    std::deque<runnable*> queue_;
};

}  // namespace

WEFT_TEST("executor: a user's own runs fibers that yield, park, join and are stopped") {
    for (const stack_kind kind : {stack_kind::own, stack_kind::ucontext, stack_kind::thread}) {
        plain_executor e;
        std::string log;
        fiber_handle parked;
        fiber child(e, {.kind = kind}, [&] {
            parked = this_fiber::handle();
            log += 'a';
            park();
            log += 'c';
            log += park() ? 'p' : 's';
        });
        go(e, {.kind = kind}, [&] {
            yield();
            log += 'b';
            unpark(parked);
            yield();
            child.request_stop();
            child.join();
            log += 'j';
        });
        e.run_all();
        CHECK(log == "abcsj");
    }
}

WEFT_TEST("executor misuse: a sleep where there are no timers aborts by name") {
    const auto misuse = [] {
        plain_executor e;
        go(e, [] { sleep_for(1s); });
        e.run_all();
    };
    EXPECT_DEATH(misuse(), "a deadline on an executor that has no timers");
}
