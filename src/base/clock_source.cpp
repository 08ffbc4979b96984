// clock_source.cpp - the clock that everything uses unless told otherwise.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/base/clock_source.hpp>

namespace weft::inline v0 {

clock_source& steady_clock_source() noexcept {
    struct steady final : clock_source {
        time_point now() noexcept override { return std::chrono::steady_clock::now(); }
    };
    static steady clock;
    return clock;
}

}  // namespace weft::inline v0
