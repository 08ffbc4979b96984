// test_points.hpp - threads that give up their CPU, or stand, between the halves of a protocol.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sched.h>

#include <atomic>
#include <cstdint>
#include <cstring>

#include <weft/base/test_point.hpp>

namespace weft_test {

/// While one lives, threads yield at about every third of the marked points that they come by. At
/// none in step: one that goes round three points would yield at the same each time, and if that
/// is under a spin lock, on one CPU, nobody else would ever get it.
class with_test_points {
public:
    with_test_points() { weft::detail::at_test_points = &pass; }
    with_test_points(const with_test_points&) = delete;
    with_test_points& operator=(const with_test_points&) = delete;
    ~with_test_points() { weft::detail::at_test_points = nullptr; }

private:
    static void pass(const char*) noexcept {
        thread_local std::uint32_t state = 1;
        state = state * 1'664'525 + 1'013'904'223;
        if ((state >> 16) % 3 == 0) ::sched_yield();
    }
};

/// Stops the first thread that comes to a point of this name until it is let go. One at a time.
class hold_at {
public:
    explicit hold_at(const char* name) {
        name_ = name;
        stage_ = 0;
        weft::detail::at_test_points = &arrive;
    }
    hold_at(const hold_at&) = delete;
    hold_at& operator=(const hold_at&) = delete;
    ~hold_at() {
        let_go();
        weft::detail::at_test_points = nullptr;
    }
    static bool somebody_is_held() { return stage_ == 1; }
    static void wait_until_held() {
        while (stage_ == 0) ::sched_yield();
    }
    static void let_go() { stage_ = 2; }
    static bool is_over() { return stage_ == 2; }

private:
    static void arrive(const char* name) noexcept {
        int nobody = 0;
        if (std::strcmp(name, name_) == 0 && stage_.compare_exchange_strong(nobody, 1))
            while (stage_ != 2) ::sched_yield();
    }
    static inline std::atomic<const char*> name_ = "";
    static inline std::atomic<int> stage_ = 0;
};

}  // namespace weft_test
