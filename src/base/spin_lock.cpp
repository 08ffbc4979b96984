// spin_lock.cpp - see spin_lock.hpp.
//
// SPDX-License-Identifier: Apache-2.0
#include "base/spin_lock.hpp"

#include <sched.h>

#include "base/pause.hpp"

namespace weft::inline v0::detail {

// Whoever holds it may have lost its CPU.
[[gnu::noinline]] void spin_lock::wait() const noexcept {
    for (int i = 0; locked_.load(std::memory_order_relaxed); ++i) {
        if (i < 64)
            pause();
        else
            ::sched_yield();
    }
}

}  // namespace weft::inline v0::detail
