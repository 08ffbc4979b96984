// fiber_test.cpp - the handle: joining, stopping, detaching.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/fiber/fiber.hpp>

#include <deque>
#include <expected>
#include <functional>
#include <memory>
#include <mutex>
#include <sstream>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include <weft/fiber/cancel.hpp>
#include <weft/fiber/dump.hpp>
#include <weft/fiber/fiber_local.hpp>
#include <weft/fiber/run.hpp>

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

LOOP_TEST("fiber: one with arguments says where it was started, as one without does") {
    const auto parks = [](auto...) { static_cast<void>(park()); };
    const fiber_options named{.name = "named"};
    fiber none, one, two, three, of_name, of_name_and_one, of_name_and_two, of_name_and_three;
    const unsigned first = __LINE__ + 2;
    go(s, [&] {
        none = fiber(parks);
        one = fiber(parks, 1);
        two = fiber(parks, 1, 2);
        three = fiber(parks, 1, 2, 3);
        of_name = fiber(named, parks);
        of_name_and_one = fiber(named, parks, 1);
        of_name_and_two = fiber(named, parks, 1, 2);
        of_name_and_three = fiber({.name = "braces"}, parks, 1, 2, 3);
    });
    run_until_blocked();
    const stuck_report report = s.run();
    REQUIRE(report.waiters.size() == 8);
    for (unsigned i = 0; i < 8; ++i)
        EXPECT_TRUE(report.waiters[i].ends_with("fiber_test.cpp:" + std::to_string(first + i)))
            << report.waiters[i];
    for (fiber* f : {&none, &one, &two, &three, &of_name, &of_name_and_one, &of_name_and_two,
                     &of_name_and_three})
        f->request_stop(), f->detach();
    run();
}

MATRIX_TEST("fiber: four arguments and more, without an executor") {
    std::string got;
    const auto joins = [&got](int a, int b, int c, const std::string& d, std::unique_ptr<int> e) {
        got += std::to_string(a + b + c + *e) + d;
    };
    spawn([&] {
        fiber(options(), joins, 1, 2, 3, "x", std::make_unique<int>(4)).join();
        fiber(joins, 1, 2, 3, "y", std::make_unique<int>(5)).join();
    });
    run();
    CHECK(got == "10x11y");
}

WEFT_TEST("fiber: its stop token is the fiber's own, and its handles are swapped") {
    loop s;
    std::stop_token inside;
    fiber f(s, [&](std::stop_token given) { inside = std::move(given); });
    const std::stop_token outside = f.get_stop_token();
    CHECK(!outside.stop_requested());
    s.run();
    CHECK(inside == outside);
    fiber other;
    CHECK(!other.get_stop_token().stop_possible());
    swap(f, other);
    CHECK(!f.joinable());
    CHECK(other.request_stop());
    CHECK(outside.stop_requested());
    CHECK(other.get_stop_token().stop_requested());
    std::ostringstream text;
    const fiber::id empty;
    text << empty << other.get_id();
    CHECK(!text.str().empty());
    other.join();
}

MATRIX_TEST("fiber: request_stop says whether it had been asked, whatever scope it is in") {
    std::unique_ptr<cancel_scope> scope;
    fiber f(s, options(), [&] {
        scope = std::make_unique<cancel_scope>();
        scope->cancel();
        CHECK(!sleep_for(1h));  // the scope was cancelled, the fiber was not asked
        yield();
        scope.reset();
        scope = std::make_unique<cancel_scope>(cancel_scope::shield::yes);
        while (sleep_for(1ms)) {}
        scope.reset();
    });
    s.step();
    CHECK(f.request_stop());
    run_until_blocked();
    CHECK(!f.request_stop());  // it does not notice, but it was asked
    scope->cancel();
    run();
    CHECK(!f.request_stop());
    f.detach();
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

MATRIX_TEST("fiber: assigned to while it can be joined, it stops and joins what it had") {
    std::string log;
    spawn([&] {
        fiber a(options(), [&] { log += park() ? 'p' : 's'; });
        fiber b(options(), [&] { log += 'b'; });
        yield();
        a = std::move(b);
        log += 'm';
        CHECK(a.joinable() && !b.joinable());
        a.join();
        a = fiber(options(), [&] { log += 'n'; });
        a.join();
    });
    run();
    CHECK(log == "bsmn");
}

MATRIX_TEST("fiber: moved to itself it stays what it is") {
    bool ended = false;
    spawn([&] {
        fiber a(options(), [&] { ended = park().has_value(); });
        fiber& same = a;
        a = std::move(same);
        CHECK(a.joinable());
        unpark(a.handle());
        a.join();
    });
    run();
    CHECK(ended);
}

MATRIX_TEST("fiber: detached it is not asked to stop, and runs on alone") {
    std::string log;
    spawn([&] {
        {
            fiber a(options(), [&] { log += sleep_for(1ms) ? 'e' : 's'; });
            yield();
            a.detach();
            CHECK(!a.joinable() && !a.get_id());
        }
        log += 'd';
    });
    run_until_blocked();
    CHECK(log == "d");
    advance(1ms);
    CHECK(log == "de");
}

MATRIX_TEST("fiber: a callable that throws when it is moved starts nothing") {
    struct throws {
        throws() = default;
        throws(throws&&) { throw std::runtime_error("moved"); }
        void operator()() const {}
    };
    EXPECT_THROW(fiber(s, options(), throws()), std::runtime_error);
    spawn([&] {
        EXPECT_THROW(fiber(options(), throws()), std::runtime_error);
        EXPECT_THROW(fiber([](const throws&) {}, throws()), std::runtime_error);
    });
    CHECK(s.alive() == 1);
    run();
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
    const auto ends_with_its_handle = [] {
        loop s;
        auto f = std::make_shared<fiber>();
        *f = fiber(s, [f] {});
        f.reset();
        s.run();
    };
    EXPECT_DEATH(ends_with_its_handle(), "~fiber: a fiber cannot join itself");
}

WEFT_TEST("fiber: an exception of one that nobody joined names it when it terminates") {
    weft_test::allow_threads_in_death_tests();
    const auto destroyed = [] {
        loop s({.external_wakes = false});
        fiber f(s, {.name = "the unlucky"}, [] { throw std::runtime_error("its what"); });
        s.run();
    };
    EXPECT_DEATH(destroyed(),
                 "^weft: fiber 'the unlucky' ended with an exception that nobody could take: its "
                 "what\nterminate called");
    const auto detached = [] {
        loop s({.external_wakes = false});
        go(s, {.name = "another"}, [&s] {
            fiber f(s, {.name = "the lost"}, [] { throw 7; });
            yield();
            f.detach();
        });
        s.run();
    };
    EXPECT_DEATH(detached(),
                 "^weft: fiber 'the lost' ended with an exception that nobody could take\nterm");
}

WEFT_TEST("fiber: the error of a value() that nobody took is named when it terminates") {
    weft_test::allow_threads_in_death_tests();
    using failed = std::expected<int, std::error_code>;
    const auto wrong = [] {
        return failed(std::unexpect, std::make_error_code(std::errc::address_in_use)).value();
    };
    const auto in_a_fiber = [&] {
        loop s({.external_wakes = false});
        go(s, {.name = "server"}, [&] { wrong(); });
        s.run();
    };
    EXPECT_DEATH(in_a_fiber(), "weft: fiber 'server' ended with .* take: Address already in use");
    const auto out_of_run = [&] { std::thread([&] { run([&] { wrong(); }); }).join(); };
    EXPECT_DEATH(out_of_run(),
                 "weft: value.. of a result that is an error, which nobody took: "
                 "Address already in use\nterminate called");
}
