// test_points.hpp - threads that give up their CPU between the two halves of a protocol.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sched.h>

#include <weft/base/test_point.hpp>

namespace weft_test {

/// While one lives, threads yield at every third of the marked points that they come by.
class with_test_points {
public:
    with_test_points() { weft::detail::at_test_points = &pass; }
    with_test_points(const with_test_points&) = delete;
    with_test_points& operator=(const with_test_points&) = delete;
    ~with_test_points() { weft::detail::at_test_points = nullptr; }

private:
    static void pass(const char*) noexcept {
        thread_local unsigned count = 0;
        if (++count % 3 == 0) ::sched_yield();
    }
};

}  // namespace weft_test
