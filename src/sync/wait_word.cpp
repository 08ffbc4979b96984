// wait_word.cpp - see wait_word.hpp.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/sync/detail/wait_word.hpp>

#include <weft/fiber/cancel.hpp>

#include "sync/spinning.hpp"

namespace weft::inline v0::detail {

std::uint64_t wait_word::enter_slowly() noexcept {
    spin_wait spin;
    std::uint64_t seen = word_.load(std::memory_order_relaxed);
    for (;;) {
        if ((seen & guarded) != 0) {
            spin.once();
            seen = word_.load(std::memory_order_relaxed);
        } else if (word_.compare_exchange_weak(seen, seen | guarded, std::memory_order_acquire,
                                               std::memory_order_relaxed)) {
            return seen;
        }
    }
}

void throw_cancelled() {
    this_fiber::throw_if_cancelled();
    throw cancelled(cancel_reason::requested);  // the scope was left by another already
}

}  // namespace weft::inline v0::detail
