// pools.hpp - tests on a pool of their own.
//
//     POOL_TEST("fiber: joins") {
//         fiber f(p, options(), [] { yield(); });
//         f.join();
//     }
//
// That makes seven tests: fibers of kind own on 1, 2 and 8 workers and on 2 where each goes on
// elsewhere after every stop (moved), and of the other three kinds on 2. The body is a member of
// pool_fixture. A test fails if a fiber or a stack is left at its end, anywhere in the process; a
// timer that is left aborts in the pool's destructor. What fibers share must not be a local of one
// of them, for those of a swapped one go away while it is parked.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <weft/exec/pool.hpp>
#include <weft/fiber/dump.hpp>
#include <weft/fiber/fiber.hpp>
#include <weft/fiber/go.hpp>
#include <weft/fiber/suspend.hpp>
#include <weft/fiber/this_fiber.hpp>

#include "backends.hpp"
#include "weft_test.hpp"

namespace weft_test {

struct pool_variant {
    const char* name;
    weft::stack_kind kind;
    unsigned workers;
    bool moved;
};

inline constexpr pool_variant pool_variants[] = {
    {"own, 1 worker", weft::stack_kind::own, 1, false},
    {"own, 2 workers", weft::stack_kind::own, 2, false},
    {"own, 8 workers", weft::stack_kind::own, 8, false},
    {"own, 2 workers, moved", weft::stack_kind::own, 2, true},
    {"ucontext, 2 workers", weft::stack_kind::ucontext, 2, false},
    {"thread, 2 workers", weft::stack_kind::thread, 2, false},
    {"swapped, 2 workers", weft::stack_kind::swapped, 2, false},
};

class pool_fixture {
public:
    explicit pool_fixture(const pool_variant& v)
        : kind(v.kind), p({.workers = v.workers, .force_migrate = v.moved}) {}

    const weft::stack_kind kind;
    weft::pool p;

    [[nodiscard]] weft::fiber_options options(weft::fiber_options wanted = {}) const {
        wanted.kind = kind;
        return wanted;
    }
    template <class F>
    void spawn(F&& function) {
        weft::go(p, options(), std::forward<F>(function));
    }
};

/// On any executor of the process, a line each.
inline std::string fibers_left() {
    std::string lines;
    weft::dump([&](std::string_view line) { lines.append(line).append("\n"); });
    return lines;
}

template <class Test, std::size_t Variant>
void run_pool_test() {
    allow_threads_in_death_tests();
    const std::size_t before = stacks_in_use();
    {
        Test test(pool_variants[Variant]);
        test.body();
        test.p.drain();
        EXPECT_EQ(test.p.alive(), 0U) << "a fiber is left";
    }
    EXPECT_EQ(fibers_left(), "");
    EXPECT_EQ(stacks_in_use(), before) << "a stack was not given back";
}

template <class Test>
bool add_pool_test(std::string_view sentence, const char* file, int line) {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
        (add(sentence, pool_variants[I].name, file, line, &run_pool_test<Test, I>), ...);
    }
    (std::make_index_sequence<std::size(pool_variants)>());
    return true;
}

}  // namespace weft_test

#define WEFT_POOL_TEST_AT(sentence, name)                             \
    namespace {                                                       \
    struct name : weft_test::pool_fixture {                           \
        using pool_fixture::pool_fixture;                             \
        void body();                                                  \
    };                                                                \
    }                                                                 \
    [[maybe_unused]] static const bool WEFT_TEST_NAME(name, _added) = \
        weft_test::add_pool_test<name>(sentence, __FILE__, __LINE__); \
    void name::body()
#define POOL_TEST(sentence) \
    WEFT_POOL_TEST_AT(sentence, WEFT_TEST_NAME(pool_test_at_line_, __LINE__))
