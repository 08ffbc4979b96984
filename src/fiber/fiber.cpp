// fiber.cpp - joining a fiber, and letting it go.
//
// The ender and the joiner meet under the block's lock (complete() in fiber_life.cpp): the ender
// marks the block finished and claims the joiner there, so a joiner that was cancelled instead and
// withdraws under the same lock cannot be gone while it is being claimed.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/fiber/fiber.hpp>

#include <optional>

#include <weft/base/assert.hpp>
#include <weft/fiber/suspend.hpp>

#include "fiber/fiber_extras.hpp"
#include "fiber/fiber_life.hpp"
#include "fiber/fiber_worker.hpp"
#include "fiber/wait_graph.hpp"

namespace weft::inline v0 {

using detail::fiber_block;

namespace {

constexpr wait_reason joins{"joins a fiber"};
constexpr wait_reason joins_at_end{"joins a fiber in its destructor", false};

const void* joined(const void* block) noexcept { return block; }

wait_outcome wait_for_end(fiber_block& block, const wait_reason& reason) {
    const detail::waits_for edge("joins fiber", &block, &joined, reason.cancellable);
    const wait_outcome outcome = wait(
        reason, no_deadline,
        [&block](waiter& me) noexcept {
            const detail::block_lock lock(block);
            if (block.finished) return false;
            block.extras->joiner = &me;
            return true;
        },
        [&block](waiter&) noexcept {
            const detail::block_lock lock(block);
            block.extras->joiner = nullptr;
        });
    if (outcome == wait_outcome::event) return outcome;
    const detail::block_lock lock(block);
    return block.finished ? wait_outcome::event : outcome;
}

}  // namespace

void fiber::start(detail::fiber_block* block) noexcept {
    detail::add_reference(*block);
    block_ = block;
    detail::start_fiber(*block);
}

fiber::~fiber() {
    if (block_ == nullptr) return;
    WEFT_ASSERT(this_fiber::get_id() != get_id(), "~fiber: a fiber cannot join itself");
    request_stop();
    wait_for_end(*block_, joins_at_end);
    if (block_->extras != nullptr && block_->extras->error != nullptr)
        detail::give_to_nobody(*block_, std::exchange(block_->extras->error, nullptr));
    detail::release(block_);
}

void fiber::join() {
    WEFT_ASSERT(block_ != nullptr, "fiber::join: there is nothing to join");
    WEFT_ASSERT(this_fiber::get_id() != get_id(), "fiber::join: a fiber cannot join itself");
    if (wait_for_end(*block_, joins) == wait_outcome::cancelled) {
        this_fiber::throw_if_cancelled();
        throw cancelled(cancel_reason::requested);  // the scope was left by another already
    }
    fiber_block* const ended = std::exchange(block_, nullptr);
    std::exception_ptr error;
    if (ended->extras != nullptr) error = std::exchange(ended->extras->error, nullptr);
    detail::release(ended);
    if (error != nullptr) std::rethrow_exception(std::move(error));
}

void fiber::detach() noexcept {
    WEFT_ASSERT(block_ != nullptr, "fiber::detach: there is nothing to detach");
    fiber_block* const left = std::exchange(block_, nullptr);
    std::exception_ptr nobodys;
    {
        const detail::block_lock lock(*left);
        left->has_handle = false;
        if (left->finished && left->extras != nullptr) std::swap(nobodys, left->extras->error);
    }
    if (nobodys != nullptr) detail::give_to_nobody(*left, std::move(nobodys));
    detail::release(left);
}

bool fiber::request_stop() noexcept {
    if (block_ == nullptr) return false;
    return detail::request_stop(*block_);
}

// A fiber with a handle has extras from its birth.
std::stop_token fiber::get_stop_token() const {
    if (block_ == nullptr) return {};
    std::stop_source made;
    bool stopped = false;
    {
        const detail::block_lock lock(*block_);
        std::optional<std::stop_source>& source = block_->extras->source;
        if (source) return source->get_token();
        source = made;
        stopped = block_->stop_reason != cancel_reason::none;
    }
    if (stopped) made.request_stop();
    return made.get_token();
}

fiber_handle fiber::handle() const noexcept {
    return block_ != nullptr ? fiber_handle(*block_) : fiber_handle();
}

}  // namespace weft::inline v0
