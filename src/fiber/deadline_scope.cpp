// deadline_scope.cpp - see deadline_scope.hpp.
//
//   the timer's thread                                  the fiber, when it leaves
//   fire(), under the queue's lock: returns the scope   disarm: true: it will never run
//   run(): cancels                                      false: it was fired, so it runs some time:
//   under the fiber's lock: has run; claims the one     waits until it has
//   who waits for that; then wakes it
//
// The fiber is alive until then, so its executor does not end with the scope still queued.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/fiber/detail/deadline_scope.hpp>

#include <cstddef>

#include <weft/base/assert.hpp>
#include <weft/base/test_point.hpp>
#include <weft/fiber/suspend.hpp>

#include "fiber/fiber_life.hpp"
#include "fiber/scope_chain.hpp"

namespace weft::inline v0::detail {

namespace {
constexpr wait_reason leaves{"leaves a scope whose deadline passes at this moment", false};
}

deadline_scope::deadline_scope(time_point deadline, time_point now, cancel_scope::shield shielded)
    : scope_(shielded), deadline_(deadline), outer_(nullptr), timer_(&fire) {
    fiber_block& me = scope_.owner_;
    outer_ = std::exchange(me.extras->deadline, this);
    if (deadline == no_deadline) {
        state_ = state::late;  // nothing will ever be armed
    } else if (deadline <= now) {
        state_ = state::late;
        scope_.cancel(cancel_reason::timed_out);
    } else if ((me.attention.load(std::memory_order_relaxed) & unarmed_bit) == 0) {
        me.attention.fetch_or(unarmed_bit, std::memory_order_relaxed);
    }
}

deadline_scope::~deadline_scope() {
    fiber_block& me = scope_.owner_;
    if (state_ == state::fired || (state_ == state::armed && !timer_queue::disarm(timer_)))
        wait_until_run();
    me.extras->deadline = outer_;  // unarmed_bit stays: the next wait finds that nobody needs it
}

// It is the innermost scope: the bit speaks of it.
bool deadline_scope::has_fired() const noexcept {
    enlist_if_cancelled(scope_.owner_);
    return scope_.owner_.is_cancelled() && is_late();
}

bool deadline_scope::is_late() const noexcept {
    const block_lock lock(scope_.owner_);
    return scope_chain::effective(scope_) == cancel_reason::timed_out;
}

// --- the timer

void deadline_scope::arm(time_point now) noexcept {
    if (deadline_ <= now) {
        state_ = state::late;
        return scope_.cancel(cancel_reason::timed_out);
    }
    state_ = state::armed;
    detail::arm(*fiber_worker::here(), timer_, deadline_);
}

void arm_deadlines(fiber_block& me) noexcept {
    me.attention.fetch_and(static_cast<std::uint8_t>(~unarmed_bit), std::memory_order_relaxed);
    if (me.extras->deadline == nullptr) return;
    const time_point now = me.home->clock().now();
    for (deadline_scope* one = me.extras->deadline; one != nullptr; one = one->outer_)
        if (one->state_ == deadline_scope::state::unarmed) one->arm(now);
}

void disarm_deadlines(fiber_block& me) noexcept {
    if (me.extras == nullptr) return;
    for (deadline_scope* one = me.extras->deadline; one != nullptr; one = one->outer_) {
        if (one->state_ != deadline_scope::state::armed) continue;
        if (!timer_queue::disarm(one->timer_)) {
            one->state_ = deadline_scope::state::fired;  // its queue may be gone when it is left
            continue;
        }
        one->state_ = deadline_scope::state::unarmed;
        me.attention.fetch_or(unarmed_bit, std::memory_order_relaxed);
    }
}

void cancel_late_deadlines(fiber_block& me) noexcept {
    const time_point now = me.home->clock().now();
    for (deadline_scope* one = me.extras->deadline; one != nullptr; one = one->outer_)
        if (one->state_ == deadline_scope::state::armed && one->deadline_ <= now)
            one->scope_.cancel(cancel_reason::timed_out);
}

runnable* deadline_scope::fire(timer_node& node) noexcept {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winvalid-offsetof"
    return reinterpret_cast<deadline_scope*>(reinterpret_cast<std::byte*>(&node) -
                                             offsetof(deadline_scope, timer_));
#pragma GCC diagnostic pop
}

runnable* deadline_scope::run() noexcept {
    fiber_block& owner = scope_.owner_;
    WEFT_TEST_POINT("deadline_scope: has fired");
    scope_.cancel(cancel_reason::timed_out);
    waiter* woken = nullptr;
    {
        const block_lock lock(owner);
        has_run_ = true;
        if (leaver_ != nullptr && leaver_->claim()) woken = leaver_;
    }
    if (woken != nullptr) woken->wake();
    return nullptr;
}

void deadline_scope::wait_until_run() noexcept {
    wait(leaves, no_deadline, [this](waiter& me) noexcept {
        const block_lock lock(scope_.owner_);
        if (has_run_) return false;
        leaver_ = &me;
        return true;
    });
}

}  // namespace weft::inline v0::detail
