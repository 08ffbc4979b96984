// inside_coroutine_test.cpp - fibers of every kind that wait inside coroutines of every kind.
//
// A fiber that waits there is saved on the coroutine's stack. What a swapped one has on the shared
// stack is copied all the same, down to where it resumed the coroutine.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/coroutine/fiber_context.hpp>
#include <weft/coroutine/generator.hpp>
#include <weft/sync/event.hpp>
#include <weft/sync/mutex.hpp>

#include <alloca.h>

#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "crowd.hpp"
#include "exception_support.hpp"

using namespace weft;
using namespace weft_test;

namespace {

// Calls f with that many more bytes on the stack; tells whether they are still there afterwards.
template <class F>
[[gnu::noinline]] bool holding(std::size_t bytes, unsigned char pattern, const F& f) {
    auto* const room = static_cast<unsigned char*>(::alloca(bytes));
    std::memset(room, pattern, bytes);
    asm volatile("" : : "r"(room) : "memory");
    f();
    for (std::size_t i = 0; i < bytes; ++i) {
        if (room[i] != pattern) return false;
    }
    return true;
}

// test.operator()<Coroutine>() for each kind whose waits are the fiber's. (A thread_coroutine runs
// on another thread, which is no fiber.)
template <class Test>
void for_each_kind(const Test& test) {
    test.template operator()<coroutine>();
    test.template operator()<ucontext_coroutine>();
    test.template operator()<swapped_coroutine>();
}

constexpr int fibers = 4;

// What each of several fibers needs for its coroutines, off their stacks.
template <class Coroutine>
using fixtures = std::vector<std::unique_ptr<backend_fixture<Coroutine>>>;

template <class Coroutine>
fixtures<Coroutine> make_fixtures() {
    fixtures<Coroutine> made;
    for (int i = 0; i < fibers; ++i) made.push_back(std::make_unique<backend_fixture<Coroutine>>());
    return made;
}

// Waits in the fiber, in the coroutine, and again, with bytes held on both stacks.
template <class Coroutine>
bool alternate(backend_fixture<Coroutine>& options, unsigned char mine) {
    bool inside = false;
    const bool outside = holding(100U + 40U * mine, mine, [&] {
        Coroutine c(options(), [&inside, mine] {
            inside = holding(300, static_cast<unsigned char>(mine + 100), [] {
                weft::yield();
                this_coroutine::yield();
                weft::yield();
                weft::yield();
            });
        });
        c.resume();
        weft::yield();
        c.resume();
    });
    return outside && inside;
}

}  // namespace

MATRIX_TEST("inside a coroutine: a fiber waits, and its locals on both stacks stay whole") {
    for_each_kind([this]<class Coroutine>() {
        auto options = make_fixtures<Coroutine>();
        int right = 0;
        for (int i = 0; i < fibers; ++i)
            spawn([&right, &mine = *options[static_cast<std::size_t>(i)], i] {
                right += alternate(mine, static_cast<unsigned char>(i + 1));
            });
        run();
        CHECK(right == fibers);
    });
}

MATRIX_TEST("inside a coroutine: one inside of another, of every two kinds") {
    for_each_kind([this]<class Outer>() {
        for_each_kind([this]<class Inner>() {
            auto outer_options = make_fixtures<Outer>();
            auto inner_options = make_fixtures<Inner>();
            int right = 0;
            for (std::size_t i = 0; i < fibers; ++i)
                spawn([&, i] {
                    const auto mark = static_cast<unsigned char>(i + 1);
                    bool kept = false;
                    const bool outside = holding(200 * mark, mark, [&] {
                        Outer c((*outer_options[i])(), [&] {
                            weft::yield();
                            bool inner_kept = false;
                            kept = holding(
                                100, 77, [&] { inner_kept = alternate(*inner_options[i], mark); });
                            kept = kept && inner_kept;
                            weft::yield();
                        });
                        c.resume();
                    });
                    right += outside && kept;
                });
            run();
            CHECK(right == fibers);
        });
    });
}

