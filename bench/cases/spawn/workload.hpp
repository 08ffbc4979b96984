// workload.hpp - a million fibers that do next to nothing.
//
// in batches: at most 1,024 are outstanding. Somebody creates as many, lets them all run and end,
//             and goes on, until there were a million. Reported is the second such round of a
//             process, when nothing has to be got from the system any more.
// at once:    a million are created, then they run, in a process that has created none before.
//
// Every fiber counts itself, and the sums must be right. What is reported is the time of one.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "support/apart.hpp"
#include "support/memory.hpp"
#include "support/row.hpp"

namespace bench::spawns {

inline constexpr std::uint64_t batch = 1'024;

/// What a player is asked for: it counts the fibers that ran.
struct task {
    std::uint64_t fibers;
    std::uint64_t ran = 0;
};

template <class Play>
double timed(std::string_view row, std::uint64_t fibers, Play& play) {
    task r{fibers};
    stopwatch clock;
    clock.start();
    play(r);
    clock.stop();
    require(r.ran == fibers, row);
    return clock.nanoseconds() / static_cast<double>(fibers);
}

inline std::uint64_t count_of(const settings& how, std::uint64_t fibers) {
    return (how.quick ? 10'000 : fibers) / batch * batch;
}

/// play(task&) creates all fibers, at most `batch` outstanding.
template <class Play>
void measure_batches(const settings& how, std::string_view row, Play play,
                     std::uint64_t fibers = 1'000'000) {
    const std::uint64_t count = count_of(how, fibers);
    const std::string failed = apart([&] {
        timed(row, count, play);
        report({row, "ns"}, timed(row, count, play));
    });
    if (!failed.empty()) report_none({row, "ns"}, failed);
}

/// play(task&) creates all fibers and then lets them run. `bytes` is what each needs, roughly.
template <class Play>
void measure_at_once(const settings& how, std::string_view row, std::uint64_t bytes, Play play,
                     std::uint64_t fibers = 1'000'000) {
    const std::uint64_t count = count_of(how, fibers);
    if (count * bytes / 1024 > available_kibibytes())
        return report_none({row, "ns"}, "not enough memory");
    const std::string failed = apart([&] {
        report({row, "ns"}, timed(row, count, play), fibers < 1'000'000 ? "only 100,000" : "");
    });
    if (!failed.empty()) report_none({row, "ns"}, failed);
}

}  // namespace bench::spawns
