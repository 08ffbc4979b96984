// workload.hpp - what the case `wake` measures: the time from a wake on one thread until whoever
// was woken runs on another.
//
//   spinning   two sides wake each other in turn, and nobody sleeps in between: half of a round
//   asleep     the target's thread has been asleep for long; from the wake to its first
//              instruction, the median of many
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

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

inline double median(std::vector<double>& all) {
    std::ranges::nth_element(all, all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2));
    return all[all.size() / 2];
}

}  // namespace bench::wakes
