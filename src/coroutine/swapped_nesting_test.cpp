// swapped_nesting_test.cpp - a swapped coroutine that resumes another on the same shared stack.
//
// What happens when there is no memory to make room for it is in swapped_failure_test.cpp.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/coroutine/coroutine.hpp>
#include <weft/coroutine/shared_stack.hpp>

#include <memory>
#include <string>
#include <vector>

#include "backends.hpp"
#include "exception_support.hpp"
#include "swapped_support.hpp"

using namespace weft_test;
using weft::shared_stack;
using weft::swapped_coroutine;
using weft::this_coroutine::yield;

WEFT_TEST("swapped nesting: the resumer waits parked and goes on when the other yields or ends") {
    shared_stack shared;
    std::string log;
    swapped_coroutine inner({.shared = &shared}, [&] {
        log += '1';
        yield();
        log += '2';
    });
    swapped_coroutine outer({.shared = &shared}, [&] {
        volatile char mine = 'a';
        inner.resume();
        log += mine;
        inner.resume();
        mine = static_cast<char>(mine + 1);
        log += mine;
    });
    outer.resume();
    CHECK(log == "1a2b");
    CHECK(inner.done());
    CHECK(outer.done());
    CHECK(shared.counters().calls == 2);
    CHECK(shared.counters().parks == 3);       // outer twice, inner once
    CHECK(shared.counters().copies_out == 3);  // outer twice; inner for outer's sake
    CHECK(shared.counters().copies_in == 3);
}

WEFT_TEST("swapped nesting: a chain of fifty, down and up again, three times") {
    constexpr std::size_t length = 50;
    shared_stack shared;
    std::vector<int> visits(length);
    int right = 0;
    std::vector<swapped_coroutine> chain(length);
    for (std::size_t i = 0; i < length; ++i) {
        chain[i] = swapped_coroutine({.shared = &shared}, [&, i] {
            volatile std::size_t local = i;
            for (int round = 0; round < 3; ++round) {
                ++visits[i];
                if (i + 1 < length) chain[i + 1].resume();
                if (local == i) ++right;
                yield();
            }
        });
    }
    for (int round = 0; round < 3; ++round) chain[0].resume();
    CHECK((visits == std::vector<int>(length, 3)));
    CHECK(right == 3 * static_cast<int>(length));
}

WEFT_TEST("swapped nesting: the other's exception reaches the resumer, with its locals whole") {
    shared_stack shared;
    bool kept = false;
    int caught = 0;
    swapped_coroutine inner({.shared = &shared}, [&] {
        kept = yield_holding(300);
        throw problem{3};
    });
    swapped_coroutine outer({.shared = &shared}, [&] {
        volatile int before = 40;
        inner.resume();
        try {
            inner.resume();
        } catch (const problem& p) { before = before + p.number; }
        yield();
        caught = before;
    });
    outer.resume();
    CHECK(inner.done());
    outer.resume();
    CHECK(kept);
    CHECK(caught == 43);
}

WEFT_TEST("swapped nesting: the other may be resumed by anyone afterwards") {
    shared_stack shared;
    std::string log;
    swapped_coroutine inner({.shared = &shared}, [&] {
        for (char c = '1'; c < '5'; ++c) {
            log += c;
            yield();
        }
    });
    swapped_coroutine outer({.shared = &shared}, [&] {
        inner.resume();
        log += 'o';
        yield();
        inner.resume();
        log += 'p';
    });
    outer.resume();
    inner.resume();
    outer.resume();
    inner.resume();
    CHECK(outer.done());
    CHECK(log == "1o23p4");
}

WEFT_TEST("swapped nesting: a suspended one destroyed inside another is unwound there and then") {
    counting_allocator allocator;
    shared_stack shared({.allocator = &allocator});
    std::string log;
    auto inner =
        std::make_unique<swapped_coroutine>(weft::coroutine_options{.shared = &shared}, [&] {
            const at_exit note{[&] { log += 'u'; }};
            yield();
        });
    swapped_coroutine outer({.shared = &shared}, [&] {
        volatile char mine = 'm';
        inner->resume();
        log += '1';
        inner.reset();
        log += mine;
        yield();
        log += mine;
    });
    outer.resume();
    outer.resume();
    CHECK(log == "1umm");
    CHECK(allocator.held() == 0);
}

WEFT_TEST("swapped nesting: on another shared stack it is an ordinary call") {
    shared_stack one;
    shared_stack two;
    bool kept = true;
    swapped_coroutine inner({.shared = &two}, [&] { kept = yield_holding(100) && kept; });
    swapped_coroutine outer({.shared = &one}, [&] {
        inner.resume();
        kept = yield_holding(200) && kept;
        inner.resume();
    });
    outer.resume();
    outer.resume();
    CHECK(outer.done());
    CHECK(inner.done());
    CHECK(kept);
    CHECK(one.counters().copies_out + two.counters().copies_out == 0);
}

WEFT_TEST("swapped nesting: resuming one from another stack that was called from theirs aborts") {
    allow_threads_in_death_tests();
    const auto from_own = [] {
        shared_stack shared;
        swapped_coroutine b({.shared = &shared}, [] {});
        weft::coroutine between([&] { b.resume(); });
        swapped_coroutine a({.shared = &shared}, [&] { between.resume(); });
        a.resume();
    };
    const auto from_second_shared = [] {
        shared_stack shared;
        shared_stack second;
        swapped_coroutine b({.shared = &shared}, [] {});
        swapped_coroutine between({.shared = &second}, [&] { b.resume(); });
        swapped_coroutine a({.shared = &shared}, [&] { between.resume(); });
        a.resume();
    };
    const auto from_thread = [] {
        shared_stack shared;
        swapped_coroutine b({.shared = &shared}, [] {});
        weft::thread_coroutine between([&] { b.resume(); });
        swapped_coroutine a({.shared = &shared}, [&] { between.resume(); });
        a.resume();
    };
    const char* const message =
        "weft: coroutine: a swapped one was resumed while another on its shared stack is in the "
        "middle of a call to a different stack";
    EXPECT_DEATH(from_own(), message);
    EXPECT_DEATH(from_second_shared(), message);
    EXPECT_DEATH(from_thread(), message);
}
