// workload.hpp - items that go from one fiber to another through a channel.
//
// ping-pong: two fibers and two channels of capacity 0; a number goes there and comes back, greater
//            by one. One item is one way.
// stream:    one fiber sends numbers through a channel of capacity 128, the other adds them up.
//
// What comes out at the end must be right.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "support/row.hpp"

namespace bench::channels {

inline constexpr std::size_t capacity = 128;

/// Plays once; the player starts and stops the clock.
struct game {
    std::uint64_t items;
    std::uint64_t answer = 0;
    stopwatch clock = {};
};

/// Items is how many go one way or the other: even.
template <class Play>
void measure_ping_pong(const settings& how, std::string_view row, std::uint64_t items, Play play) {
    const auto played = [&](std::uint64_t count) {
        game g{count + count % 2};
        play(g);
        require(g.answer == g.items, row);
        return g.clock.nanoseconds() / static_cast<double>(g.items);
    };
    played(how.count(items / 10));
    report({row, "ns"}, played(how.count(items)));
}

template <class Play>
void measure_stream(const settings& how, std::string_view row, std::uint64_t items, Play play) {
    const auto played = [&](std::uint64_t count) {
        game g{count};
        play(g);
        require(g.answer == count * (count + 1) / 2, row);
        return g.clock.nanoseconds() / static_cast<double>(g.items);
    };
    played(how.count(items / 10));
    report({row, "ns"}, played(how.count(items)));
}

}  // namespace bench::channels
