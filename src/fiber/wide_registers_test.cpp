// wide_registers_test.cpp - what a function for a newer processor has in its registers survives a
// yield and a wait that are inlined into it.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/exec/loop.hpp>
#include <weft/fiber/go.hpp>
#include <weft/fiber/suspend.hpp>
#include <weft/fiber/this_fiber.hpp>

#include <utility>

#include "registers_support.hpp"
#include "weft_test.hpp"

#if defined(__x86_64__)
using namespace weft;
using weft_test::hold_wide;

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
