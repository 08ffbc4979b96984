// cancel_test.cpp - asking fibers to stop: scopes, shields, tokens; the end of a loop; who is
// stuck.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/fiber/fiber.hpp>

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <weft/fiber/cancel.hpp>
#include <weft/fiber/dump.hpp>
#include <weft/fiber/fiber_local.hpp>

#include <weft/exec/pool.hpp>

#include "loops.hpp"
#include "test_points.hpp"

using namespace weft;
using namespace std::chrono_literals;

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

WEFT_TEST("loop misuse: of many who can never end the first hundred are listed") {
    const auto misuse = [] {
        static constexpr wait_reason deaf{"waits for nobody", false};
        loop s({.external_wakes = false});
        for (int i = 0; i < 102; ++i)
            go(s, [] { wait(deaf, no_deadline, [](waiter&) noexcept { return true; }); });
        s.run_until_blocked();
    };
    EXPECT_DEATH(misuse(), "waits for nobody(.|\n)*\nand 2 more\n");
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
    CHECK(report.text().find("cancel_test.cpp:") != std::string::npos);
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

namespace {

// Opens so many scopes, one inside the other, takes the token of each, and waits in the last.
void wait_inside(int scopes, std::vector<std::stop_token>& tokens) {
    if (scopes == 0) return static_cast<void>(park());
    const cancel_scope scope;
    tokens.push_back(get_stop_token());
    wait_inside(scopes - 1, tokens);
}

}  // namespace

WEFT_TEST("cancel: however many scopes are cancelled at once, each tells its token") {
    constexpr int scopes = 30;
    loop s({.external_wakes = false});
    std::vector<std::stop_token> tokens;
    fiber f(s, [&] {
        tokens.push_back(get_stop_token());
        wait_inside(scopes, tokens);
    });
    s.run_until_blocked();
    REQUIRE(tokens.size() == scopes + 1);
    f.request_stop();
    for (const std::stop_token& one : tokens) CHECK(one.stop_requested());
    s.run();
    f.detach();
}

WEFT_TEST("loop: at its end each of those that wait is asked to stop, once") {
    std::deque<fiber_handle> parked;
    int ended = 0;
    {
        loop s({.external_wakes = false});
        for (int i = 0; i < 6; ++i)
            go(s, [&] {
                parked.push_back(this_fiber::handle());
                const std::stop_callback told(get_stop_token(), [&ended] { ++ended; });
                static_cast<void>(park());
                ++ended;
            });
        s.run_until_blocked();
        parked.clear();
    }
    CHECK(ended == 12);
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
    CHECK(all.find("cancel_test.cpp:" + line) != std::string::npos);
    f.request_stop();
    s.run();
    f.detach();
}

WEFT_TEST("cancel: a shutdown reaches one that runs and has never waited") {
    std::atomic<int> running = 0;
    {
        pool p({.workers = 2});
        go(p, [&] {
            ++running;
            while (!this_fiber::stop_requested()) {}
        });
        go(p, [&] {
            const std::stop_token stop = this_fiber::get_stop_token();
            ++running;
            while (!stop.stop_requested()) {}
        });
        while (running != 2) std::this_thread::yield();
    }
    CHECK(running == 2);
}

// It begins its waits by plain stores: whoever cancels it passes a barrier, if need be.
WEFT_TEST("cancel: stress, a thread finds one of a loop whenever it is about to wait") {
    const weft_test::with_test_points here;
    const long rounds = weft_test::stress_count(200'000);
    loop s;
    std::atomic<cancel_scope*> offered = nullptr;
    long heard = 0;
    go(s, [&] {
        for (long round = 0; round < rounds; ++round) {
            cancel_scope scope;
            offered = &scope;
            for (bool permit = round % 2 == 0; park(); permit = !permit)
                if (permit) unpark(this_fiber::handle());
            while (offered.load() != nullptr) yield();
            ++heard;
        }
    });
    std::thread canceller([&] {
        for (long round = 0; round < rounds; ++round) {
            while (offered.load() == nullptr) std::this_thread::yield();
            offered.load()->cancel();
            offered = nullptr;
        }
    });
    s.run();
    canceller.join();
    CHECK(heard == rounds);
}
