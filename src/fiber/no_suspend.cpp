// no_suspend.cpp - see no_suspend.hpp.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/fiber/no_suspend.hpp>

#include "fiber/fiber_extras.hpp"
#include "fiber/fiber_worker.hpp"

namespace weft::inline v0 {

no_suspend::no_suspend(const char* scope_name) {
    detail::fiber_worker* const worker = detail::fiber_worker::here();
    active_ = worker != nullptr && worker->current != nullptr;
    if (!active_) return;
    detail::fiber_block& me = *worker->current;
    outer_ = std::exchange(detail::extras_of(me).no_suspend, scope_name);
    me.attention.fetch_or(detail::no_suspend_bit, std::memory_order_relaxed);
}

no_suspend::~no_suspend() {
    if (!active_) return;
    detail::fiber_block& me = *detail::fiber_worker::here()->current;
    me.extras->no_suspend = outer_;
    if (outer_ == nullptr)
        me.attention.fetch_and(static_cast<std::uint8_t>(~detail::no_suspend_bit),
                               std::memory_order_relaxed);
}

}  // namespace weft::inline v0
