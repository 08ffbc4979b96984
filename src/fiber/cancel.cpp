// cancel.cpp - a fiber's chain of cancel scopes, and the bit in its block that sums them up.
//
// A canceller sets the reason under the block's lock, then the bit, then looks whether the fiber
// waits; a fiber that begins to wait says so, then looks at the bit (detail/wait_state.hpp). Either
// sees the other. Stop callbacks run at the end, without any lock.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/fiber/cancel.hpp>

#include <sched.h>

#include <vector>

#include <weft/base/assert.hpp>
#include <weft/base/test_point.hpp>

#include "fiber/fiber_extras.hpp"
#include "fiber/fiber_life.hpp"
#include "fiber/fiber_worker.hpp"

namespace weft::inline v0 {

using detail::fiber_block;
using detail::fiber_extras;

// What concerns the chain as a whole. The block's lock is held.
class scope_chain {
public:
    // The reason that counts for the innermost scope.
    static cancel_reason effective(const fiber_block& block) noexcept {
        if (block.extras == nullptr) return cancel_reason::none;
        for (const cancel_scope* scope = block.extras->scope; scope != nullptr;
             scope = scope->parent_) {
            if (scope->reason_ != cancel_reason::none) return scope->reason_;
            if (scope->shielded_) return cancel_reason::none;
        }
        return block.extras->reason;
    }

    static cancel_reason effective(const cancel_scope& scope) noexcept {
        if (scope.reason_ != cancel_reason::none) return scope.reason_;
        if (scope.shielded_) return cancel_reason::none;
        return scope.parent_ != nullptr ? effective(*scope.parent_) : scope.owner_.extras->reason;
    }

    static void set_bit(fiber_block& block) noexcept {
        if (effective(block) != cancel_reason::none)
            block.attention.fetch_or(detail::cancelled_bit, std::memory_order_seq_cst);
        else
            block.attention.fetch_and(static_cast<std::uint8_t>(~detail::cancelled_bit),
                                      std::memory_order_seq_cst);
    }

    // The sources of all scopes that are cancelled now, to be told without the lock.
    static std::vector<std::stop_source> sources(fiber_block& block) {
        std::vector<std::stop_source> told;
        if (block.extras == nullptr) return told;
        if (block.extras->source && block.extras->reason != cancel_reason::none)
            told.push_back(*block.extras->source);
        for (cancel_scope* scope = block.extras->scope; scope != nullptr; scope = scope->parent_)
            if (scope->source_ && effective(*scope) != cancel_reason::none)
                told.push_back(*scope->source_);
        return told;
    }
};

namespace detail {

block_lock::block_lock(fiber_block& block) noexcept : block_(block) {
    while (block_.locked.exchange(true, std::memory_order_acquire))
        while (block_.locked.load(std::memory_order_relaxed)) ::sched_yield();
}

namespace {

// After a reason was set: wakes the fiber if it waits, then tells the stop sources.
void act(fiber_block& block, const std::vector<std::stop_source>& told) noexcept {
    WEFT_TEST_POINT("cancel: the bit is set");
    const bool won = block.state.cancel(
        block.closed, [&block] { return block.is_cancelled(); },
        [&block] { return block_lock(block); });
    if (won) block.wake();
    for (std::stop_source source : told) source.request_stop();
}

}  // namespace

void request_stop(fiber_block& block) noexcept {
    add_reference(block);  // it may end meanwhile
    std::vector<std::stop_source> told;
    {
        const block_lock lock(block);
        if (block.extras != nullptr) {
            block.extras->reason = cancel_reason::requested;
            scope_chain::set_bit(block);
            told = scope_chain::sources(block);
        } else {
            block.attention.fetch_or(cancelled_bit, std::memory_order_seq_cst);
        }
    }
    act(block, told);
    release(&block);
}

}  // namespace detail

cancel_scope::cancel_scope(shield shielded)
    : owner_(detail::running_fiber("cancel_scope")),
      parent_(detail::extras_of(owner_).scope),
      shielded_(shielded == shield::yes) {
    const detail::block_lock lock(owner_);
    owner_.extras->scope = this;
    scope_chain::set_bit(owner_);
}

cancel_scope::~cancel_scope() {
    const detail::block_lock lock(owner_);
    WEFT_ASSERT(owner_.extras->scope == this, "cancel_scope: destroyed before one inside it");
    owner_.extras->scope = parent_;
    scope_chain::set_bit(owner_);
}

void cancel_scope::cancel(cancel_reason reason) noexcept {
    fiber_block& owner = owner_;
    detail::add_reference(owner);
    std::vector<std::stop_source> told;
    {
        const detail::block_lock lock(owner);
        if (reason_ == cancel_reason::none) reason_ = reason;
        scope_chain::set_bit(owner);
        told = scope_chain::sources(owner);
    }
    detail::act(owner, told);
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
    std::stop_source made;
    bool stopped = false;
    {
        const detail::block_lock lock(me);
        auto& source = extras.scope != nullptr ? extras.scope->source_ : extras.source;
        if (source) return source->get_token();
        source = made;
        stopped = scope_chain::effective(me) != cancel_reason::none;
    }
    if (stopped) made.request_stop();
    return made.get_token();
}

bool stop_requested() noexcept {
    const detail::fiber_worker* const worker = detail::fiber_worker::here();
    return worker != nullptr && worker->current != nullptr && worker->current->is_cancelled();
}

void throw_if_cancelled() {
    if (!stop_requested()) return;
    fiber_block& me = *detail::fiber_worker::here()->current;
    cancel_reason reason = cancel_reason::requested;
    {
        const detail::block_lock lock(me);
        if (me.extras != nullptr) reason = scope_chain::effective(me);
    }
    throw cancelled(reason);
}

}  // namespace this_fiber
}  // namespace weft::inline v0
