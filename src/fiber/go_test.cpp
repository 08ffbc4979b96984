// go_test.cpp - starting fibers: order, callables of all sorts, exceptions, stacks.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/fiber/go.hpp>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <ranges>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <weft/exec/pool.hpp>
#include <weft/exec/post.hpp>
#include <weft/fiber/run.hpp>
#include <weft/stack/stack_cache.hpp>

#include "loops.hpp"
#include "pools.hpp"
#include "scarce_stacks.hpp"

using namespace weft;
using namespace std::chrono_literals;

MATRIX_TEST("go: fibers run in the order in which they became ready") {
    std::vector<int> out;
    spawn([&] {
        out.push_back(1);
        yield();
        out.push_back(2);
    });
    spawn([&] {
        out.push_back(3);
        yield();
        out.push_back(4);
    });
    run();
    CHECK((out == std::vector{1, 3, 2, 4}));
}

MATRIX_TEST("go: steps tell how many are alive") {
    std::vector<std::string> out;
    spawn([&] {
        out.push_back("foo");
        yield();
        out.push_back("bar");
    });
    spawn([&] { out.push_back("baz"); });
    for (const std::size_t alive : s.steps()) out.push_back(std::to_string(alive));
    CHECK((out == std::vector<std::string>{"foo", "2", "baz", "1", "bar", "0"}));
}

MATRIX_TEST("steps: fibers added meanwhile count, and they end when all who are left are stuck") {
    std::vector<std::size_t> alive;
    fiber_handle parked;
    spawn([&] {
        spawn([&] {
            parked = this_fiber::handle();
            park();
        });
        yield();
    });
    for (const std::size_t now : s.steps()) {
        alive.push_back(now);
        if (alive.size() == 1) spawn([] {});
    }
    CHECK((alive == std::vector<std::size_t>{2, 3, 2, 1}));
    CHECK(s.alive() == 1);
    unpark(parked);
    run();
}

MATRIX_TEST("steps: may be mixed with step and run, and a loop be used again") {
    std::string log;
    for (int round = 0; round < 2; ++round) {
        for (const char name : {'a', 'b'})
            spawn([&log, name] {
                for (int i = 0; i < 3; ++i) {
                    log += name;
                    yield();
                }
            });
        CHECK(s.step());
        for ([[maybe_unused]] const std::size_t alive : s.steps()) {
            CHECK(s.step());
            if (log.size() % 6 == 5) break;
        }
        run();
        CHECK(s.steps().begin() == s.steps().end());
    }
    CHECK(log == "abababababab");
}

WEFT_TEST("steps: are a view, for what the standard library makes of those") {
    static_assert(std::ranges::input_range<loop::step_range>);
    static_assert(std::ranges::view<loop::step_range>);
    loop s;
    std::string out;
    for (int i = 0; i < 3; ++i) go(s, [&out, i] { out += static_cast<char>('a' + i); });
    for (const std::string& alive :
         s.steps() | std::views::transform([](std::size_t n) { return std::to_string(n); }))
        out += alive;
    CHECK(out == "a2b1c0");
}

WEFT_TEST("steps: sleep while all wait, for a timer and for another thread") {
    loop s;
    std::vector<std::size_t> alive;
    go(s, [] { sleep_for(1ms); });
    for (const std::size_t now : s.steps()) alive.push_back(now);
    CHECK((alive == std::vector<std::size_t>{1, 0}));

    std::thread waker;
    go(s, [&] {
        waker = std::thread([me = this_fiber::handle()] { unpark(me); });
        park();
    });
    std::size_t last = 1;
    for (const std::size_t now : s.steps()) last = now;
    CHECK(last == 0);
    waker.join();
}

MATRIX_TEST("go: a yield with nothing else ready ends the step, and no switch is needed in run") {
    int steps = 0;
    spawn([&] {
        for (int i = 0; i < 3; ++i) {
            ++steps;
            yield();
        }
    });
    CHECK(s.step());
    CHECK(steps == 1);
    CHECK(s.step());
    CHECK(steps == 2);
    run();
    CHECK(steps == 3);
}

