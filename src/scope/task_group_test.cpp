// task_group_test.cpp - groups on a loop: results, failures, cancellation, ends; in exact order.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/scope/task_group.hpp>

#include <algorithm>
#include <cstddef>
#include <new>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include <weft/scope/deadline.hpp>

#include "loops.hpp"
#include "pools.hpp"

using namespace weft;
using namespace std::chrono_literals;

namespace {

// Swapped fibers may open one, too, for what the children share lies in the test's own frame.
constexpr task_group_options apart{.shares_locals = false};

task_group_options of(stack_kind kind, task_group_options options = apart) {
    options.fiber.kind = kind;
    return options;
}

}  // namespace

MATRIX_TEST("task_group: next gives the results in the order in which children end") {
    std::string log;
    spawn([&] {
        with_task_group<char>(of(kind), [&](task_group<char>& g) {
            g.add([] { return sleep_for(3ms), 'a'; });
            g.add([] { return sleep_for(1ms), 'b'; });
            g.add([] { return sleep_for(2ms), 'c'; });
            CHECK(g.size() == 3);
            while (g.size() != 0) log += g.next();
        });
        log += '.';
    });
    run_until_blocked();
    for (int i = 0; i < 3; ++i) advance(1ms);
    CHECK(log == "bca.");
}

MATRIX_TEST("task_group: what is left when the function returns is cancelled and waited for") {
    std::string log;
    spawn([&] {
        const int first = with_task_group<int>(of(kind), [&](task_group<int>& g) {
            g.add([&] { return 7; });
            g.add([&] {
                log += sleep_for(1h) ? 's' : 'c';
                log += this_fiber::stop_reason() == cancel_reason::parent_left ? 'l' : '?';
                yield();
                log += 'e';
                return 8;
            });
            return g.next();
        });
        log += static_cast<char>('0' + first);
    });
    run();
    CHECK(log == "cle7");
}

MATRIX_TEST("task_group: the first exception cancels the others, and comes out of next") {
    std::string log;
    spawn([&] {
        try {
            with_task_group<int>(of(kind), [&](task_group<int>& g) {
                g.add([&]() -> int {
                    log += sleep_for(1h) ? 's' : 'c';
                    log += this_fiber::stop_reason() == cancel_reason::failed ? 'f' : '?';
                    throw std::logic_error("later");
                });
                g.add([&]() -> int { throw std::runtime_error("first"); });
                g.next();
            });
        } catch (const std::runtime_error& e) { log += e.what(); }
    });
    run();
    CHECK(log == "cffirst");
}

MATRIX_TEST("task_group: an exception wakes the function that waits for something else") {
    std::string log;
    spawn([&] {
        try {
            with_task_group<void>(of(kind), [&](task_group<void>& g) {
                g.add([] { throw std::runtime_error("first"); });
                log += sleep_for(1h) ? 's' : 'c';
            });
        } catch (const std::runtime_error& e) { log += e.what(); }
        log += sleep_for(0s) ? 's' : 'c';  // it was the group's alone
    });
    run();
    CHECK(log == "cfirsts");
}

MATRIX_TEST("task_group: wait throws the first of two, and the second can be reached") {
    std::string log;
    spawn([&] {
        with_task_group<void>(of(kind), [&](task_group<void>& g) {
            g.add([] { throw std::runtime_error("one"); });
            g.add([] { throw std::runtime_error("two"); });
            try {
                g.wait();
            } catch (const std::runtime_error& e) { log += e.what(); }
            CHECK(g.failures() == 2);
            while (g.size() != 0) {
                const task_result<void> one = g.next_result();
                log += static_cast<char>('0' + one.index);
                try {
                    std::rethrow_exception(one.value.error());
                } catch (const std::runtime_error& e) { log += e.what(); }
            }
        });
    });
    run();
    CHECK(log == "one0one1two");
}

MATRIX_TEST("task_group: one that collects goes on after an exception") {
    std::string log;
    spawn([&] {
        auto options = of(kind);
        options.collect = true;
        with_task_group<int>(options, [&](task_group<int>& g) {
            g.add([]() -> int { throw std::runtime_error("x"); });
            g.add([] { return sleep_for(1ms) ? 1 : 2; });
            g.wait();
            while (g.size() != 0) {
                const task_result<int> one = g.next_result();
                log += static_cast<char>('0' + one.index);
                log += one.value ? static_cast<char>('0' + *one.value) : 'x';
            }
        });
    });
    run_until_blocked();
    advance(1ms);
    CHECK(log == "0x11");
}

