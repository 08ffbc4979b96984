// late.cpp - tells who has not ended, where something is destroyed.
//
// SPDX-License-Identifier: Apache-2.0
#include "exec/late.hpp"

#include <cstdio>
#include <string>

namespace weft::inline v0::detail {

void list_late(const char* whose, const stuck_report& late) noexcept {
    const auto waited = std::chrono::duration<double>(time_until_late.load());
    char seconds[32];
    std::snprintf(seconds, sizeof seconds, "%g", waited.count());
    const std::string text = std::string("weft: ") + whose + ": destroyed, and after " + seconds +
                             " s these have not ended:\n" + late.text(stuck_report::most_printed);
    std::fputs(text.c_str(), stderr);
}

}  // namespace weft::inline v0::detail
