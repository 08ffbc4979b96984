// swapped_failure_test.cpp - no memory to copy out the coroutine on the shared stack: nothing is
// lost.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/coroutine/coroutine.hpp>
#include <weft/coroutine/shared_stack.hpp>

#include <new>
#include <stdexcept>
#include <string>

#include "exception_support.hpp"
#include "swapped_support.hpp"

using namespace weft_test;
using weft::buffer_policy;
using weft::shared_stack;
using weft::swapped_coroutine;
using weft::this_coroutine::yield;

WEFT_TEST("swapped failure: no buffer for one comes out of the other's first resume, both go on") {
    counting_allocator allocator;
    shared_stack shared({.allocator = &allocator});
    bool kept = false;
    bool ran = false;
    swapped_coroutine a({.shared = &shared}, [&] { kept = yield_holding(500); });
    swapped_coroutine b({.shared = &shared}, [&] { ran = true; });
    a.resume();
    allocator.failing = true;
    for (int i = 0; i < 3; ++i) EXPECT_THROW(b.resume(), std::bad_alloc);
    CHECK(!b.done());
    CHECK(!a.done());
    CHECK(!ran);
    allocator.failing = false;
    b.resume();
    CHECK(ran);
    a.resume();
    CHECK(kept);
    CHECK(shared.counters().calls == 2);
}

WEFT_TEST("swapped failure: the one on the stack may go on first, and needs no memory for it") {
    counting_allocator allocator;
    shared_stack shared({.allocator = &allocator, .policy = buffer_policy::release_at_resume});
    bool kept_a = false;
    bool kept_b = false;
    swapped_coroutine a({.shared = &shared}, [&] { kept_a = yield_holding(500); });
    swapped_coroutine b({.shared = &shared}, [&] { kept_b = yield_holding(600); });
    b.resume();
    a.resume();
    allocator.failing = true;
    EXPECT_THROW(b.resume(), std::bad_alloc);  // a parked one, too, stays as it was
    a.resume();
    CHECK(a.done());
    CHECK(kept_a);
    b.resume();
    CHECK(b.done());
    CHECK(kept_b);
}

WEFT_TEST("swapped failure: any exception of the allocator comes out of resume as it is") {
    struct refusing final : weft::swap_allocator {
        void* allocate(std::size_t) override { throw problem{11}; }
        void release(void*, std::size_t) noexcept override {}
    } allocator;
    shared_stack shared({.allocator = &allocator});
    swapped_coroutine a({.shared = &shared}, [] { yield(); });
    swapped_coroutine b({.shared = &shared}, [] {});
    a.resume();
    int caught = 0;
    try {
        b.resume();
    } catch (const problem& p) { caught = p.number; }
    CHECK(caught == 11);
    a.resume();
    b.resume();
    CHECK(b.done());
}

WEFT_TEST("swapped failure: no memory at creation leaves the shared stack without a new user") {
    counting_allocator allocator;
    shared_stack shared({.allocator = &allocator, .policy = buffer_policy::allocate_at_creation});
    allocator.failing = true;
    EXPECT_THROW(swapped_coroutine({.shared = &shared}, [] {}), std::bad_alloc);
    allocator.failing = false;
    swapped_coroutine c({.shared = &shared}, [] {});
    c.resume();
    CHECK(c.done());
}

