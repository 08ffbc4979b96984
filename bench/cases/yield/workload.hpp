// workload.hpp - fibers that let each other run: two of them very often, ten thousand of them once.
//
// two:  two fibers yield a million times each. One yield is one switch to the other.
// many: ten thousand fibers yield once each. The clock runs until all have ended; their creation is
//       inside of it or before. Cold is the first time in a process, warm the median of later ones.
//
// Every fiber counts its turns, and the sums must be right.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "support/apart.hpp"
#include "support/row.hpp"

namespace bench::yields {

/// Plays once; the clock is started and stopped by the player, and says nanoseconds.
struct pair {
    std::uint64_t yields;  // of each
    std::uint64_t turns = 0;
    stopwatch clock = {};
};

template <class Play>
void measure_two(const settings& how, std::string_view row, std::uint64_t yields, Play play) {
    const auto played = [&](std::uint64_t count) {
        pair p{count};
        play(p);
        require(p.turns == 2 * count, row);
        return p.clock.nanoseconds() / (2 * static_cast<double>(count));
    };
    played(how.count(yields / 10));
    report({row, "ns"}, played(how.count(yields)));
}

struct crowd {
    std::uint64_t fibers;
    bool inside;  // the clock
    std::uint64_t turns = 0;
    stopwatch clock = {};
};

/// A player creates the fibers, which count a turn, yield, and count another.
template <class Play>
void measure_many(const settings& how, std::string_view row, Play play) {
    const std::uint64_t fibers = how.quick ? 100 : 10'000;
    for (const bool inside : {true, false}) {
        const std::string_view at[2] = {inside ? "cold, with creation" : "cold, created before",
                                        inside ? "warm, with creation" : "warm, created before"};
        const std::string failed = apart([&] {
            const auto played = [&] {
                crowd c{fibers, inside};
                play(c);
                require(c.turns == 2 * fibers, row);
                return c.clock.nanoseconds() / 1e6;
            };
            report({row, "ms", at[0]}, played());
            std::vector<double> later;
            for (int i = 0; i < 7; ++i) later.push_back(played());
            std::ranges::sort(later);
            report({row, "ms", at[1]}, later[3]);
        });
        if (!failed.empty())
            for (const std::string_view column : at) report_none({row, "ms", column}, failed);
    }
}

}  // namespace bench::yields
