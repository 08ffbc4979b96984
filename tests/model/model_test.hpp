// model_test.hpp - a scenario that must hold, and a mutant that must be caught, as tests say it.
//
// With WEFT_MODEL_SCHEDULE="a5 b3 ..." in the environment, as a failure prints it, only that
// schedule is run, and its trace printed: choose the test with --gtest_filter.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>

#include <weft/base/sanitizer.hpp>

#include "explorer.hpp"
#include "weft_test.hpp"

namespace weft_model {

inline std::string text_of(const report& r) {
    constexpr std::size_t enough = 4000;
    std::string text = r.failure + "\nschedule: " + r.schedule + "\n";
    if (r.trace.size() <= enough) return text + r.trace;
    return text + r.trace.substr(0, enough) + "...\n";
}

/// In every schedule: first with at most 2 preemptions, so that a failure is short; then with as
/// many as the limits say.
template <class Scenario>
void expect_holds(limits l) {
    if (const char* const schedule = std::getenv("WEFT_MODEL_SCHEDULE")) {
        const report r = replay<Scenario>(l, schedule);
        EXPECT_TRUE(r.passed());
        std::puts(text_of(r).c_str());
        return;
    }
    const bool slow = WEFT_TSAN || std::string(WEFT_TEST_EMULATOR) != "";
    const bool soak = weft_test::stress_count(1'000'000) >= 1'000'000;
    unsigned most = soak && l.in_soak > l.preemptions ? l.in_soak : l.preemptions;
    if (slow) --most;  // the same code, many times slower, and nothing more to be seen
    for (l.preemptions = most < 2 ? most : 2; l.preemptions <= most; ++l.preemptions) {
        const report r = explore<Scenario>(l);
        ASSERT_TRUE(r.passed()) << text_of(r);
        std::printf("%u preemptions: %llu schedules of up to %zu steps\n", l.preemptions,
                    static_cast<unsigned long long>(r.runs), r.longest);
    }
}

/// A mutant: some schedule fails, and in such a way. The same schedule fails again.
template <class Scenario>
void expect_caught(limits l, const std::string& failure) {
    const report r = explore<Scenario>(l);
    ASSERT_FALSE(r.passed()) << "the mutant was not caught in " << r.runs << " schedules";
    EXPECT_NE(r.failure.find(failure), std::string::npos) << text_of(r);
    const report again = replay<Scenario>(l, r.schedule);
    EXPECT_EQ(again.failure, r.failure);
    EXPECT_EQ(again.schedule, r.schedule);
    std::printf("caught after %llu schedules: %s, by %s\n", static_cast<unsigned long long>(r.runs),
                r.failure.c_str(), r.schedule.c_str());
}

}  // namespace weft_model
