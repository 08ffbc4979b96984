// test_point.hpp - places where a test may slow a thread down.
//
// WEFT_TEST_POINT("name") stands between the two halves of a protocol. In builds with WEFT_CHECKS=1
// a stress test installs a function that is called there, to yield the processor or to spin and so
// to let the race happen; elsewhere it is nothing.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

#include <weft/base/version.hpp>

namespace weft::inline v0::detail {

using test_point_function = void (*)(const char* name) noexcept;

/// nullptr: nothing happens. Any thread may call it at any time.
inline std::atomic<test_point_function> at_test_points = nullptr;

inline void test_point(const char* name) noexcept {
    if (test_point_function function = at_test_points.load(std::memory_order_relaxed))
        function(name);
}

}  // namespace weft::inline v0::detail

#if defined(WEFT_CHECKS) && WEFT_CHECKS
#define WEFT_TEST_POINT(name) ::weft::detail::test_point(name)
#else
/// A place between the two halves of a protocol, where tests let others run; nothing elsewhere.
#define WEFT_TEST_POINT(name) void()
#endif
