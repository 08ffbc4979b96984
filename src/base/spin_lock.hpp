// spin_lock.hpp - a lock that is held for a few instructions.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

#include <weft/base/version.hpp>

namespace weft::inline v0::detail {

class spin_lock {
public:
    void lock() noexcept {
        while (locked_.exchange(true, std::memory_order_acquire)) wait();
    }
    void unlock() noexcept { locked_.store(false, std::memory_order_release); }

private:
    void wait() const noexcept;

    std::atomic<bool> locked_ = false;
};

}  // namespace weft::inline v0::detail
