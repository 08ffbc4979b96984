// weft_test.cpp - what the macros of weft_test.hpp call, compiled once for all test programs.
//
// ctest starts a process for each test, and a program has up to a thousand of them. So add() only
// keeps what it is told, and GoogleTest, which allocates several times for each test, comes to know
// the one that is wanted: a third less to start one with AddressSanitizer.
//
// SPDX-License-Identifier: Apache-2.0
#include "weft_test.hpp"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "registration.hpp"

namespace weft_test {

namespace {

class sentence_test : public testing::Test {
public:
    explicit sentence_test(body run) : run_(run) {}
    void SetUp() override {
        if (before_each != nullptr) before_each();
    }
    void TestBody() override { run_(); }

private:
    body run_;
};

struct test {
    std::string_view suite;
    std::string_view name;
    std::string_view variant;  // may be empty
    const char* file;
    int line;
    body run;

    [[nodiscard]] std::string full_name() const {
        std::string result(name);
        if (!variant.empty()) result.append(" (").append(variant).append(")");
        return result;
    }
    [[nodiscard]] bool is_called(std::string_view wanted) const {
        return wanted.starts_with(suite) && wanted.substr(suite.size()).starts_with('.') &&
               wanted.substr(suite.size() + 1) == full_name();
    }
    void tell() const {
        testing::RegisterTest(std::string(suite).c_str(), full_name().c_str(), nullptr, nullptr,
                              file, line,
                              [run = run]() -> testing::Test* { return new sentence_test(run); });
    }
};

/// Filled before main(), in the order of the files.
std::vector<test>& tests() {
    static std::vector<test> all;
    return all;
}

std::string not_true(const char* condition) {
    return std::string("Value of: ") + condition + "\n  Actual: false\nExpected: true";
}

}  // namespace

long stress_count(long full) {
    const char* set = std::getenv("WEFT_STRESS");
    const double million_is = set != nullptr ? std::strtod(set, nullptr) : 20'000;
    return std::max(1L, static_cast<long>(static_cast<double>(full) * million_is / 1e6));
}

bool add(std::string_view sentence, std::string_view variant, const char* file, int line,
         body run) {
    const std::size_t colon = sentence.find(": ");
    const std::string_view name = colon == sentence.npos ? sentence : sentence.substr(colon + 2);
    tests().push_back({sentence.substr(0, colon), name, variant, file, line, run});
    return true;
}

bool register_only(const std::string& name) {
    const auto called = [&](const test& t) { return t.is_called(name); };
    if (const auto found = std::ranges::find_if(tests(), called); found != tests().end()) {
        found->tell();
        return true;
    }
    for (const test& t : tests()) t.tell();
    return false;
}

void check_failed(const char* condition, const char* file, int line) {
    GTEST_MESSAGE_AT_(file, line, "", testing::TestPartResult::kNonFatalFailure)
        << not_true(condition);
}

void require_failed(const char* condition, const char* file, int line) {
    GTEST_MESSAGE_AT_(file, line, "", testing::TestPartResult::kFatalFailure)
        << not_true(condition);
}

}  // namespace weft_test