MATRIX_TEST("go: a fiber starts others on its own executor") {
    std::string log;
    spawn([&] {
        log += 'a';
        go(options(), [&] {
            log += 'c';
            go(options(), [&] { log += 'd'; });
        });
        log += 'b';
    });
    run();
    CHECK(log == "abcd");
}

MATRIX_TEST("go: callables that are move-only or large") {
    int sum = 0;
    spawn([&, one = std::make_unique<int>(1)] { sum += *one; });
    std::array<int, 4000> large{};
    large.fill(1);
    spawn([&, large] {
        for (const int i : large) sum += i;
    });
    run();
    CHECK(sum == 4001);
}

MATRIX_TEST("go: a callable that throws when it is moved starts nothing and loses nothing") {
    struct throws_when_moved {
        throws_when_moved() = default;
        throws_when_moved(const throws_when_moved&) { throw std::runtime_error("moved"); }
        void operator()() const {}
    };
    const throws_when_moved function;
    EXPECT_THROW(spawn(function), std::runtime_error);
    CHECK(s.alive() == 0);
    bool ran = false;
    spawn([&] { ran = true; });
    run();
    CHECK(ran);
}

MATRIX_TEST("go: the callable is destroyed when the fiber ends, on the fiber") {
    struct tells {
        std::string* log;
        bool* alive;
        ~tells() {
            if (log != nullptr) *log += this_fiber::get_id() ? "destroyed" : "elsewhere";
        }
        tells(std::string& l, bool& a) : log(&l), alive(&a) {}
        tells(tells&& other) noexcept
            : log(std::exchange(other.log, nullptr)), alive(other.alive) {}
        void operator()() const { *log += "ran "; }
    };
    std::string log;
    bool alive = true;
    spawn(tells(log, alive));
    run();
    CHECK(log == "ran destroyed");
}

MATRIX_TEST("go: hundreds at once, each yielding many times") {
    std::vector<int> counts(300);
    for (int& count : counts)
        spawn([&count] {
            for (int i = 0; i < 20; ++i) {
                ++count;
                yield();
            }
        });
    run();
    for (const int count : counts) CHECK(count == 20);
}

MATRIX_TEST("go: locals survive switches") {
    std::vector<bool> intact(20);
    for (std::size_t i = 0; i < intact.size(); ++i)
        spawn([&intact, i] {
            std::array<std::size_t, 64> mine{};
            double sum = static_cast<double>(i);
            for (std::size_t& one : mine) one = i * 3;
            for (int turn = 0; turn < 10; ++turn) {
                yield();
                sum *= 1.5;
            }
            bool same = sum > 0 || i == 0;
            for (const std::size_t one : mine) same = same && one == i * 3;
            intact[i] = same;
        });
    run();
    for (const bool one : intact) CHECK(one);
}

MATRIX_TEST("go: suspending in a catch block keeps each fiber's own exception") {
    std::vector<int> caught(8);
    for (int i = 0; i < 8; ++i)
        spawn([&caught, i] {
            try {
                throw i;
            } catch (const int&) {
                yield();
                try {
                    throw;
                } catch (const int& again) { caught[static_cast<std::size_t>(i)] = again; }
            }
        });
    run();
    for (int i = 0; i < 8; ++i) CHECK(caught[static_cast<std::size_t>(i)] == i);
}

MATRIX_TEST("go: names and ids") {
    std::string name;
    fiber_id first;
    fiber_id second;
    spawn({.name = "the first of them"}, [&] {
        name = this_fiber::name();
        first = this_fiber::get_id();
        yield();
        CHECK(first == this_fiber::get_id());
    });
    spawn([&] {
        second = this_fiber::get_id();
        CHECK(this_fiber::name() == "");
        CHECK(&this_fiber::executor() == &s);
    });
    run();
    CHECK(name == "the first of them");
    CHECK(first);
    CHECK(second);
    CHECK(first != second);
    CHECK(!this_fiber::get_id());
}

