// wide_registers_test.cpp - what a function for a newer processor has in its registers survives a
// yield and a wait that are inlined into it.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/exec/loop.hpp>
#include <weft/fiber/go.hpp>
#include <weft/fiber/suspend.hpp>
#include <weft/fiber/this_fiber.hpp>

#include "weft_test.hpp"

#if defined(__x86_64__)
#include <immintrin.h>

using namespace weft;

namespace {

// The compiler does not know these values, and may keep them in any of the 32 registers.
[[gnu::target("avx512f")]] __m512i opaque(std::int64_t value) {
    __m512i wide = _mm512_set1_epi64(value);
    asm volatile("" : "+m"(wide));
    return wide;
}

// Twenty-four at once: more than the sixteen registers that every processor has.
template <class Pause>
[[gnu::target("avx512f"), gnu::noinline]] bool hold_wide(std::int64_t seed, Pause pause) {
    __m512i held[24];
    for (int i = 0; i < 24; ++i) held[i] = opaque(seed + i);
    __m512i sum = _mm512_setzero_si512();
    for (int round = 0; round < 3; ++round) {
        pause();
        for (int i = 0; i < 24; ++i) sum = _mm512_add_epi64(sum, held[i]);
    }
    return _mm512_reduce_add_epi64(sum) == 3 * 8 * (24 * seed + 24 * 23 / 2);
}

}  // namespace

WEFT_TEST("fiber: wide registers live over a yield and a wait inlined among them") {
    if (!__builtin_cpu_supports("avx512f")) GTEST_SKIP() << "this processor has no AVX-512";
    loop s;
    int right = 0;
    for (int i = 0; i < 4; ++i)
        go(s, [&right, i] {
            if (hold_wide(1000 * i, [] { yield(); })) ++right;
        });
    s.run();
    CHECK(right == 4);

    waiter* first = nullptr;
    static constexpr wait_reason reason{"waits for the other", false};
    const auto turn = [&first] {
        if (waiter* const other = std::exchange(first, nullptr))
            if (other->claim()) other->wake();
        static_cast<void>(wait(reason, no_deadline, [&first](waiter& me) noexcept {
            first = &me;
            return true;
        }));
    };
    for (int i = 0; i < 2; ++i)
        go(s, [&, i] {
            if (hold_wide(-1000 * i, turn)) ++right;
            if (waiter* const other = std::exchange(first, nullptr))
                if (other->claim()) other->wake();
        });
    s.run();
    CHECK(right == 6);
}

#endif
