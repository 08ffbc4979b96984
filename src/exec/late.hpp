// late.hpp - how long the end of a loop or a pool waits until it lists who has not ended.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>

#include <weft/exec/stuck_report.hpp>

namespace weft::inline v0::detail {

/// Of destructors. Tests set it lower.
inline std::atomic<std::chrono::nanoseconds> time_until_late{std::chrono::seconds(5)};

/// The report on stderr, below a line that says whose it is.
void list_late(const char* whose, const stuck_report& late) noexcept;

}  // namespace weft::inline v0::detail
