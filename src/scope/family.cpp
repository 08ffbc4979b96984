// family.cpp - see family.hpp, which has the protocol.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/scope/detail/family.hpp>

#include <weft/base/assert.hpp>
#include <weft/base/test_point.hpp>
#include <weft/fiber/detail/swapped.hpp>
#include <weft/fiber/suspend.hpp>

namespace weft::inline v0::detail {

namespace {

constexpr wait_reason waits_for_next{"waits for the next result of a task group"};
constexpr wait_reason waits_for_all{"waits for a task group"};
constexpr wait_reason leaves{"leaves a task group, whose children have not ended", false};

constexpr const char* in_swapped =
    "with_task_group: a swapped fiber's locals cannot be shared with its children "
    "(task_group_options::shares_locals)";

[[gnu::noinline]] void forget_error(child_node& node) noexcept { node.error = nullptr; }

}  // namespace

family::family(const task_group_options& options)
    : options_(options),
      home_(options.home != nullptr ? options.home : &home_of_running_fiber("with_task_group")),
      counts_apart_(options.discard && options.limit == 0 && this_fiber::get_id()) {
    WEFT_ASSERT(!options.shares_locals || !running_is_swapped(), in_swapped);
    if (options.limit != 0) places_.emplace(static_cast<std::ptrdiff_t>(options.limit));
    if (!this_fiber::get_id()) return;
    body_.emplace();
    attach();
}

// All have ended: there is nobody else. Whoever kept a pointer and adds later finds the mark, as
// long as nothing else lies there.
family::~family() {
    finished_ = true;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    while (child_node* const left = ended_.first()) {
        left->unlink();
        drop_node()(left);
    }
    if (body_) detach();
}

// --- children

void family::wait_for_place() {
    WEFT_ASSERT(!finished_, "task_group::add: the group has ended");
    if (places_) places_->acquire();
}

void family::start(child_node& node, fiber_block& block) noexcept {
    node.fiber = &block;
    if (counts_apart_ && is_attached_here()) {
        count_apart(1);
    } else {
        const std::uint64_t number = word_.enter();
        node.index = added_++;
        word_.leave(number + 1);
    }
    start_fiber(block);
}

void family::enlist(child_node& node) noexcept {
    const std::uint64_t number = word_.enter();
    const cancel_reason why = reason.load(std::memory_order_relaxed);
    const bool first = !std::exchange(node.listed, true);
    if (first) node.link_before(why == cancel_reason::none ? fresh_ : asked_);
    word_.leave(number);
    WEFT_TEST_POINT("task_group: a child is listed");
    if (first && why != cancel_reason::none) cancel_round().stop(*node.fiber, why);
}

// With the lock.
void family::keep(child_node& node) noexcept {
    node.kept = fiber_handle(*node.fiber);
    node.link_before(ended_);
    ++untaken_;
}

// As far as its parent can see the child has not ended, so everything is still there.
void family::announce_failure(child_node& node) noexcept {
    woken_list woken;
    const std::uint64_t number = word_.enter();
    if (node.listed) node.unlink();
    ++failures_;
    ++announced_;
    keep(node);
    if (waiter* const taker = takers_.claim_one()) woken.add(*taker);
    word_.leave(number);
    woken.wake();
    WEFT_TEST_POINT("task_group: a failure is listed, and nobody cancelled");
    cancel(cancel_reason::failed);
    if (body_) body_->cancel(cancel_reason::failed);
}

// Most are not kept, and are not the last for whom somebody waits.
void family::child_ended(child_node& node) noexcept {
    if (places_ || keeps(node)) [[unlikely]]
        return end_of_one(&node);
    const std::uint64_t number = word_.enter();
    if (!(word_.queue().empty() && takers_.empty()) && sum(number) == 1) [[unlikely]] {
        word_.leave(number);
        return end_of_one(&node);
    }
    if (node.listed) node.unlink();
    word_.leave(number - 1);
    if (node.error != nullptr) [[unlikely]]
        forget_error(node);  // there is nothing else to destroy
}

void family::announced_ended() noexcept { end_of_one(nullptr); }

void family::end_of_one(child_node* node) noexcept {
    give_place();
    const bool kept = node == nullptr || keeps(*node);
    woken_list woken;
    const std::uint64_t number = word_.enter();
    if (node == nullptr) {
        --announced_;
    } else {
        if (node->listed) node->unlink();
        if (node->how == child_node::end::failed) ++failures_;
        if (kept) {
            keep(*node);
            if (waiter* const taker = takers_.claim_one()) woken.add(*taker);
        }
    }
    if (sum(number) == 1) {
        word_.queue().claim_all(woken);
        takers_.claim_all(woken);
    }
    word_.leave(number - 1);
    if (!kept) node->~child_node();
    woken.wake();
}

// --- cancelling

void family::cancel(cancel_reason why) noexcept {
    cancel_round round;
    cancel_children(why, round);
}

void family::follow(cancel_reason why, cancel_round& round) noexcept {
    cancel_children(why, round);
}

void family::cancel_children(cancel_reason why, cancel_round& round) noexcept {
    for (;;) {
        fiber_handle child;
        const std::uint64_t number = word_.enter();
        // release: for a child that starts, or asks, without the lock
        if (reason.load(std::memory_order_relaxed) == cancel_reason::none)
            reason.store(why, std::memory_order_release);
        if (child_node* const node = fresh_.first()) {
            node->unlink();
            node->link_before(asked_);
            child = fiber_handle(*node->fiber);
        }
        word_.leave(number);
        if (!child) return;
        WEFT_TEST_POINT("task_group: about to stop a child");
        round.stop(child, why);
    }
}

// --- results

child_node* family::pop_ended() noexcept {
    const std::uint64_t number = word_.enter();
    child_node* const node = ended_.first();
    if (node != nullptr) {
        node->unlink();
        --untaken_;
        if (node->how == child_node::end::failed) delivered_ = true;
    }
    word_.leave(number);
    return node;
}

child_node* family::take_ended() {
    WEFT_ASSERT(!options_.discard, "task_group::next: the group keeps no results");
    for (;;) {
        if (child_node* const node = pop_ended()) return node;
        WEFT_ASSERT(size() != 0, "task_group::next: the group is empty");
        const wait_outcome outcome = wait(
            waits_for_next, no_deadline,
            [this](waiter& me) noexcept {
                const std::uint64_t number = word_.enter();
                const bool waits = untaken_ == 0 && sum(number) != announced_;
                WEFT_ASSERT(!waits || takers_.empty(),
                            "task_group::next: two fibers wait for one group");
                if (waits) takers_.push_back(me);
                word_.leave(number);
                return waits;
            },
            [this](waiter& me) noexcept {
                const std::uint64_t number = word_.enter();
                takers_.remove(me);
                word_.leave(number);
            });
        if (outcome != wait_outcome::cancelled) continue;
        if (child_node* const node = pop_ended()) return node;  // it happened
        throw_cancelled();
    }
}

void family::wait_for_all() {
    if (!places_ && !options_.collect && body_)
        run_unstarted_children(*this, *body_, waits_for_all);
    if (all_ended() && failures_ == 0) return;
    const wait_outcome outcome = wait(
        waits_for_all, no_deadline,
        [this](waiter& me) noexcept {
            const std::uint64_t number = word_.enter();
            const bool waits = sum(number) != 0;
            WEFT_ASSERT(!waits || word_.queue().empty(),
                        "task_group::wait: two fibers wait for one group");
            if (waits) word_.queue().push_back(me);
            word_.leave(number);
            return waits;
        },
        [this](waiter& me) noexcept { word_.withdraw(me); });
    if (!options_.collect && failures() != 0) {
        wait_for_all_firmly();  // they were cancelled because of it
        if (const std::exception_ptr error = take_failure()) std::rethrow_exception(error);
    }
    if (outcome == wait_outcome::cancelled && !all_ended()) throw_cancelled();
}

void family::wait_for_all_firmly() noexcept {
    if (all_ended()) return;
    wait(leaves, no_deadline, [this](waiter& me) noexcept {
        const std::uint64_t number = word_.enter();
        const bool waits = sum(number) != 0;
        if (waits) word_.queue().push_back(me);
        word_.leave(number);
        return waits;
    });
}

std::exception_ptr family::take_failure() noexcept {
    std::exception_ptr error;
    const std::uint64_t number = word_.enter();
    for (child_link* at = ended_.next; at != &ended_ && error == nullptr; at = at->next)
        if (const auto& node = static_cast<child_node&>(*at); node.how == child_node::end::failed)
            error = node.error;
    if (delivered_ && !options_.collect) error = nullptr;
    delivered_ = true;
    word_.leave(number);
    return error;
}

void family::leave() noexcept {
    if (!all_ended()) cancel(cancel_reason::parent_left);
    wait_for_all_firmly();
}

void family::throw_what_failed() {
    if (all_ended() && failures_ == 0) return;
    if (const std::exception_ptr error = take_failure()) std::rethrow_exception(error);
}

std::size_t family::size() noexcept {
    const std::uint64_t number = word_.enter();
    const std::size_t all = sum(number) - announced_ + untaken_;
    word_.leave(number);
    return all;
}

std::size_t family::failures() noexcept {
    const std::uint64_t number = word_.enter();
    const std::size_t failures = failures_;
    word_.leave(number);
    return failures;
}

}  // namespace weft::inline v0::detail