MATRIX_TEST("inside a coroutine: two on one shared stack, of which the inner one waits") {
    auto options = make_fixtures<swapped_coroutine>();
    int right = 0;
    for (std::size_t i = 0; i < fibers; ++i)
        spawn([&, i] {
            const auto mark = static_cast<unsigned char>(i + 1);
            bool kept = false;
            const bool outside = holding(64 * mark, mark, [&] {
                swapped_coroutine c((*options[i])(), [&, i] {
                    // What the inner one writes lies elsewhere: this one is parked meanwhile.
                    const auto inside = std::make_unique<bool>();
                    const bool mine = holding(150, 9, [&, i, at = inside.get()] {
                        swapped_coroutine d((*options[i])(),
                                            [at] { *at = holding(250, 8, [] { weft::yield(); }); });
                        d.resume();
                    });
                    kept = mine && *inside;
                });
                c.resume();
            });
            right += outside && kept;
        });
    run();
    CHECK(right == fibers);
}

MATRIX_TEST("inside a generator: it waits before every value") {
    int sums[fibers] = {};
    for (int i = 0; i < fibers; ++i)
        spawn([&sum = sums[i], i] {
            volatile int total = 0;
            generator<int> numbers([i](auto& yield_value) {
                for (int n = 0; n <= 10 * i; ++n) {
                    weft::yield();
                    yield_value(n);
                }
            });
            for (const int n : numbers) {
                weft::yield();
                total = total + n;
            }
            sum = total;
        });
    run();
    for (int i = 0; i < fibers; ++i) CHECK(sums[i] == 10 * i * (10 * i + 1) / 2);
}

MATRIX_TEST("inside a coroutine: what it throws after a wait reaches the fiber") {
    for_each_kind([this]<class Coroutine>() {
        auto options = make_fixtures<Coroutine>();
        int caught = 0;
        for (std::size_t i = 0; i < fibers; ++i)
            spawn([&, i] {
                const int mine = static_cast<int>(i);
                Coroutine c((*options[i])(), [mine] {
                    try {
                        throw problem{mine};
                    } catch (const problem&) {
                        weft::yield();  // others throw and catch meanwhile
                        throw;
                    }
                });
                try {
                    c.resume();
                } catch (const problem& p) {
                    weft::yield();
                    caught += p.number == mine && std::uncaught_exceptions() == 0;
                }
            });
        run();
        CHECK(caught == fibers);
    });
}

MATRIX_TEST("inside a coroutine: a fiber that is stopped there unwinds both stacks") {
    for_each_kind([this]<class Coroutine>() {
        backend_fixture<Coroutine> options;
        std::string log;
        event never;
        fiber f(s, this->options(), [&] {
            const at_exit outside{[&] { log += 'f'; }};
            Coroutine c(options(), [&] {
                const at_exit inside{[&] { log += 'c'; }};
                never.wait();
                log += '!';
            });
            c.resume();
            log += '!';
        });
        spawn([] { weft::yield(); });
        run_until_blocked();
        CHECK(log.empty());
        f.request_stop();
        run();
        CHECK(log == "cf");
        f.join();
    });
}

MATRIX_TEST("inside a coroutine: it waits while the coroutine is unwound") {
    for_each_kind([this]<class Coroutine>() {
        auto options = make_fixtures<Coroutine>();
        std::string log;
        for (std::size_t i = 0; i < 2; ++i)
            spawn([&, i] {
                const bool kept = holding(128, static_cast<unsigned char>(i), [&] {
                    Coroutine c((*options[i])(), [&log] {
                        const at_exit inside{[&log] {
                            log += '1';
                            weft::yield();
                            log += '2';
                        }};
                        this_coroutine::yield();
                    });
                    c.resume();
                });
                log += kept ? 'k' : '!';
            });
        run();
        CHECK(log == "112k2k");
    });
}

MATRIX_TEST("inside a coroutine: it is handed from fiber to fiber, each waits in it") {
    for_each_kind([this]<class Coroutine>() {
        backend_fixture<Coroutine> options;
        std::vector<fiber_id> seen;
        Coroutine c(options(), [&seen] {
            for (int i = 0; i < fibers; ++i) {
                weft::yield();
                seen.push_back(this_fiber::get_id());
                this_coroutine::yield();
            }
        });
        std::vector<fiber_id> expected;
        weft::mutex one_at_a_time;
        int right = 0;
        for (int i = 0; i < fibers; ++i)
            spawn([&, i] {
                right += holding(80, static_cast<unsigned char>(i), [&] {
                    const std::lock_guard lock(one_at_a_time);
                    expected.push_back(this_fiber::get_id());
                    c.resume();
                });
            });
        run();
        CHECK(right == fibers);
        CHECK(seen == expected);
    });
}