MATRIX_TEST("task_group: an exception that nobody took comes out of it, collected or not") {
    int caught = 0;
    spawn([&] {
        for (const bool collect : {false, true}) {
            auto options = of(kind);
            options.collect = collect;
            try {
                with_task_group<void>(options, [&](task_group<void>& g) {
                    g.add([] { throw 1; });
                    yield();
                });
            } catch (int) { ++caught; }
        }
    });
    run();
    CHECK(caught == 2);
}

MATRIX_TEST("task_group: a function that throws cancels the children and waits for them") {
    std::string log;
    spawn([&] {
        try {
            with_task_group<void>(of(kind), [&](task_group<void>& g) {
                g.add([&] {
                    log += park() ? 'p' : 'c';
                    yield();
                    log += 'e';
                });
                yield();
                throw std::runtime_error("body");
            });
        } catch (const std::runtime_error& e) { log += e.what(); }
    });
    run();
    CHECK(log == "cebody");
}

MATRIX_TEST("task_group: cancellation goes down the tree, through groups inside groups") {
    std::string log;
    fiber f(s, options(), [&] {
        with_task_group<void>(of(kind), [&](task_group<void>& g) {
            g.add([&] {
                with_task_group<void>(of(kind), [&](task_group<void>& inner) {
                    inner.add([&] { log += park() ? 'p' : 'i'; });
                    inner.add([&] {
                        shield([&] { log += sleep_for(1ms) ? 's' : 'i'; });
                        log += park() ? 'p' : 'k';
                    });
                    try {
                        inner.wait();
                    } catch (const cancelled& c) {
                        log += c.reason() == cancel_reason::requested ? 'r' : '?';
                    }
                });
                log += 'o';
            });
            g.wait();
        });
        log += "never";
    });
    run_until_blocked();
    f.request_stop();
    run_until_blocked();
    advance(1ms);
    run();
    CHECK(log == "risko" || log == "irsko");
    f.detach();
}

MATRIX_TEST("task_group: cancel stops the children, and results that are there stay") {
    std::string log;
    spawn([&] {
        with_task_group<int>(of(kind), [&](task_group<int>& g) {
            g.add([] { return 5; });
            g.add([]() -> int {
                park();
                this_fiber::throw_if_cancelled();
                return 6;
            });
            yield();
            g.cancel();
            g.wait();  // which is not cancelled itself
            g.add([&] { return this_fiber::stop_requested() ? 1 : 2; });
            log += std::to_string(g.next());
            try {
                g.next();
            } catch (const cancelled&) { log += 'c'; }
            log += std::to_string(g.next());
        });
    });
    run();
    CHECK(log == "5c1");
}

MATRIX_TEST("task_group: a bounded one has at most so many at once") {
    int running = 0;
    int most = 0;
    int done = 0;
    spawn([&] {
        auto options = of(kind);
        options.limit = 3;
        options.discard = true;
        with_task_group<void>(options, [&](task_group<void>& g) {
            for (int i = 0; i < 10; ++i)
                g.add([&] {
                    most = std::max(most, ++running);
                    yield();
                    --running;
                    ++done;
                });
            g.wait();
            CHECK(g.size() == 0);
        });
    });
    run();
    CHECK(most == 3);
    CHECK(done == 10);
}

MATRIX_TEST("task_group: add waits no more once the group has failed") {
    std::string log;
    spawn([&] {
        auto options = of(kind);
        options.limit = 1;
        try {
            with_task_group<void>(options, [&](task_group<void>& g) {
                g.add([] { throw std::runtime_error("x"); });
                for (int i = 0; i < 100; ++i) g.add([&] { log += park() ? 'p' : 'c'; });
                log += "never";
            });
        } catch (const std::runtime_error& e) { log += e.what(); }
    });
    run();
    CHECK(log.size() < 4);
    CHECK(log.ends_with("x"));
}

