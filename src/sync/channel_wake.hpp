// channel_wake.hpp - waking those whom a channel has claimed, once its lock is dropped.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include <weft/sync/detail/channel_core.hpp>

namespace weft::inline v0::detail {

inline void wake(waiter* one) noexcept {
    if (one != nullptr) one->wake();
}

// Those linked by next, each claimed. Its link is gone when it is woken.
inline void wake_chain(channel_waiter* first) noexcept {
    while (first != nullptr) std::exchange(first, first->next)->who->wake();
}

inline channel_waiter* claim_all(channel_waiters& waiting, verdict what,
                                 channel_waiter* chain) noexcept {
    while (channel_waiter* const one = waiting.claim_first()) {
        one->what = what;
        one->next = chain;
        chain = one;
    }
    return chain;
}

}  // namespace weft::inline v0::detail
