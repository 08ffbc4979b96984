// stuck_report.hpp - who waits for what, where nothing more can happen or somebody does not end.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <weft/base/version.hpp>

namespace weft::inline v0 {

/// Empty: nothing is stuck.
struct stuck_report {
    /// A line for each who cannot go on.
    std::vector<std::string> waiters;
    /// How many lines weft itself prints, where an executor ends with somebody in it.
    static constexpr std::size_t most_printed = 100;

    [[nodiscard]] explicit operator bool() const noexcept { return !waiters.empty(); }
    /// The lines, each ended by '\n': so many of them, and how many more there are.
    [[nodiscard]] std::string text(std::size_t most = static_cast<std::size_t>(-1)) const;
};

}  // namespace weft::inline v0
