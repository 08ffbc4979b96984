// weft_test.hpp - tests whose names are sentences, over GoogleTest.
//
//     WEFT_TEST("stack depot: a stack given back is the next one taken") { CHECK(a == b); }
//
// The words before the colon name the suite. CHECK goes on after a failure, REQUIRE ends the test;
// GoogleTest's own EXPECT_ and ASSERT_ macros work as well. Counts of stress tests come from
// stress_count(), never from the clock.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <string_view>

namespace weft_test {

/// How often a stress test does its thing: `full` in `make soak`, scaled down otherwise.
/// WEFT_STRESS is what a full count of a million is scaled to (20,000 by default).
long stress_count(long full);

using body = void (*)();

/// Makes `run` a test; `variant`, if there is one, is put behind its name.
bool add(std::string_view sentence, std::string_view variant, const char* file, int line, body run);

/// Runs before each test, if a program sets it, before main(); it may skip the test, or fail it.
inline body before_each = nullptr;

/// What CHECK and REQUIRE do when the condition does not hold.
void check_failed(const char* condition, const char* file, int line);
void require_failed(const char* condition, const char* file, int line);

}  // namespace weft_test

#define WEFT_TEST_JOIN(a, b) a##b
#define WEFT_TEST_NAME(a, b) WEFT_TEST_JOIN(a, b)
#define WEFT_TEST_AT(sentence, run)                                  \
    static void run();                                               \
    [[maybe_unused]] static const bool WEFT_TEST_NAME(run, _added) = \
        weft_test::add(sentence, "", __FILE__, __LINE__, &run);      \
    static void run()
#define WEFT_TEST(sentence) WEFT_TEST_AT(sentence, WEFT_TEST_NAME(test_at_line_, __LINE__))

// As EXPECT_TRUE and ASSERT_TRUE, which make objects with destructors wherever they stand; so these
// are a comparison and a call, for the compiler has thousands of them to read.
#define CHECK(condition)                                  \
    (static_cast<bool>(condition)) ? static_cast<void>(0) \
                                   : weft_test::check_failed(#condition, __FILE__, __LINE__)
#define REQUIRE(condition)              \
    GTEST_AMBIGUOUS_ELSE_BLOCKER_       \
    if (static_cast<bool>(condition)) { \
    } else                              \
        return weft_test::require_failed(#condition, __FILE__, __LINE__)
