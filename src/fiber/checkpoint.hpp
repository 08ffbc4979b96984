// checkpoint.hpp - what a fiber is asked at each call that it might make without ever waiting:
// whether its turn is over, and whether it was asked to stop.
//
// The answer is mostly twice no, and that is told here by a few loads; all else is asked by
// yield_if_due_rarely() and this_fiber::stop_requested().
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fiber/fiber_extras.hpp"
#include "fiber/fiber_worker.hpp"

namespace weft::inline v0::detail {

/// True: neither, and this call is counted. False: ask the two.
[[nodiscard, gnu::always_inline]] inline bool passes_at_once(fiber_worker& worker,
                                                             const fiber_block& me) noexcept {
    constexpr std::uint8_t asks = cancelled_bit | unarmed_bit | unenlisted_bit;
    if ((me.attention.load(std::memory_order_seq_cst) & asks) != 0) return false;
    if (me.home->stopping_.load(std::memory_order_acquire)) return false;
    if (me.extras != nullptr && me.extras->deadline != nullptr) return false;
    if (worker.slice.rare_countdown == 1) return false;
    --worker.slice.rare_countdown;
    return true;
}

}  // namespace weft::inline v0::detail
