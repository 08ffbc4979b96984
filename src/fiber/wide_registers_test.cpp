// wide_registers_test.cpp - what a function for a newer processor has in its registers survives a
// yield and a wait that are inlined into it.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/exec/loop.hpp>
#include <weft/fiber/go.hpp>
#include <weft/fiber/suspend.hpp>
#include <weft/fiber/this_fiber.hpp>

#include "weft_test.hpp"

#include <cstdint>
#include <utility>

#if defined(__x86_64__)
using namespace weft;

namespace {

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
