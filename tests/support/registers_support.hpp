// registers_support.hpp - functions that hold a lot over a pause, in registers and in their frames.
//
// Optimisation decides what is where, so the tests that use them say most at -O2 and -O3; the
// pinned ones put values where they hurt. A pause() that overwrites every register that it may
// calls scramble().
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <alloca.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace weft_test {

// The compiler does not know this value.
template <class T>
[[gnu::always_inline]] inline T opaque(T value) {
    asm volatile("" : "+r"(value)::"memory");
    return value;
}

[[gnu::always_inline]] inline double opaque(double value) {
#if defined(__x86_64__)
    asm volatile("" : "+x"(value));
#elif defined(__aarch64__)
    asm volatile("" : "+w"(value));
#endif
    return value;
}

// Leaves nothing of the caller's in any register that a function may use, then puts back what the
// calling convention says it must.
[[gnu::noinline]] inline void scramble() {
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

template <class Pause>
[[gnu::noinline]] void pause_in_a_call(const Pause& pause) {
    pause();
}

// Holds known values in the callee-saved registers themselves, over a call that pauses (g++ keeps
// such variables in place at every level; for clang these are locals like others). True if they are
// all there afterwards.
template <class Pause>
[[gnu::noinline]] bool hold_pinned(std::uint64_t seed, const Pause& pause) {
#if defined(__x86_64__)
    register std::uint64_t a asm("rbx") = seed;
    register std::uint64_t b asm("r12") = seed + 1;
    register std::uint64_t c asm("r13") = seed + 2;
    register std::uint64_t d asm("r14") = seed + 3;
    register std::uint64_t e asm("r15") = seed + 4;
    asm volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e));
    pause_in_a_call(pause);
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
    pause_in_a_call(pause);
    asm volatile("" : "+r"(a), "+r"(b), "+r"(c), "+w"(d), "+w"(e), "+w"(f));
    const double s = static_cast<double>(seed);
    return a == seed && b == seed + 1 && c == seed + 2 && d == s + 0.5 && e == s + 1.5 &&
           f == s + 2.5;
#else
    pause_in_a_call(pause);
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

#if defined(__x86_64__)

// Eight numbers in one register of 512 bits; intrinsics would need a header of this processor.
using wide [[gnu::vector_size(64)]] = std::int64_t;

// The compiler does not know these values, and may keep them in any of the 32 registers.
[[gnu::target("avx512f")]] inline void fill(wide& value, std::int64_t with) {
    value = wide{} + with;
    asm volatile("" : "+m"(value));
}

// Twenty-four at once: more than the sixteen registers that every processor has.
template <class Pause>
[[gnu::target("avx512f"), gnu::noinline]] bool hold_wide(std::int64_t seed, Pause pause) {
    wide held[24];
    for (int i = 0; i < 24; ++i) fill(held[i], seed + i);
    wide sum{};
    for (int round = 0; round < 3; ++round) {
        pause();
        for (int i = 0; i < 24; ++i) sum += held[i];
    }
    std::int64_t all = 0;
    for (int lane = 0; lane < 8; ++lane) all += sum[lane];
    return all == 3 * 8 * (24 * seed + 24 * 23 / 2);
}

#endif

}  // namespace weft_test
