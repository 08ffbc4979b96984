// backends.hpp - one test body, run with every back end of coroutine.
//
//     BACKEND_TEST("coroutine: runs until it yields") {
//         int steps = 0;
//         Coroutine c(options(), [&] { ++steps; weft::this_coroutine::yield(); ++steps; });
//         c.resume();
//         CHECK(steps == 1);
//     }
//
// That makes four tests: (own), (ucontext), (thread), (swapped). In the body `Coroutine` is the
// type and `options` a backend_fixture: it holds what the back end needs (a shared stack, a cache
// of threads) until the end of the test. A test fails if a stack was not given back. The body of a
// test runs on the thread's own stack, so its locals may be shared among coroutines; the locals of
// a coroutine may not, for on the swapped back end they go away while it is parked.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <weft/base/sanitizer.hpp>
#include <weft/coroutine/coroutine.hpp>
#include <weft/coroutine/shared_stack.hpp>
#include <weft/coroutine/thread_cache.hpp>
#include <weft/stack/stack_depot.hpp>

#include <concepts>
#include <string_view>

#include "weft_test.hpp"

namespace weft_test {

inline constexpr bool sanitized = WEFT_ASAN || WEFT_TSAN;

template <class Coroutine>
inline constexpr bool is_thread = std::same_as<Coroutine, weft::thread_coroutine>;
template <class Coroutine>
inline constexpr bool is_swapped = std::same_as<Coroutine, weft::swapped_coroutine>;
/// Whether each has a stack of its own that comes from a stack_source.
template <class Coroutine>
inline constexpr bool has_own_stack = !is_thread<Coroutine> && !is_swapped<Coroutine>;

/// What a back end needs beside its options. Called, it gives options with that filled in.
template <class Coroutine>
class backend_fixture {
public:
    [[nodiscard]] weft::coroutine_options operator()(weft::coroutine_options wanted = {}) {
        return wanted;
    }
};

template <>
class backend_fixture<weft::thread_coroutine> {
public:
    [[nodiscard]] weft::coroutine_options operator()(weft::coroutine_options wanted = {}) {
        wanted.threads = &threads;
        return wanted;
    }
    weft::thread_cache threads;
};

template <>
class backend_fixture<weft::swapped_coroutine> {
public:
    [[nodiscard]] weft::coroutine_options operator()(weft::coroutine_options wanted = {}) {
        wanted.shared = &shared;
        return wanted;
    }
    weft::shared_stack shared;
};

/// For tests that expect death in something that starts threads. TSan allows none after a fork, so
/// there the test program is started anew.
inline void allow_threads_in_death_tests() {
    if (WEFT_TSAN) GTEST_FLAG_SET(death_test_style, "threadsafe");  // until the end of the test
}

inline std::size_t stacks_in_use() { return weft::shared_stack_depot().counters().live; }

template <class Coroutine, void (*Run)(backend_fixture<Coroutine>&)>
void run_without_leak() {
    allow_threads_in_death_tests();
    const std::size_t before = stacks_in_use();
    {
        backend_fixture<Coroutine> options;
        Run(options);
    }
    EXPECT_EQ(stacks_in_use(), before) << "a stack was not given back";
}

inline bool add_for_each_backend(std::string_view sentence, const char* file, int line, body own,
                                 body ucontext, body thread, body swapped) {
    add(sentence, "own", file, line, own);
    add(sentence, "ucontext", file, line, ucontext);
    add(sentence, "thread", file, line, thread);
    return add(sentence, "swapped", file, line, swapped);
}

}  // namespace weft_test

#define BACKEND_TEST_AT(sentence, run)                                                             \
    template <class Coroutine>                                                                     \
    static void run(weft_test::backend_fixture<Coroutine>& options);                               \
    [[maybe_unused]] static const bool WEFT_TEST_NAME(run, _added) =                               \
        weft_test::add_for_each_backend(                                                           \
            sentence, __FILE__, __LINE__,                                                          \
            &weft_test::run_without_leak<weft::coroutine, &run<weft::coroutine>>,                  \
            &weft_test::run_without_leak<weft::ucontext_coroutine,                                 \
                                         &run<weft::ucontext_coroutine>>,                          \
            &weft_test::run_without_leak<weft::thread_coroutine, &run<weft::thread_coroutine>>,    \
            &weft_test::run_without_leak<weft::swapped_coroutine, &run<weft::swapped_coroutine>>); \
    template <class Coroutine>                                                                     \
    static void run([[maybe_unused]] weft_test::backend_fixture<Coroutine>& options)
#define BACKEND_TEST(sentence) BACKEND_TEST_AT(sentence, WEFT_TEST_NAME(test_at_line_, __LINE__))