WEFT_TEST("go: an exception that leaves a fiber goes to the executor's handler") {
    std::vector<int> seen;
    loop s({.unhandled = [&](std::exception_ptr error, runnable&) {
        try {
            std::rethrow_exception(error);
        } catch (int i) { seen.push_back(i); }
    }});
    go(s, [] { throw 1; });
    go(s, [] {
        yield();
        throw 2;
    });
    go(s, [] { throw cancelled(cancel_reason::requested); });  // ends at the fiber's edge
    s.run();
    CHECK((seen == std::vector{1, 2}));
}

WEFT_TEST("go: an exception with no handler terminates at the throw") {
    weft_test::allow_threads_in_death_tests();
    const auto misuse = [] {
        loop s;
        go(s, {.name = "the thrower"}, [] {
            const struct speaks {
                ~speaks() { std::fputs("unwound", stderr); }
            } never;
            throw std::runtime_error("nobody's");
        });
        s.run();
    };
    EXPECT_DEATH(
        misuse(),
        "^weft: fiber 'the thrower' ended with an exception that nobody could take: nobody's\n"
        "terminate called after throwing(.|\n)*nobody's");
}

LOOP_TEST("go: one that never waits gives its stack to the next, and none keeps one") {
    const std::size_t before = weft_test::stacks_in_use();
    std::vector<const void*> stacks;
    for (int i = 0; i < 100; ++i)
        spawn([&] {
            const char local = 0;
            stacks.push_back(reinterpret_cast<const void*>(
                reinterpret_cast<std::uintptr_t>(&local) & ~std::uintptr_t{0xffff}));
        });
    CHECK(weft_test::stacks_in_use() == before);
    run();
    for (const void* one : stacks) CHECK(one == stacks.front());
}

LOOP_TEST("go: stacks come from the user's source, and go back there") {
    struct counting final : stack_source {
        stack take(std::size_t size) override {
            ++taken;
            return shared_stacks().take(size);
        }
        void give_back(stack used) noexcept override {
            ++given_back;
            shared_stacks().give_back(used);
        }
        int taken = 0;
        int given_back = 0;
    } source;
    for (int i = 0; i < 3; ++i) spawn({.stacks = &source}, [] { yield(); });
    run();
    CHECK(source.taken == 3);
    CHECK(source.given_back == 3);
}

LOOP_TEST("go: no stack for one means that it waits for the next that is given back") {
    weft_test::scarce_stacks source(2);
    int ended = 0;
    for (int i = 0; i < 10; ++i)
        spawn({.stacks = &source}, [&] {
            yield();
            ++ended;
        });
    run();
    CHECK(ended == 10);
}

WEFT_TEST("go: no stack at all is an exception for the handler, and the callable is destroyed") {
    struct none final : stack_source {
        stack take(std::size_t) override { throw std::bad_alloc(); }
        void give_back(stack) noexcept override {}
    } source;
    int errors = 0;
    auto held = std::make_shared<int>(1);
    loop s({.unhandled = [&](std::exception_ptr, runnable&) { ++errors; }});
    go(s, {.stacks = &source}, [held] { FAIL(); });
    s.run();
    CHECK(errors == 1);
    CHECK(held.use_count() == 1);
    CHECK(s.alive() == 0);
}

WEFT_TEST("go: from plain threads onto a running loop in stress") {
    const long each = weft_test::stress_count(200'000);
    loop s;
    s.add_work(1);
    long count = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < 2; ++t)
        threads.emplace_back([&] {
            for (long i = 0; i < each; ++i)
                go(s, [&] {
                    yield();
                    if (++count == 2 * each) s.add_work(-1);
                });
        });
    s.run();
    for (std::thread& one : threads) one.join();
    CHECK(count == 2 * each);
}

WEFT_TEST("run: a reference is returned as one, and a function may be good for one call only") {
    int value = 1;
    int& same = weft::run([&]() -> int& { return value; });
    CHECK(&same == &value);
    struct once {
        std::unique_ptr<int> operator()() && { return std::move(held); }
        std::unique_ptr<int> held;
    };
    CHECK(*weft::run(once{std::make_unique<int>(7)}) == 7);
}

