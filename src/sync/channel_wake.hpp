// channel_wake.hpp - what a wait for a channel is called, and waking those whom it has claimed,
// once its lock is dropped.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include <weft/sync/detail/channel_core.hpp>

namespace weft::inline v0::detail {

inline constexpr wait_reason sends_to_channel{"sends to a channel"};
inline constexpr wait_reason receives_from_channel{"receives from a channel"};

inline void wake(waiter* one) noexcept {
    if (one != nullptr) one->wake();
}

/// Claimed ones, to be woken in the order in which they were added; linked by `next`.
class claimed_waiters {
public:
    void add(channel_waiter& claimed, verdict what) noexcept {
        claimed.what = what;
        claimed.next = nullptr;
        (last_ != nullptr ? last_->next : first_) = &claimed;
        last_ = &claimed;
    }
    void claim_all(channel_waiters& waiting, verdict what) noexcept {
        while (channel_waiter* const one = waiting.claim_first()) add(*one, what);
    }
    /// Each is gone once it is woken, and its link with it.
    void wake() noexcept {
        while (first_ != nullptr) std::exchange(first_, first_->next)->who->wake();
    }

private:
    channel_waiter* first_ = nullptr;
    channel_waiter* last_ = nullptr;
};

}  // namespace weft::inline v0::detail
