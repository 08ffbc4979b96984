// lock_owner.hpp - who holds a lock, in builds with WEFT_CHECKS=1; elsewhere it is nothing.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

#include <weft/base/assert.hpp>
#include <weft/fiber/detail/running_owner.hpp>

namespace weft::inline v0::detail {

#if defined(WEFT_CHECKS) && WEFT_CHECKS

class lock_owner {
public:
    void refuse_again(const char* message) const noexcept {
        WEFT_ASSERT(get() != running_owner(), message);
    }
    void take() noexcept { owner_.store(running_owner(), std::memory_order_relaxed); }
    void give(const char* message) noexcept {
        WEFT_ASSERT(get() == running_owner(), message);
        owner_.store(nullptr, std::memory_order_relaxed);
    }
    [[nodiscard]] const void* get() const noexcept {
        return owner_.load(std::memory_order_relaxed);
    }

private:
    std::atomic<const void*> owner_ = nullptr;  // relaxed: one's own value is seen by oneself
};

#else

class lock_owner {
public:
    void refuse_again(const char*) const noexcept {}
    void take() noexcept {}
    void give(const char*) noexcept {}
    [[nodiscard]] const void* get() const noexcept { return nullptr; }
};

#endif

}  // namespace weft::inline v0::detail