WEFT_TEST("swapped failure: one that outgrew its buffer from creation stays until it uses less") {
    shared_stack shared({.policy = buffer_policy::allocate_at_creation, .buffer_size = 8'000});
    bool kept = true;
    swapped_coroutine large({.shared = &shared}, [&] {
        kept = yield_holding(10'000) && kept;
        kept = yield_holding(10) && kept;
    });
    swapped_coroutine other({.shared = &shared}, [] {});
    large.resume();
    EXPECT_THROW(other.resume(), std::length_error);
    CHECK(!other.done());
    large.resume();
    other.resume();
    CHECK(other.done());
    large.resume();
    CHECK(large.done());
    CHECK(kept);
}

WEFT_TEST("swapped failure: a buffer of no bytes from creation is never one of some") {
    shared_stack shared({.policy = buffer_policy::allocate_at_creation, .buffer_size = 0});
    swapped_coroutine parked({.shared = &shared}, [] { yield(); });
    swapped_coroutine other({.shared = &shared}, [] {});
    parked.resume();
    EXPECT_THROW(other.resume(), std::length_error);
    CHECK(shared.counters().buffers == 0);
    parked.resume();
    other.resume();
    CHECK(other.done());
}

WEFT_TEST("swapped failure: no room for a nested resume is the resumer's exception") {
    counting_allocator allocator;
    shared_stack shared({.allocator = &allocator});
    std::string log;
    swapped_coroutine inner({.shared = &shared}, [&] {
        log += 'i';
        yield();
        log += 'j';
    });
    swapped_coroutine outer({.shared = &shared}, [&] {
        volatile char mine = 'm';
        allocator.failing = true;
        try {
            inner.resume();
        } catch (const std::bad_alloc&) { log += mine; }
        allocator.failing = false;
        inner.resume();
        yield();
        inner.resume();
        log += mine;
    });
    outer.resume();
    CHECK(log == "mi");
    outer.resume();
    CHECK(log == "mijm");
    CHECK(outer.done());
    CHECK(inner.done());
}

WEFT_TEST("swapped failure: no room for the way back comes out of the outermost resume") {
    counting_allocator allocator;
    shared_stack shared({.allocator = &allocator});
    std::string log;
    swapped_coroutine inner({.shared = &shared}, [&] {
        log += 'i';
        allocator.failing = true;
        yield();
        log += 'j';
    });
    swapped_coroutine outer({.shared = &shared}, [&] {
        volatile char mine = 'm';
        inner.resume();
        log += mine;
        yield();
        log += mine;
    });
    EXPECT_THROW(outer.resume(), std::bad_alloc);
    CHECK(log == "i");
    CHECK(!inner.done());
    CHECK(!outer.done());
    allocator.failing = false;
    outer.resume();  // goes on where inner.resume() returns
    CHECK(log == "im");
    inner.resume();
    outer.resume();
    CHECK(log == "imjm");
    CHECK(inner.done());
    CHECK(outer.done());
}

WEFT_TEST("swapped failure: is told to the one that asked, not to the next that asks") {
    counting_allocator allocator;
    shared_stack shared({.allocator = &allocator});
    std::string log;
    swapped_coroutine innermost({.shared = &shared}, [&] {
        log += '3';
        allocator.failing = true;
        yield();
    });
    swapped_coroutine inner({.shared = &shared}, [&] {
        innermost.resume();
        log += '2';
    });
    swapped_coroutine outer({.shared = &shared}, [&] {
        try {
            inner.resume();
        } catch (const std::bad_alloc&) { log += '!'; }
    });
    EXPECT_THROW(outer.resume(), std::bad_alloc);  // no way back for either of the two
    allocator.failing = false;
    swapped_coroutine other_inner({.shared = &shared}, [&] { log += 'b'; });
    swapped_coroutine other({.shared = &shared}, [&] {
        log += 'a';
        other_inner.resume();
        log += 'c';
    });
    other.resume();
    outer.resume();
    inner.resume();
    CHECK(log == "3abc!2");
    CHECK(outer.done());
    CHECK(inner.done());
}

WEFT_TEST("swapped failure: no room to unwind one that is destroyed is an abort with a name") {
    const auto destroy_without_memory = [] {
        counting_allocator allocator;
        shared_stack shared({.allocator = &allocator});
        swapped_coroutine stays({.shared = &shared}, [] { yield(); });
        swapped_coroutine goes({.name = "goes", .shared = &shared}, [] { yield(); });
        goes.resume();
        stays.resume();
        allocator.failing = true;
        goes = swapped_coroutine();
    };
    EXPECT_DEATH(destroy_without_memory(),
                 "weft: coroutine: no memory to make room for one that is destroyed \\('goes'\\)");
}
