// workload.hpp - what the case `pool` plays: yields, spawns, a tree of a million leaves, rings; on
// one and on two workers.
//
//   yields   a thousand fibers (and sixteen) that yield, ten million times together
//   spawn    a million trivial fibers, at most 1,024 outstanding; the second time counts
//   skynet   a ten-ary tree: a fiber starts ten children, waits for them and adds up what they
//            give; the leaves give their numbers
//   ring     R cycles of N = 8 fibers, each with a gate; a message goes round every cycle in each
//            round (cases/ring). Who begins moves on by one a round, and wakes are counted.
//
// Every answer is checked.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "support/row.hpp"

namespace bench::pools {

inline constexpr std::uint64_t batch = 1024;
inline constexpr std::uint64_t leaves = 1'000'000;
inline constexpr std::uint64_t sum_of_leaves = leaves * (leaves - 1) / 2;
inline constexpr std::uint64_t length = 8;  // N

inline std::string workers(unsigned count) { return "P = " + std::to_string(count); }

}  // namespace bench::pools
