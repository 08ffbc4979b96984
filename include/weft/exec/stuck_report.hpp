// stuck_report.hpp - who waits for what, where nothing more can happen or somebody does not end.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <weft/base/version.hpp>

namespace weft::inline v0 {

/// Empty: nothing is stuck.
struct stuck_report {
    /// A line for each who cannot go on.
    std::vector<std::string> waiters;

    [[nodiscard]] explicit operator bool() const noexcept { return !waiters.empty(); }
    /// The lines, each ended by '\n'.
    [[nodiscard]] std::string text() const;
};

}  // namespace weft::inline v0
