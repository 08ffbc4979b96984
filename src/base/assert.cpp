// assert.cpp - how misuse is reported.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/base/assert.hpp>

#include <cstdlib>

#include "base/report.hpp"

namespace weft::inline v0::detail {

void fail(const char* message, const char* name) noexcept {
    report line;
    line.text("weft: ").text(message);
    if (name != nullptr && *name != '\0') line.text(" ('").text(name).text("')");
    line.text("\n").write();
    std::abort();
}

}  // namespace weft::inline v0::detail
