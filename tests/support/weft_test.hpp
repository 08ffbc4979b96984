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

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>

namespace weft_test {

/// How often a stress test does its thing: `full` in `make soak`, scaled down otherwise.
/// WEFT_STRESS is what a full count of a million is scaled to (20,000 by default).
inline long stress_count(long full) {
    const char* set = std::getenv("WEFT_STRESS");
    const double million_is = set != nullptr ? std::strtod(set, nullptr) : 20'000;
    return std::max(1L, static_cast<long>(static_cast<double>(full) * million_is / 1e6));
}

using body = void (*)();

class sentence_test : public testing::Test {
public:
    explicit sentence_test(body run) : run_(run) {}
    void TestBody() override { run_(); }

private:
    body run_;
};

inline bool add(std::string_view sentence, std::string_view variant, const char* file, int line,
                body run) {
    const std::size_t colon = sentence.find(": ");
    const std::string suite(sentence.substr(0, colon));
    std::string name(colon == sentence.npos ? sentence : sentence.substr(colon + 2));
    if (!variant.empty()) name.append(" (").append(variant).append(")");
    testing::RegisterTest(suite.c_str(), name.c_str(), nullptr, nullptr, file, line,
                          [run]() -> testing::Test* { return new sentence_test(run); });
    return true;
}

}  // namespace weft_test

#define WEFT_TEST_JOIN(a, b) a##b
#define WEFT_TEST_NAME(a, b) WEFT_TEST_JOIN(a, b)
#define WEFT_TEST_AT(sentence, run)                                  \
    static void run();                                               \
    [[maybe_unused]] static const bool WEFT_TEST_NAME(run, _added) = \
        weft_test::add(sentence, "", __FILE__, __LINE__, &run);      \
    static void run()
#define WEFT_TEST(sentence) WEFT_TEST_AT(sentence, WEFT_TEST_NAME(test_at_line_, __LINE__))

#define CHECK(condition) EXPECT_TRUE(condition)
#define REQUIRE(condition) ASSERT_TRUE(condition)
