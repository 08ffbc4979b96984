// no_suspend.cpp - see no_suspend.hpp.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/fiber/no_suspend.hpp>

#include "fiber/fiber_extras.hpp"
#include "fiber/fiber_worker.hpp"

namespace weft::inline v0 {

namespace {

detail::fiber_block* running() noexcept {
    detail::fiber_worker* const worker = detail::fiber_worker::here();
    return worker != nullptr ? worker->current : nullptr;
}

void enter(detail::fiber_block& me, const char* name) {
    detail::fiber_extras& extras = detail::extras_of(me);
    extras.no_suspend = name;
    ++extras.no_suspend_depth;
    me.attention.fetch_or(detail::no_suspend_bit, std::memory_order_relaxed);
}

void leave(detail::fiber_block& me, const char* outer) noexcept {
    me.extras->no_suspend = outer;
    if (--me.extras->no_suspend_depth == 0)
        me.attention.fetch_and(static_cast<std::uint8_t>(~detail::no_suspend_bit),
                               std::memory_order_relaxed);
}

}  // namespace

no_suspend::no_suspend(const char* scope_name) {
    detail::fiber_block* const me = running();
    active_ = me != nullptr;
    if (!active_) return;
    outer_ = detail::extras_of(*me).no_suspend;
    enter(*me, scope_name);
}

no_suspend::~no_suspend() {
    if (active_) leave(*running(), outer_);
}

namespace detail {

void forbid_suspending(const char* name) {
    if (fiber_block* const me = running()) enter(*me, name);
}

// Which of several is left is not known: the name of the last one entered stays.
void allow_suspending() noexcept {
    if (fiber_block* const me = running()) leave(*me, me->extras->no_suspend);
}

}  // namespace detail
}  // namespace weft::inline v0
