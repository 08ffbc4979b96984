// workload.hpp - two sides hand control to each other, and each counts its own turns.
//
// A row is a function that plays a match: it makes what it needs, calls begin(), lets the two sides
// take `turns` turns each, calls end(), and says how many each has counted. A turn ends with a
// transfer of control, so a match of two has 2 x turns switches; what is reported is the time of
// one. The one or two extra switches in which the sides end are inside the clock and not counted.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "support/row.hpp"

namespace bench {

struct match {
    std::uint64_t turns;       // for each side
    std::uint64_t first = 0;   // turns that the sides have counted
    std::uint64_t second = 0;  //
    stopwatch clock = {};

    void begin() { clock.start(); }
    void end() { clock.stop(); }
};

/// Plays a short match to warm up, and then the one that counts. `switches` is how many a pair of
/// turns takes: 2 where the sides switch to each other, 4 where each goes back to a third.
template <class Play>
void play_row(const settings& how, std::string_view row, std::uint64_t turns, Play play,
              double switches = 2) {
    const auto played = [&](std::uint64_t count) {
        match m{count};
        play(m);
        require(m.first == count && m.second == count, row);
        return m.clock.nanoseconds() / (switches * static_cast<double>(count));
    };
    played(how.count(turns / 10));
    report({row, "ns"}, played(how.count(turns)));
}

}  // namespace bench
