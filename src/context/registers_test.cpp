// registers_test.cpp - what a function has in its registers and in its frame survives a switch.
//
// The other side of each switch overwrites every register that it may. Optimisation decides what is
// where, so these tests say most at -O2 and -O3; the pinned ones put values where they hurt.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/context/context.hpp>
#include <weft/context/swap_in_frame.hpp>

#include <cstdint>

#include "context/switch.hpp"
#include "context_support.hpp"
#include "registers_support.hpp"

using namespace weft_test;

CONTEXT_TEST("registers: many locals live over many switches, on both sides") {
    const int rounds = 50;
    const double expected_inside = hold_many(11, rounds, [] {});
    const double expected_outside = hold_many(22, rounds, [] {});
    double inside = 0;
    stepper<Context> body([&](auto& me) {
        inside = hold_many(11, rounds, [&] {
            scramble();
            me.pause();
        });
    });
    const double outside = hold_many(22, rounds, [&] {
        scramble();
        body.step();
    });
    body.step();
    CHECK(body.done());
    CHECK(inside == expected_inside);
    CHECK(outside == expected_outside);
}

CONTEXT_TEST("registers: those that a callee must save have the same values afterwards") {
    bool inside = false;
    stepper<Context> body([&](auto& me) {
        scramble();
        inside = hold_pinned(100, [&] { me.pause(); });
        scramble();
    });
    CHECK(hold_pinned(200, [&] { body.step(); }));
    CHECK(hold_pinned(300, [&] { body.step(); }));
    CHECK(inside);
    CHECK(body.done());
}

CONTEXT_TEST("registers: a realigned frame with an alloca keeps its locals") {
    bool inside = false;
    stepper<Context> body([&](auto& me) {
        inside = hold_realigned(48, [&] { me.pause(); });
        scramble();
    });
    CHECK(hold_realigned(80, [&] { body.step(); }));
    CHECK(hold_realigned(33, [&] { body.step(); }));
    CHECK(inside);
}

#if defined(__x86_64__)

CONTEXT_TEST("registers: wide ones live over a switch that is inlined among them") {
    if (!__builtin_cpu_supports("avx512f")) GTEST_SKIP() << "this processor has no AVX-512";
    bool inside = false;
    stepper<Context> body([&](auto& me) {
        inside = hold_wide(1000, [&me] { Context::swap(me.inside(), me.outside()); });
    });
    CHECK(hold_wide(-1000, [&body] { Context::swap(body.outside(), body.inside()); }));
    body.step();
    CHECK(inside);
}

#endif

// The switch in the frame of who waits keeps some registers, and the compiler knows of the rest.
namespace {

using weft::detail::framed_context;

[[gnu::always_inline]] inline bool left_by(framed_context& from, framed_context& to) {
    return weft::detail::swap_in_frame(&from, &to).left == &to;
}

// As transfer_from_a_leaf() below.
[[gnu::noinline]] bool swap_from_a_leaf(framed_context& from, framed_context& to,
                                        std::uint64_t seed) {
    struct {
        std::uint64_t a, b, c, d, e, f, g, h;
    } volatile below = {seed, seed + 1, seed + 2, seed + 3, seed + 4, seed + 5, seed + 6, seed + 7};
    const bool told = left_by(from, to);
    return told && below.a == seed && below.b == seed + 1 && below.c == seed + 2 &&
           below.d == seed + 3 && below.e == seed + 4 && below.f == seed + 5 &&
           below.g == seed + 6 && below.h == seed + 7;
}

}  // namespace

