// workload.hpp - one fiber selects among four channels of capacity 0, to each of which another
// fiber sends numbers. The sum of all must be right.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "support/row.hpp"

namespace bench::selects {

inline constexpr std::uint64_t senders = 4;

/// Plays once; the player starts and stops the clock.
struct game {
    std::uint64_t items;  // of each sender
    std::uint64_t sum = 0;
    stopwatch clock = {};
};

template <class Play>
void measure(const settings& how, std::string_view row, std::uint64_t items, Play play) {
    const auto played = [&](std::uint64_t count) {
        game g{count};
        play(g);
        require(g.sum == senders * (count * (count + 1) / 2), row);
        return g.clock.nanoseconds() / static_cast<double>(senders * count);
    };
    played(how.count(items / 10));
    report({row, "ns"}, played(how.count(items)));
}

}  // namespace bench::selects