MATRIX_TEST("inside a coroutine: a loop that is idle there waits as the fiber does") {
    for_each_kind([this]<class Coroutine>() {
        backend_fixture<Coroutine> options;
        loop outer;  // one that others may wake, as they may the inner one
        event enough;
        std::string log;
        go(outer, this->options(), [&] {
            const bool kept = holding(500, 3, [&] {
                Coroutine c(options(), [&] {
                    const auto inner = std::make_unique<loop>();
                    go(*inner, [&] {
                        log += 'w';
                        enough.wait();
                        log += 'x';
                    });
                    inner->run();
                });
                c.resume();
            });
            log += kept ? 'k' : '!';
        });
        go(outer, this->options(), [&] {
            log += 'o';
            enough.set();
        });
        outer.run();
        CHECK(log == "woxk");
    });
}

LOOP_TEST("inside a coroutine: resumed by another while a fiber waits in it, it aborts") {
    const auto resume_it = [](stack_kind kind) {
        loop s;
        coroutine c([] { weft::yield(); });
        go(s, {.kind = kind}, [&] { c.resume(); });
        go(s, {.kind = kind}, [&] { c.resume(); });
        s.run();
    };
    EXPECT_DEATH(resume_it(stack_kind::own), "coroutine: resumed while it is running");
    EXPECT_DEATH(resume_it(stack_kind::swapped), "coroutine: resumed while it is running");
}

LOOP_TEST("inside a coroutine: its shared stack is taken while a fiber waits on it") {
    const auto use_it = [](stack_kind kind) {
        loop s;
        shared_stack shared;
        swapped_coroutine c({.shared = &shared}, [] { weft::yield(); });
        swapped_coroutine d({.shared = &shared}, [] {});
        go(s, {.kind = kind}, [&] { c.resume(); });
        go(s, {.kind = kind}, [&] { d.resume(); });
        s.run();
    };
    EXPECT_DEATH(use_it(stack_kind::own), "in the middle of a call to a different stack");
    EXPECT_DEATH(use_it(stack_kind::swapped), "in the middle of a call to a different stack");
}

LOOP_TEST("inside a coroutine: a swapped fiber that waits in a fiber_context aborts by name") {
    const auto wait_inside = [] {
        loop s;
        go(s, {.kind = stack_kind::swapped}, [] {
            fiber_context f([](fiber_context&& resumer) {
                weft::yield();
                return std::move(resumer);
            });
            f = std::move(f).resume();
        });
        go(s, [] {});
        s.run();
    };
    EXPECT_DEATH(wait_inside(), "swapped: it waits on another stack than its own");
}

MATRIX_TEST("inside a coroutine: one on a thread of its own waits as that thread") {
    event there;
    std::thread other;
    bool outside = false;
    bool is_a_fiber = true;
    spawn([&] {
        outside = holding(100, 5, [&] {
            thread_coroutine c([&] {
                is_a_fiber = static_cast<bool>(this_fiber::get_id());
                other = std::thread([&] { there.set(); });
                there.wait();
            });
            c.resume();
        });
    });
    run();
    other.join();
    CHECK(outside);
    CHECK(!is_a_fiber);
}

CROWD_TEST("inside a coroutine: stress, a lock that is waited for at every depth") {
    const with_test_points points;
    for_each_kind([this]<class Coroutine>() {
        weft::mutex m;
        int value = 0;
        std::atomic<int> wrong = 0;
        const long count = rounds(5000);
        std::vector<backend_fixture<Coroutine>> options(6);
        crowd(6, [&](int i) {
            const auto add = [&] {
                const std::lock_guard lock(m);
                const int before = value;
                yield_or_pass();
                value = before + 1;
            };
            const bool kept = holding(100U * static_cast<unsigned>(i + 1), 0x5a, [&] {
                Coroutine c(options[static_cast<std::size_t>(i)](), [&] {
                    for (long round = 0; round < count; ++round) {
                        add();
                        this_coroutine::yield();
                    }
                });
                while (!c.done()) {
                    c.resume();
                    add();
                }
            });
            wrong += !kept;
        });
        CHECK(value == 6 * (2 * count + 1));
        CHECK(wrong == 0);
    });
}