WEFT_TEST("registers: many locals live over a switch in the frame of who waits") {
    const int rounds = 50;
    const double expected_inside = hold_many(11, rounds, [] {});
    const double expected_outside = hold_many(22, rounds, [] {});
    double inside = 0;
    bool pinned_inside = false;
    bool realigned_inside = false;
    bool told = true;
    stepper<framed_context> body([&](auto& me) {
        const auto pause = [&] {
            scramble();
            if (!left_by(me.inside(), me.outside())) told = false;
        };
        inside = hold_many(11, rounds, pause);
        pinned_inside = hold_pinned(100, pause);
        realigned_inside = hold_realigned(48, pause);
    });
    const auto step = [&] {
        scramble();
        if (!left_by(body.outside(), body.inside())) told = false;
    };
    CHECK(hold_many(22, rounds, step) == expected_outside);
    CHECK(hold_pinned(200, step));
    CHECK(hold_realigned(33, step));
    CHECK(told);
    step();
    CHECK(body.done());
    CHECK(!told);  // it jumped: nobody left
    CHECK(inside == expected_inside);
    CHECK(pinned_inside);
    CHECK(realigned_inside);
}

WEFT_TEST("registers: the red zone of a leaf function survives a switch in its frame") {
    bool inside = true;
    stepper<framed_context> body([&](auto& me) {
        for (std::uint64_t seed = 1000; seed < 2000; seed += 10)
            if (!swap_from_a_leaf(me.inside(), me.outside(), seed)) inside = false;
    });
    bool outside = true;
    for (std::uint64_t seed = 1; seed < 1000; seed += 10)
        if (!swap_from_a_leaf(body.outside(), body.inside(), seed)) outside = false;
    body.step();
    CHECK(body.done());
    CHECK(inside);
    CHECK(outside);
}

// The switch itself, without a function around it that saves registers of its own accord.
#if WEFT_NATIVE_SWITCH && !WEFT_ASAN && !WEFT_TSAN

namespace {

struct inlined_pair {
    weft::native_context outside;
    weft::native_context inside;
    bool inside_right = true;

    void enter() { weft::detail::transfer(outside.registers_, inside.registers_); }
    void leave() { weft::detail::transfer(inside.registers_, outside.registers_); }
};

// A function that calls nothing keeps its locals in the 128 bytes below the stack pointer. No array
// among them: the stack protector would call something.
[[gnu::noinline]] bool transfer_from_a_leaf(weft::native_context& from, weft::native_context& to,
                                            std::uint64_t seed) {
    struct {
        std::uint64_t a, b, c, d, e, f, g, h;
    } volatile below = {seed, seed + 1, seed + 2, seed + 3, seed + 4, seed + 5, seed + 6, seed + 7};
    weft::detail::transfer(from.registers_, to.registers_);
    return below.a == seed && below.b == seed + 1 && below.c == seed + 2 && below.d == seed + 3 &&
           below.e == seed + 4 && below.f == seed + 5 && below.g == seed + 6 && below.h == seed + 7;
}

}  // namespace

WEFT_TEST("registers: many locals live over a switch that is inlined among them") {
    const int rounds = 50;
    inlined_pair pair;
    const auto entry = +[](void* argument) {
        auto& me = *static_cast<inlined_pair*>(argument);
        const double expected = hold_many(11, rounds, [] {});
        me.inside_right = hold_many(11, rounds, [&] { me.leave(); }) == expected;
        for (;;) me.leave();
    };
    const memory_stack stack;
    pair.inside = weft::native_context::make(stack.span(), entry, &pair);
    const double expected = hold_many(22, rounds + 1, [] {});
    CHECK(hold_many(22, rounds + 1, [&] { pair.enter(); }) == expected);
    CHECK(pair.inside_right);
}

WEFT_TEST("registers: the red zone of a leaf function survives the switch inlined into it") {
    inlined_pair pair;
    const auto entry = +[](void* argument) {
        auto& me = *static_cast<inlined_pair*>(argument);
        for (std::uint64_t seed = 1000;; seed += 10)
            if (!transfer_from_a_leaf(me.inside, me.outside, seed)) me.inside_right = false;
    };
    const memory_stack stack;
    pair.inside = weft::native_context::make(stack.span(), entry, &pair);
    bool outside_right = true;
    for (std::uint64_t seed = 1; seed < 1000; seed += 10)
        if (!transfer_from_a_leaf(pair.outside, pair.inside, seed)) outside_right = false;
    CHECK(outside_right);
    CHECK(pair.inside_right);
}

#endif
