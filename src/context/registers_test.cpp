// registers_test.cpp - what a function has in its registers and in its frame survives a switch.
//
// The other side of each switch overwrites every register that it may. Optimisation decides what is
// where, so these tests say most at -O2 and -O3; the pinned ones put values where they hurt.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/context/context.hpp>
#include <weft/context/swap_in_frame.hpp>

#include <alloca.h>

#include <cstdint>
#include <cstring>

#include "context/switch.hpp"
#include "context_support.hpp"

using weft_test::memory_stack;
using weft_test::stepper;

namespace {

// The compiler does not know this value.
template <class T>
T opaque(T value) {
    asm volatile("" : "+r"(value)::"memory");
    return value;
}

double opaque(double value) {
#if defined(__x86_64__)
    asm volatile("" : "+x"(value));
#elif defined(__aarch64__)
    asm volatile("" : "+w"(value));
#endif
    return value;
}

// Leaves nothing of the caller's in any register that a function may use, then puts back what the
// calling convention says it must.
[[gnu::noinline]] void scramble() {
#if defined(__x86_64__)
    asm volatile(
        "movq $-1, %%rbx\n\t movq %%rbx, %%r12\n\t movq %%rbx, %%r13\n\t movq %%rbx, %%r14\n\t"
        "movq %%rbx, %%r15\n\t movq %%rbx, %%xmm0\n\t movq %%rbx, %%xmm6\n\t movq %%rbx, %%xmm7\n\t"
        "movq %%rbx, %%xmm8\n\t movq %%rbx, %%xmm9\n\t movq %%rbx, %%xmm10\n\t movq %%rbx, %%xmm15"
        :
        :
        : "rbx", "r12", "r13", "r14", "r15", "xmm0", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10",
          "xmm15");
#elif defined(__aarch64__)
    asm volatile(
        "mov x19, #-1\n\t mov x20, x19\n\t mov x21, x19\n\t mov x22, x19\n\t mov x23, x19\n\t"
        "mov x24, x19\n\t mov x25, x19\n\t mov x26, x19\n\t mov x27, x19\n\t mov x28, x19\n\t"
        "fmov d8, x19\n\t fmov d9, x19\n\t fmov d10, x19\n\t fmov d11, x19\n\t fmov d12, x19\n\t"
        "fmov d13, x19\n\t fmov d14, x19\n\t fmov d15, x19"
        :
        :
        : "x19", "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28", "v8", "v9", "v10",
          "v11", "v12", "v13", "v14", "v15");
#endif
}

// Holds so many integers and doubles over each of `rounds` pauses that all registers are taken and
// some values spilled. Returns what they come to.
template <class Pause>
[[gnu::noinline]] double hold_many(std::uint64_t seed, int rounds, const Pause& pause) {
    std::uint64_t a = opaque(seed + 1), b = opaque(seed + 2), c = opaque(seed + 3),
                  d = opaque(seed + 4), e = opaque(seed + 5), f = opaque(seed + 6),
                  g = opaque(seed + 7), h = opaque(seed + 8), i = opaque(seed + 9);
    const double s = static_cast<double>(seed);
    double p = opaque(s + 0.1), q = opaque(s + 0.2), r = opaque(s + 0.3), t = opaque(s + 0.4),
           u = opaque(s + 0.5), v = opaque(s + 0.6), w = opaque(s + 0.7), x = opaque(s + 0.8),
           y = opaque(s + 0.9), z = opaque(s + 1.1);
    for (int round = 0; round < rounds; ++round) {
        pause();
        a += b, b ^= c, c += d, d ^= e, e += f, f ^= g, g += h, h ^= i, i += a;
        p += q * 0.5, q += r * 0.25, r -= t, t += u * 0.125, u -= v * 0.5, v += w, w -= x * 0.75;
        x += y * 0.5, y -= z, z += p * 0.0625;
    }
    const std::uint64_t integers =
        a + 3 * b + 5 * c + 7 * d + 11 * e + 13 * f + 17 * g + 19 * h + i;
    return static_cast<double>(integers >> 12) + p + q + r + t + u + v + w + x + y + z;
}

// Holds known values in the callee-saved registers themselves (g++ keeps such variables in place at
// every level; for clang these are locals like others). True if they are all there afterwards.
template <class Pause>
[[gnu::noinline]] bool hold_pinned(std::uint64_t seed, const Pause& pause) {
#if defined(__x86_64__)
    register std::uint64_t a asm("rbx") = seed;
    register std::uint64_t b asm("r12") = seed + 1;
    register std::uint64_t c asm("r13") = seed + 2;
    register std::uint64_t d asm("r14") = seed + 3;
    register std::uint64_t e asm("r15") = seed + 4;
    asm volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e));
    pause();
    asm volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e));
    return a == seed && b == seed + 1 && c == seed + 2 && d == seed + 3 && e == seed + 4;
#elif defined(__aarch64__)
    register std::uint64_t a asm("x19") = seed;
    register std::uint64_t b asm("x22") = seed + 1;
    register std::uint64_t c asm("x28") = seed + 2;
    register double d asm("d8") = static_cast<double>(seed) + 0.5;
    register double e asm("d11") = static_cast<double>(seed) + 1.5;
    register double f asm("d15") = static_cast<double>(seed) + 2.5;
    asm volatile("" : "+r"(a), "+r"(b), "+r"(c), "+w"(d), "+w"(e), "+w"(f));
    pause();
    asm volatile("" : "+r"(a), "+r"(b), "+r"(c), "+w"(d), "+w"(e), "+w"(f));
    const double s = static_cast<double>(seed);
    return a == seed && b == seed + 1 && c == seed + 2 && d == s + 0.5 && e == s + 1.5 &&
           f == s + 2.5;
#else
    pause();
    return seed != 0;
#endif
}

// A frame that is realigned and has a part of no known size: the compiler reaches its locals
// through a register of its choice.
template <class Pause>
[[gnu::noinline]] bool hold_realigned(std::size_t size, const Pause& pause) {
    alignas(64) std::uint64_t wide[8];
    auto* variable = static_cast<unsigned char*>(alloca(opaque(size)));
    const std::uint64_t before = opaque(size * 3);
    for (std::size_t i = 0; i < 8; ++i) wide[i] = opaque(i * size);
    std::memset(variable, 0x3c, size);
    pause();
    bool right =
        opaque(before) == size * 3 && opaque(reinterpret_cast<std::uintptr_t>(wide)) % 64 == 0;
    for (std::size_t i = 0; i < 8; ++i) right = right && opaque(wide[i]) == i * size;
    for (std::size_t i = 0; i < size; ++i) right = right && opaque(variable[i]) == 0x3c;
    return right;
}

}  // namespace

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

// The switch in the frame of who waits keeps some registers, and the compiler knows of the rest.
namespace {

using weft::detail::framed_context;

[[gnu::always_inline]] inline bool left_by(framed_context& from, framed_context& to) {
    return weft::detail::swap_in_frame(from, to) == &to;
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
