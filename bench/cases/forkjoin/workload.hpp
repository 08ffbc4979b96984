// workload.hpp - what the case `forkjoin` plays, on one and on two workers: trees of children that
// their parents wait for.
//
//   fib       fib(30): each call from 2 on opens a group, adds a child for each of the two below,
//             and waits for both; 1,346,268 groups, 2,692,536 children
//   skynet    a ten-ary tree with a million leaves, a group for each inner node
//   cancel    100,000 parked children are cancelled and waited for
//   deadline  a deadline scope around a call that does not wait
//
// Every answer is checked.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "support/row.hpp"

namespace bench::forkjoin {

inline constexpr unsigned fib_of = 30;
inline constexpr std::uint64_t leaves = 1'000'000;

inline std::uint64_t fib_alone(unsigned n) {
    std::uint64_t a = 0;
    std::uint64_t b = 1;
    for (; n != 0; --n) b += std::exchange(a, b);
    return a;
}

inline std::string workers(unsigned count) { return "P = " + std::to_string(count); }

}  // namespace bench::forkjoin