WEFT_TEST("run: returns what the function returns, and throws what it throws") {
    CHECK(run([] { return 42; }) == 42);
    EXPECT_THROW(run([] { throw std::runtime_error("out"); }), std::runtime_error);
    bool stopped = false;
    run([&] {
        go([&] { stopped = !sleep_for(24h); });
        yield();
    });
    CHECK(stopped);
}

MATRIX_TEST("loop: the wake slot keeps order among the rest, and starves nobody") {
    loop slotted({.external_wakes = false, .wake_slot = true});
    bool third_ran = false;
    fiber_handle a;
    fiber_handle b;
    long turns = 0;
    const auto ping = [&](fiber_handle& me, fiber_handle& other) {
        return [&] {
            me = this_fiber::handle();
            yield();
            while (!third_ran) {
                ++turns;
                unpark(other);
                if (third_ran) break;
                park();
            }
            unpark(other);
        };
    };
    go(slotted, options(), ping(a, b));
    go(slotted, options(), ping(b, a));
    go(slotted, options(), [&] {
        yield();
        yield();
        third_ran = true;
    });
    slotted.run();
    CHECK(third_ran);
    CHECK(turns < 1000);
}

WEFT_TEST("go misuse: outside any executor it aborts by name") {
    EXPECT_DEATH(go([] {}), "called outside any executor, and none was named ..go");
}

// Off the fiber's stack as well as on it.
MATRIX_TEST("go: on the executor that it is called on, also where no fiber runs") {
    std::string log;
    post(s, [&] {
        go([&] { log += &this_fiber::executor() == &s ? 'p' : '?'; });
        fiber([&] { log += 'f'; }).detach();
    });
    spawn([&] {
        suspend([&](runnable* r) noexcept -> runnable* {
            go([&] { log += 's'; });
            return r;
        });
        log += 'a';
    });
    run();
    CHECK(log == "apfs");
}

POOL_TEST("go: in a callable posted to a pool it is on that pool") {
    std::atomic<int> ran = 0;
    post(p, [&] {
        go([&] {
            if (&this_fiber::executor() == &p) ++ran;
        });
    });
    p.drain();
    CHECK(ran == 1);
}

WEFT_TEST("go: in debug builds, who has not ended at the end of the program is reported") {
#if WEFT_CHECKS
    weft_test::allow_threads_in_death_tests();
    const auto leaves = [] {
        static auto* const never_destroyed = new loop;
        go(*never_destroyed, {.name = "forgotten"}, [] { static_cast<void>(park()); });
        never_destroyed->run_until_blocked();
        std::exit(0);
    };
    EXPECT_EXIT(leaves(), testing::ExitedWithCode(0),
                "at the end of the program these have not ended:\n  fiber forgotten: .*started at");
#endif
}

WEFT_TEST("go: a size of stack that makes no sense is refused, and nothing is started") {
    loop s;
    for (const std::size_t size : {std::size_t{1}, std::size_t{4095}, SIZE_MAX})
        EXPECT_THROW(go(s, {.stack_size = size}, [] { FAIL(); }), std::invalid_argument);
    s.run();
}

WEFT_TEST("go: fibers of a loop and of a pool are on stacks of the source that it was given") {
    class counting final : public stack_source {
    public:
        stack take(std::size_t size) override { return ++taken, shared_stacks().take(size); }
        void give_back(stack s) noexcept override {
            --taken, ++given, shared_stacks().give_back(s);
        }
        std::atomic<int> taken = 0;
        std::atomic<int> given = 0;
    } source;
    int inside = 0;
    {
        loop s({.stacks = &source});
        go(s, [&] { inside = source.taken; });
        go(s, {.kind = stack_kind::swapped}, [&] { inside += source.taken; });
        s.run();
    }
    CHECK(inside >= 2);
    {
        pool p({.workers = 1, .stacks = &source});
        go(p, [&] { inside = source.taken; });
        p.drain();
    }
    CHECK(inside == 1);
    CHECK(source.taken == 0);
    CHECK(source.given >= 3);
}
