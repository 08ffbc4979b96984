// cancel_follower.cpp - see cancel_follower.hpp, which has the protocol.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/fiber/detail/cancel_follower.hpp>

#include <weft/base/assert.hpp>
#include <weft/base/test_point.hpp>
#include <weft/fiber/suspend.hpp>

#include "fiber/fiber_life.hpp"
#include "fiber/scope_chain.hpp"

namespace weft::inline v0::detail {

namespace {
constexpr wait_reason leaves{"leaves what is being cancelled at this moment", false};
}

void cancel_follower::attach() {
    fiber_block& me = running_fiber("cancel_follower::attach");
    fiber_extras& extras = extras_of(me);
    catch_up(me);
    cancel_round round;
    const block_lock lock(me);
    owner_ = &me;
    scope_ = scope_chain::innermost(extras);
    next_ = std::exchange(extras.followers, this);
    round.collect(me);
}

bool cancel_follower::is_attached_here() const noexcept {
    const fiber_worker* const worker = fiber_worker::here();
    return worker != nullptr && worker->current == owner_;
}

void cancel_follower::detach() noexcept {
    {
        const block_lock lock(*owner_);
        cancel_follower** at = &owner_->extras->followers;
        while (*at != this) at = &(*at)->next_;
        *at = next_;
        if (!being_told_) return;
    }
    wait(leaves, no_deadline, [this](waiter& me) noexcept {
        const block_lock lock(*owner_);
        if (!being_told_) return false;
        leaver_ = &me;
        return true;
    });
}

void cancel_round::stop(const fiber_handle& fiber, cancel_reason reason) noexcept {
    if (fiber_block* const block = handle_access::block(fiber)) stop(*block, reason);
}

bool cancel_round::stop(fiber_block& block, cancel_reason reason) noexcept {
    add_reference(block);  // it may end meanwhile
    sources_to_tell told;
    bool first;
    {
        const block_lock lock(block);
        first = block.stop_reason == cancel_reason::none;
        if (first) block.stop_reason = reason;
        scope_chain::set_bit(block);
        told = scope_chain::sources(block);
        collect(block);
    }
    act_on_reason(block, told);
    release(&block);
    return first;
}

void cancel_round::collect(fiber_block& block) noexcept {
    if (block.extras == nullptr) return;
    for (cancel_follower* one = block.extras->followers; one != nullptr; one = one->next_) {
        if (one->told_ != cancel_reason::none) continue;
        one->told_ = scope_chain::effective(block, one->scope_);
        if (one->told_ == cancel_reason::none) continue;
        one->being_told_ = true;
        one->next_in_round_ = nullptr;
        (last_ != nullptr ? last_->next_in_round_ : first_) = one;
        last_ = one;
    }
}

void cancel_round::tell() noexcept {
    while (cancel_follower* const one = first_) {
        first_ = one->next_in_round_;
        if (first_ == nullptr) last_ = nullptr;
        WEFT_TEST_POINT("cancel_round: about to tell a follower");
        one->follow(one->told_, *this);
        let_go(*one);
    }
}

void cancel_round::let_go(cancel_follower& told) noexcept {
    waiter* woken = nullptr;
    {
        const block_lock lock(*told.owner_);
        told.being_told_ = false;
        if (told.leaver_ != nullptr && told.leaver_->claim()) woken = told.leaver_;
    }
    if (woken != nullptr) woken->wake();
}

}  // namespace weft::inline v0::detail