MATRIX_TEST("task_group: children add children") {
    int leaves = 0;
    spawn([&] {
        with_task_group<void>(of(kind), [&](task_group<void>& g) {
            for (int i = 0; i < 4; ++i)
                g.add([&] {
                    for (int j = 0; j < 4; ++j) g.add([&] { ++leaves; });
                });
            g.wait();
        });
    });
    run();
    CHECK(leaves == 16);
}

LOOP_TEST("task_group: what a callable holds is gone before its parent goes on") {
    struct holds {
        int* count;
        explicit holds(int& c) : count(&c) { ++c; }
        holds(const holds& other) : count(other.count) { ++*count; }
        ~holds() { --*count; }
    };
    spawn([&] {
        int alive = 0;
        with_task_group<void>([&](task_group<void>& g) {
            for (int i = 0; i < 5; ++i) g.add([held = holds(alive)] { yield(); });
            g.wait();
            CHECK(alive == 0);
        });
    });
    run();
}

LOOP_TEST("task_group: one whose results can only be moved") {
    spawn([&] {
        const auto got = with_task_group<std::unique_ptr<int>>([](auto& g) {
            g.add([p = std::make_unique<int>(3)]() mutable { return std::move(p); });
            return g.next();
        });
        CHECK(*got == 3);
    });
    run();
}

WEFT_TEST("task_group: a plain thread may open one, if it names an executor") {
    pool p({.workers = 2});
    const int sum = with_task_group<int>({.home = &p}, [](task_group<int>& g) {
        for (int i = 1; i <= 10; ++i) g.add([i] { return yield(), i; });
        int all = 0;
        while (g.size() != 0) all += g.next();
        return all;
    });
    CHECK(sum == 55);
}

WEFT_TEST("task_group misuse: next on an empty group, locals of a swapped fiber, no executor") {
    const auto empty = [] {
        loop s;
        go(s, [] { with_task_group<int>([](task_group<int>& g) { g.next(); }); });
        s.run();
    };
    EXPECT_DEATH(empty(), "task_group::next: the group is empty");
    const auto swapped = [] {
        loop s;
        go(s, {.kind = stack_kind::swapped}, [] { with_task_group<int>([](auto&) {}); });
        s.run();
    };
    EXPECT_DEATH(swapped(), "a swapped fiber's locals cannot be shared with its children");
    EXPECT_DEATH(with_task_group<int>([](auto&) {}), "with_task_group");
}

WEFT_TEST("task_group misuse: two fibers that wait for one group abort by name") {
    const auto both = [](auto wait_for) {
        loop s;
        go(s, [wait_for] {
            with_task_group<int>([wait_for](task_group<int>& g) {
                g.add([] {
                    static_cast<void>(park());
                    return 1;
                });
                yield();  // the child waits
                go([&g, wait_for] { wait_for(g); });
                wait_for(g);
            });
        });
        s.run();
    };
    EXPECT_DEATH(both([](auto& g) { g.wait(); }),
                 "task_group::wait: two fibers wait for one group");
    EXPECT_DEATH(both([](auto& g) { g.next(); }),
                 "task_group::next: two fibers wait for one group");
}

// A group that has ended lies in a dead frame; here it lies where it can be looked at.
WEFT_TEST("task_group misuse: one that has ended takes no more, and nobody else can make one") {
    static_assert(!std::is_constructible_v<task_group<int>, const task_group_options&>);
    loop s;
    alignas(detail::family) std::byte room[sizeof(detail::family)];
    const task_group_options options{.home = &s};
    auto* const ended = ::new (static_cast<void*>(room)) detail::family(options);
    ended->take_place();
    ended->~family();
    // UBSan sees it first.
    EXPECT_DEATH(ended->take_place(), "the group has ended|does not point to an object");
}

MATRIX_TEST("task_group: a result may be aligned to more than a control block is") {
    struct alignas(256) wide {
        int number;
    };
    int sum = 0;
    spawn([&] {
        sum = with_task_group<wide>({.shares_locals = false}, [](task_group<wide>& g) {
            g.add([] { return wide{5}; });
            const wide result = g.next();
            return reinterpret_cast<std::uintptr_t>(&result) % 256 == 0 ? result.number : 0;
        });
    });
    run();
    CHECK(sum == 5);
}
