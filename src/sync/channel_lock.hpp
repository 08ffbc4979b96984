// channel_lock.hpp - the lock of a channel, for those who tell threads apart.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <weft/base/thread_block.hpp>
#include <weft/sync/detail/channel_core.hpp>

namespace weft::inline v0::detail {

[[gnu::always_inline]] inline void channel_core::lock() const noexcept {
    lock_.lock(&this_thread_block());
}

// Under the lock.
[[gnu::always_inline]] inline std::uint32_t channel_core::what_can_be_done() const noexcept {
    if (closed_) [[unlikely]]
        return can_send | can_receive;
    const bool no_receivers = receivers_.empty();
    const bool no_senders = senders_.empty();
    std::uint32_t can = 0;
    if (size_ < capacity_)
        can |= can_send | (no_receivers && free_ != nullptr ? easy_ & easy_send : 0U);
    if (!no_receivers) can |= can_send;
    if (first_ != nullptr) can |= can_receive | (no_senders ? easy_ & easy_receive : 0U);
    if (!no_senders) can |= can_receive;
    return can;
}

[[gnu::always_inline]] inline void channel_core::unlock() const noexcept {
    can_.store(what_can_be_done(), std::memory_order_relaxed);
    lock_.unlock();
}

}  // namespace weft::inline v0::detail
