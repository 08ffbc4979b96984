// workload.hpp - what the case `wake` measures: the time from a wake on one thread until whoever
// was woken runs on another.
//
//   spinning   two sides wake each other in turn, and nobody sleeps in between: half of a round
//   asleep     the target's thread has been asleep for long; from the wake to its first
//              instruction, the median of many
//   idle       the processor's time of a pool of two with nothing to do, over 2 s
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <vector>

#include "support/row.hpp"

namespace bench::wakes {

using clock = std::chrono::steady_clock;

/// Long enough for a thread that has nothing to do to fall asleep; without sleeping oneself.
inline void let_it_sleep() {
    const auto until = clock::now() + std::chrono::microseconds(200);
    while (clock::now() < until) {}
}

/// Of all threads of the program, so far.
inline double cpu_milliseconds() {
    timespec now{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

inline double median(std::vector<double>& all) {
    std::ranges::nth_element(all, all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2));
    return all[all.size() / 2];
}

}  // namespace bench::wakes
