// latch.hpp - a count that goes down to zero once, and those who wait for that; as std::latch.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include <weft/sync/detail/wait_word.hpp>

namespace weft::inline v0 {

/// May be destroyed as soon as a wait() has returned, if nobody else waits.
class latch {
public:
    constexpr explicit latch(std::ptrdiff_t expected) noexcept
        : word_(static_cast<std::uint64_t>(expected)) {
        WEFT_ASSERT(expected >= 0 && expected <= max(), "latch: begins below zero or above max()");
    }
    latch(const latch&) = delete;
    latch& operator=(const latch&) = delete;
    /// Aborts: if somebody waits.
    ~latch() { WEFT_ASSERT(!word_.has_waiters(), "latch: destroyed while somebody waits for it"); }

    /// How many can be counted down from at most.
    [[nodiscard]] static constexpr std::ptrdiff_t max() noexcept {
        return (std::ptrdiff_t{1} << 61) - 1;
    }

    /// Aborts: below zero.
    /// Suspends: never. From: any fiber or thread. Fails: never.
    void count_down(std::ptrdiff_t update = 1) noexcept { static_cast<void>(arrive(update)); }

    /// Suspends: never. From: any fiber or thread. Fails: by false, if it is not zero yet.
    [[nodiscard]] bool try_wait() const noexcept {
        return word_.load(std::memory_order_acquire) == 0;
    }

    /// Suspends: maybe. Cancel: throws `cancelled`. From: any fiber or thread. Fails: never.
    void wait() const;

    /// Suspends: maybe. Cancel: ignored (it has arrived, and others count on it). From: any fiber
    /// or thread. Fails: never.
    void arrive_and_wait(std::ptrdiff_t update = 1);

private:
    [[nodiscard]] bool arrive(std::ptrdiff_t update) noexcept;  // whether it is zero now
    [[nodiscard]] wait_outcome wait_for_zero(const wait_reason& reason) const;

    mutable detail::wait_word word_;
};

}  // namespace weft::inline v0
