// sanitizer_test.cpp - the sanitizers follow every switch: no false alarm, and no true one missed.
//
// In other builds these tests only show that the programs in them are right.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/context/context.hpp>

#include <cstring>
#include <string>
#include <thread>
#include <type_traits>

#include "context_support.hpp"
#include "exception_support.hpp"
#include "subprocess.hpp"

using namespace weft_test;

namespace {

volatile bool perhaps = true;  // the compiler does not know that leave() is always called

// Takes a frame with red zones around its array, deep enough to leave some behind.
template <class Leave>
[[gnu::noinline]] int fill_and_leave(int depth, const Leave& leave) {
    char array[200];
    std::memset(array, depth, sizeof array);
    asm volatile("" : : "r"(array) : "memory");
    if (depth != 0)
        fill_and_leave(depth - 1, leave);
    else if (perhaps)
        leave();
    return array[depth];
}

#if WEFT_ASAN
[[gnu::noinline]] void overflow(std::size_t length) {
    char array[32];
    asm volatile("" : "+r"(length));
    std::memset(array, 1, length);
    asm volatile("" : : "r"(array) : "memory");
}
#endif

}  // namespace

CONTEXT_TEST("sanitizers: a plain counter that contexts of one thread share is no race") {
    long counter = 0;
    const auto count = [&](auto& me) {
        for (int i = 0; i < 100; ++i) {
            ++counter;
            me.pause();
        }
    };
    stepper<Context> one(count);
    stepper<Context> two(count);
    while (!one.done()) {
        one.step();
        ++counter;
        two.step();
    }
    CHECK(counter == 301);
}

CONTEXT_TEST("sanitizers: a plain counter goes with its context from thread to thread") {
    long counter = 0;
    stepper<Context> body([&](auto& me) {
        for (int i = 0; i < 10; ++i) {
            ++counter;
            me.pause();
        }
    });
    for (int i = 0; i < 5; ++i) {
        std::thread([&] { body.step(); }).join();
        body.step();
    }
    CHECK(counter == 10);
    body.step();
}

CONTEXT_TEST("sanitizers: a stack that was left in mid-call is clean for the next context") {
    const memory_stack stack;
    struct shared {
        Context outside;
        Context inside;
    } s;
    const auto leave_in_mid_call = +[](void* argument) {
        auto& me = *static_cast<shared*>(argument);
        fill_and_leave(20, [&] { Context::swap(me.inside, me.outside); });
    };
    const auto jump_in_mid_call = +[](void* argument) {
        auto& me = *static_cast<shared*>(argument);
        fill_and_leave(25, [&] { Context::jump(me.outside); });
    };
    for (int i = 0; i < 3; ++i) {
        s.inside = Context::make(stack.span(), leave_in_mid_call, &s);
        Context::swap(s.outside, s.inside);
        s.inside = Context::make(stack.span(), jump_in_mid_call, &s);
        std::byte* const lowest = stack.span().data();
        std::memset(lowest, 0, static_cast<std::size_t>(s.inside.lowest_used() - lowest));
        Context::swap(s.outside, s.inside);
        std::memset(lowest, 0, stack.span().size());
    }
}

CONTEXT_TEST("sanitizers: know on which stack an exception is thrown, in whatever thread") {
    testing::internal::CaptureStderr();
    int caught = 0;
    stepper<Context> body([&](auto& me) {
        for (int i = 0; i < 3; ++i) {
            try {
                fill_and_leave(10, [] { throw problem{1}; });
            } catch (const problem& p) {
                caught += p.number;
                me.pause();
            }
        }
    });
    body.step();
    std::thread([&] {
        try {
            body.step();
            throw problem{10};
        } catch (const problem& p) { caught += p.number; }
    }).join();
    body.step();
    body.step();
    CHECK(caught == 13);
    // ASan says so when a throw happens on a stack that it does not know.
    const std::string said = testing::internal::GetCapturedStderr();
    CHECK(said.find("ASan is ignoring requested __asan_handle_no_return") == said.npos);
}

#if WEFT_ASAN
CONTEXT_TEST("sanitizers: ASan finds an overflow on the stack of a context") {
    stepper<Context> body([](auto& me) {
        me.pause();
        overflow(40);
    });
    body.step();
    EXPECT_DEATH(body.step(), "stack-buffer-overflow");
}
#endif

#if WEFT_TSAN
CONTEXT_TEST("sanitizers: TSan finds a race between a context and a thread") {
    const bool portable = std::is_same_v<Context, weft::portable_context>;
    const subprocess_result result =
        run_program("context_race", {portable ? "portable" : "native"});
    SCOPED_TRACE(result.describe());
    CHECK(!result.exited_with(0));
    CHECK(result.says("data race"));
    CHECK(result.says("weft_test_racer"));
}
#endif
