// workload.hpp - what a fiber costs that only waits.
//
// So many are created and parked, each in a function with a few locals, as far from its first frame
// as it happens to be. What the process's RSS has grown by, divided by their number, is reported;
// and how long it took to create and park one. Then all are woken, and must end.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "support/apart.hpp"
#include "support/memory.hpp"
#include "support/row.hpp"

namespace bench::parked {

/// A player: park(count) creates and parks them, wake() lets them end and says how many did.
/// make() returns one; `bytes` is what a fiber needs, roughly, `most` how many there can be.
template <class Make>
void measure(const settings& how, std::string_view row, std::uint64_t bytes, Make make,
             std::uint64_t most = 1'000'000, std::string_view why = {}) {
    const std::string times = std::string(row) + ", time";
    for (const std::uint64_t wanted : {100'000UL, 1'000'000UL}) {
        const std::string_view at = wanted == 100'000 ? "100,000" : "1,000,000";
        const auto none = [&](std::string_view reason) {
            report_none({row, "B", at}, reason);
            report_none({times, "ns", at}, reason);
        };
        if (wanted > most) {
            none(why);
            continue;
        }
        const std::uint64_t count = how.quick ? 1'000 : wanted;
        if (count * bytes / 1024 > available_kibibytes()) {
            none("not enough memory");
            continue;
        }
        const std::string failed = apart([&] {
            auto player = make(count);
            const std::uint64_t before = resident_kibibytes();
            stopwatch clock;
            clock.start();
            player.park();
            clock.stop();
            const std::uint64_t after = resident_kibibytes();
            const auto all = static_cast<double>(count);
            report({row, "B", at}, static_cast<double>(after - before) * 1024 / all);
            report({times, "ns", at}, clock.nanoseconds() / all);
            require(player.wake() == count, row);
        });
        if (!failed.empty()) none(failed);
    }
}

}  // namespace bench::parked
