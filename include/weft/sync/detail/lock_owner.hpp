// lock_owner.hpp - who holds a lock, in builds with WEFT_CHECKS=1; elsewhere it is nothing.
//
// Of those who read under a shared lock one is remembered, the first that came while none was: for
// whoever waits to write waits for each of them.
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

class lock_reader {
public:
    /// Who reads: after it has the lock, and before it gives it up.
    void add() noexcept {
        const void* none = nullptr;
        if (get() == nullptr)
            one_.compare_exchange_strong(none, running_owner(), std::memory_order_relaxed);
    }
    void remove() noexcept {
        const void* me = running_owner();
        if (get() == me) one_.compare_exchange_strong(me, nullptr, std::memory_order_relaxed);
    }
    /// Whoever writes: nobody reads then, even if another gave up what it had taken.
    void forget() noexcept {
        if (get() != nullptr) one_.store(nullptr, std::memory_order_relaxed);
    }
    [[nodiscard]] const void* get() const noexcept { return one_.load(std::memory_order_relaxed); }

private:
    std::atomic<const void*> one_ = nullptr;  // relaxed: only the table of waits reads it
};

#else

class lock_reader {
public:
    void add() noexcept {}
    void remove() noexcept {}
    void forget() noexcept {}
    [[nodiscard]] const void* get() const noexcept { return nullptr; }
};

class lock_owner {
public:
    void refuse_again(const char*) const noexcept {}
    void take() noexcept {}
    void give(const char*) noexcept {}
    [[nodiscard]] const void* get() const noexcept { return nullptr; }
};

#endif

}  // namespace weft::inline v0::detail
