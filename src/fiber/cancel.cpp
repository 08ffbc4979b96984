// cancel.cpp - a fiber's chain of cancel scopes, and the bit in its block that sums them up.
//
// A canceller sets the reason under the block's lock, then the bit, then looks whether the fiber
// waits; a fiber that begins to wait says so, then looks at the bit (detail/wait_state.hpp). Either
// sees the other. Stop callbacks run at the end, without any lock.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/fiber/cancel.hpp>

#include <sched.h>

#include <optional>

#include <weft/base/assert.hpp>
#include <weft/base/test_point.hpp>
#include <weft/fiber/detail/swapped.hpp>

#include "fiber/fiber_life.hpp"
#include "fiber/fiber_list.hpp"
#include "fiber/fiber_worker.hpp"
#include "fiber/scope_chain.hpp"

namespace weft::inline v0 {

using detail::fiber_block;
using detail::fiber_extras;

namespace detail {

void block_lock::wait() noexcept {
    do
        while (block_.locked.load(std::memory_order_relaxed)) ::sched_yield();
    while (block_.locked.exchange(true, std::memory_order_acquire));
}

namespace {

// Whether another thread may run the fiber now; with its lock held.
bool runs_elsewhere(const fiber_block& block) noexcept {
    const worker* const here = this_thread_block().runs_for;
    return here == nullptr || !here->local || &here->home != block.home;
}

// By copies of the sources: a callback may end the scope that one belongs to.
void tell(const sources_to_tell& told) noexcept {
    for (std::size_t i = 0; i < told.count; ++i) told.all[i]->request_stop();
}

}  // namespace

void act_on_reason(fiber_block& block, const sources_to_tell& told) noexcept {
    WEFT_TEST_POINT("cancel: the bit is set");
    const bool won = block.state.cancel(
        block.closed, [&block] { return block.is_cancelled(); },
        [&block] { return block_lock(block); }, [&block] { return runs_elsewhere(block); });
    if (won) block.wake();
    tell(told);
    for (bool may_be_more = told.count == sources_to_tell::most; may_be_more;) {
        sources_to_tell others;
        {
            const block_lock lock(block);
            others = scope_chain::sources(block);
        }
        tell(others);
        may_be_more = others.count == sources_to_tell::most;
    }
}

void enlist(fiber_block& me) noexcept {
    me.operate(me.callable(), birth_operation::enlist);
    me.attention.fetch_and(static_cast<std::uint8_t>(~unenlisted_bit), std::memory_order_release);
}

bool request_stop(fiber_block& block, cancel_reason reason) noexcept {
    cancel_round round;
    return round.stop(block, reason);
}

}  // namespace detail

std::error_code error_code_of(cancel_reason reason) noexcept {
    return std::make_error_code(reason == cancel_reason::timed_out ? std::errc::timed_out
                                                                   : std::errc::operation_canceled);
}

// A new scope without a shield changes nothing that a canceller finds: whether it starts from this
// one or from the one around it, the reason and the sources are the same. So no lock is needed. To
// leave one takes it: then nobody else is looking at the scope.
cancel_scope::cancel_scope(shield shielded)
    : owner_(detail::running_fiber("cancel_scope")),
      parent_(scope_chain::innermost(owner_.extras != nullptr ? *owner_.extras
                                                              : detail::extras_of(owner_))),
      shielded_(shielded == shield::yes) {
    if (detail::fiber_worker::here()->has_shared_stack) [[unlikely]]
        detail::refuse_on_shared_stack(this, "cancel_scope: lies in the stack of a swapped fiber");
    if (!shielded_) {
        owner_.extras->scope.store(this, std::memory_order_release);
    } else {
        const detail::block_lock lock(owner_);
        owner_.extras->scope.store(this, std::memory_order_release);
        scope_chain::set_bit(owner_);
    }
}

cancel_scope::~cancel_scope() {
    const detail::block_lock lock(owner_);
    WEFT_ASSERT(scope_chain::innermost(*owner_.extras) == this,
                "cancel_scope: destroyed before one inside it");
    owner_.extras->scope.store(parent_, std::memory_order_relaxed);
    // Without a reason or a shield of its own it never made a difference.
    if (reason_ != cancel_reason::none || shielded_) scope_chain::set_bit(owner_);
}

void cancel_scope::cancel(cancel_reason reason) noexcept {
    fiber_block& owner = owner_;
    detail::add_reference(owner);
    detail::cancel_round round;
    detail::sources_to_tell told;
    {
        const detail::block_lock lock(owner);
        if (reason_ == cancel_reason::none) reason_ = reason;
        scope_chain::set_bit(owner);
        told = scope_chain::sources(owner);
        round.collect(owner);
    }
    detail::act_on_reason(owner, told);
    detail::release(&owner);
}

bool cancel_scope::is_cancelled() const noexcept {
    const detail::block_lock lock(owner_);
    return scope_chain::effective(*this) != cancel_reason::none;
}

namespace this_fiber {

std::stop_token get_stop_token() {
    fiber_block& me = detail::running_fiber("get_stop_token");
    fiber_extras& extras = detail::extras_of(me);
    detail::catch_up(me);
    // So that a shutdown finds one that never waits, but looks at its token.
    if (!me.is_listed) detail::fiber_list::of(*me.home).add(me);
    std::stop_source made;
    bool stopped = false;
    {
        const detail::block_lock lock(me);
        cancel_scope* const scope = scope_chain::innermost(extras);
        auto& source = scope != nullptr ? scope->source_ : extras.source;
        if (source) return source->get_token();
        source = made;
        stopped = scope_chain::effective(me) != cancel_reason::none;
    }
    if (stopped) made.request_stop();
    return made.get_token();
}

bool stop_requested() noexcept {
    const detail::fiber_worker* const worker = detail::fiber_worker::here();
    if (worker == nullptr || worker->current == nullptr) return false;
    fiber_block& me = *worker->current;
    detail::catch_up(me);
    // One that has never waited was not asked.
    if (!me.is_cancelled() && me.home->stopping_.load(std::memory_order_acquire))
        detail::request_stop(me, cancel_reason::shutdown);
    if (!me.is_cancelled() && me.extras != nullptr && me.extras->deadline != nullptr)
        detail::cancel_late_deadlines(me);
    return me.is_cancelled();
}

cancel_reason stop_reason() noexcept {
    if (!stop_requested()) return cancel_reason::none;
    fiber_block& me = *detail::fiber_worker::here()->current;
    const detail::block_lock lock(me);
    return scope_chain::effective(me);
}

void throw_if_cancelled() {
    if (stop_requested()) throw cancelled(stop_reason());
}

}  // namespace this_fiber
}  // namespace weft::inline v0
