// coroutine_registers_test.cpp - what a function has in its registers and in its frame survives
// resume() and yield(), which may switch in that frame.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/coroutine/coroutine.hpp>
#include <weft/coroutine/generator.hpp>

#include "backends.hpp"
#include "registers_support.hpp"

using namespace weft_test;
using weft::this_coroutine::yield;

BACKEND_TEST("coroutine: many locals live over resumes and yields inlined among them") {
    const int rounds = 50;
    double inside = 0;
    bool pinned_inside = false;
    bool realigned_inside = false;
    Coroutine c(options(), [&] {
        const auto pause = [] {
            scramble();
            yield();
        };
        inside = hold_many(11, rounds, pause);
        pinned_inside = hold_pinned(100, pause);
        realigned_inside = hold_realigned(48, pause);
    });
    const auto step = [&] {
        scramble();
        c.resume();
    };
    CHECK(hold_many(22, rounds, step) == hold_many(22, rounds, [] {}));
    CHECK(hold_pinned(200, step));
    CHECK(hold_realigned(33, step));
    step();
    CHECK(c.done());
    CHECK(inside == hold_many(11, rounds, [] {}));
    CHECK(pinned_inside);
    CHECK(realigned_inside);
}

WEFT_TEST("generator: many locals live over values inlined among them") {
    const int rounds = 50;
    double inside = 0;
    weft::generator<int> numbers([&](auto& yield_value) {
        inside = hold_many(11, rounds, [&] {
            scramble();
            yield_value(1);
        });
    });
    auto it = numbers.begin();
    CHECK(hold_many(22, rounds, [&] {
              scramble();
              ++it;
          }) == hold_many(22, rounds, [] {}));
    CHECK(it == numbers.end());
    CHECK(inside == hold_many(11, rounds, [] {}));
}

#if defined(__x86_64__)

BACKEND_TEST("coroutine: wide registers live over resumes and yields inlined among them") {
    if (!__builtin_cpu_supports("avx512f")) GTEST_SKIP() << "this processor has no AVX-512";
    bool inside = false;
    Coroutine c(options(), [&] { inside = hold_wide(1000, [] { yield(); }); });
    CHECK(hold_wide(-1000, [&] { c.resume(); }));
    c.resume();
    CHECK(c.done());
    CHECK(inside);
}

#endif
