// family.hpp - a task group without its type: children, their results, who waits for them.
//
// A child has a node in its control block, beside what it calls, from add() until it has ended; if
// its result is kept, a reference keeps the block until that was taken. Under the lock of `word_`,
// whose number is that of the children that have not ended:
//
//     add                         number + 1
//     a child waits, opens a      linked into `fresh_`; if the family is cancelled, into `asked_`,
//       group, or asks whether    and then, without the lock, is asked to stop
//       it is cancelled, for the
//       first time; or starts
//       in a cancelled family
//     cancel                      `reason` is set; each of `fresh_` goes to `asked_`, gets a
//                                 reference, and then, without the lock, is asked to stop
//     end of a child              unlinked from either; into `ended_`, with its result; number - 1
//     end of one that failed      into `ended_` first, by the child itself; then, without the lock,
//                                 the others are cancelled; then, as the last of its fiber,
//                                 number - 1
//
// So what failed is in `ended_` before whatever was cancelled because of it. Nobody touches the
// family after its number - 1 was seen: the parent may be gone. Waiters are claimed under the lock
// and woken after it (wait_word.hpp).
//
// Most children of a tree are added by the parent, run inside it (fiber/inline_run.cpp) and end
// without a wait. If no result is kept the parent counts those by itself, without the lock, in
// `apart`: it adds one for each that it adds, and subtracts one for each that ended inside of it.
// The others count in `word_`, whose number may so be less than none; the sum is what counts.
//
//     the parent asks             its own `apart`, and `word_` (acquire)
//     the parent waits            under the lock: not none? it is queued
//     a child ends elsewhere      under the lock: number - 1; if somebody is queued and the sum is
//                                 none, that one is woken
//
// If it is the parent who is queued then `apart` does not change meanwhile. If it is somebody else
// then the parent does not wait itself, so `apart` can but grow, by children that end later; and
// whatever the one who is queued knew of has happened before, also for who takes the lock after it.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <exception>
#include <optional>
#include <utility>

#include <weft/fiber/detail/birth.hpp>
#include <weft/fiber/detail/cancel_follower.hpp>
#include <weft/fiber/this_fiber.hpp>
#include <weft/scope/options.hpp>
#include <weft/sync/detail/wait_word.hpp>
#include <weft/sync/semaphore.hpp>

namespace weft::inline v0::detail {

struct child_node;

/// A place in a ring of children.
struct child_link {
    child_link() = default;
    child_link(const child_link&) = delete;
    child_link& operator=(const child_link&) = delete;

    /// Of one that stands in no ring, or was unlinked.
    void link_before(child_link& other) noexcept {
        next = &other;
        previous = other.previous;
        previous->next = this;
        other.previous = this;
    }
    void unlink() noexcept {
        next->previous = previous;
        previous->next = next;
    }

    child_link* next;
    child_link* previous;

protected:
    ~child_link() = default;
};

/// A ring of its own, of nobody: where others begin and end.
struct child_ring final : child_link {
    child_ring() noexcept { next = previous = this; }
    /// nullptr: there is none.
    [[nodiscard]] inline child_node* first() noexcept;
};

/// One child.
struct child_node : child_link {
    enum class end : unsigned char { none, value, failed, cancelled };

    child_node() = default;
    virtual ~child_node() = default;

    fiber_block* fiber;  // in which it lies
    std::size_t index;
    fiber_handle kept;  // that fiber, once the node waits to be taken
    end how = end::none;
    bool listed = false;       // in fresh_ or asked_
    std::exception_ptr error;  // failed, cancelled
};

child_node* child_ring::first() noexcept {
    return next != this ? static_cast<child_node*>(next) : nullptr;
}

/// Of a node that was kept: the block goes with it.
struct drop_node {
    void operator()(child_node* node) const noexcept {
        const fiber_handle last = std::move(node->kept);
        node->~child_node();
    }
};

class family final : private cancel_follower, public group_state {
public:
    explicit family(const task_group_options& options);
    family(const family&) = delete;
    family& operator=(const family&) = delete;
    ~family();

    [[nodiscard]] executor& home() const noexcept { return *home_; }
    [[nodiscard]] const fiber_options& fiber_options_of_children() const noexcept {
        return tells_nothing_ ? nothing_told : options_.fiber;
    }

    // For add().
    /// Waits until one more may run.
    void take_place() {
        if (finished_ || places_) [[unlikely]]
            wait_for_place();
    }
    void give_place() noexcept {
        if (places_) [[unlikely]]
            places_->release();
    }
    /// Takes the node, and starts the child.
    void start(child_node& node, fiber_block& block) noexcept;

    /// Whether its parent counts by itself what it adds, and what ends inside of it.
    [[nodiscard]] bool counts_apart() const noexcept { return counts_apart_; }
    /// Whether the result is kept for next().
    [[nodiscard]] bool keeps(const child_node& node) const noexcept {
        return !options_.discard || node.how == child_node::end::failed;
    }
    /// From the child itself: whoever cancels the family finds it from now on.
    void enlist(child_node& node) noexcept;
    [[nodiscard]] bool announces_failures() const noexcept { return !options_.collect; }
    /// From the child itself, which has failed: it is in `ended_` now, and the others are
    /// cancelled.
    void announce_failure(child_node& node) noexcept;
    /// Nothing of the child is left but its block.
    void child_ended(child_node& node) noexcept;
    /// The same, of one that announced its failure.
    void announced_ended() noexcept;

    /// The next one that has ended; the caller drops it.
    [[nodiscard]] child_node* take_ended();
    void wait_for_all();
    void cancel(cancel_reason why) noexcept;

    // For with_task_group().
    /// Cancels those that are left and waits for all.
    void leave() noexcept;
    /// Throws what failed and nobody took.
    void throw_what_failed();

    [[nodiscard]] std::size_t size() noexcept;
    [[nodiscard]] std::size_t failures() noexcept;

private:
    void follow(cancel_reason why, cancel_round& round) noexcept override;
    void cancel_children(cancel_reason why, cancel_round& round) noexcept;
    void wait_for_place();
    void end_of_one(child_node* node) noexcept;
    void keep(child_node& node) noexcept;
    [[nodiscard]] child_node* pop_ended() noexcept;
    [[nodiscard]] std::exception_ptr take_failure() noexcept;
    /// Of children that have not ended, from the number in word_, with the lock.
    [[nodiscard]] std::uint64_t sum(std::uint64_t number) const noexcept {
        return (number + apart.load(std::memory_order_relaxed)) & wait_word::most;
    }
    // acquire: pairs with the release of the last child's leave()
    [[nodiscard]] bool all_ended() const noexcept {
        const std::uint64_t word = word_.load(std::memory_order_acquire) & ~wait_word::queued;
        return word + apart.load(std::memory_order_relaxed) * wait_word::unit == 0;
    }
    void wait_for_all_firmly() noexcept;

    const task_group_options options_;
    executor* const home_;
    const bool tells_nothing_ = tells_nothing(options_.fiber);
    std::optional<cancel_scope> body_;  // what the parent does meanwhile; none in a plain thread
    std::optional<counting_semaphore<>> places_;  // of a bounded one

    const bool counts_apart_;
    wait_word word_;  // with `apart`, the number of children that have not ended; its queue: waits
                      // for all
    // Guarded by word_.
    waiter_queue takers_;  // wait for the next result
    child_ring fresh_;
    child_ring asked_;
    child_ring ended_;
    std::size_t untaken_ = 0;    // in ended_
    std::size_t announced_ = 0;  // failed and in ended_, but still in the number
    std::size_t added_ = 0;
    std::size_t failures_ = 0;
    bool delivered_ = false;  // a failure was
    bool finished_ = false;   // for those who add too late
};

}  // namespace weft::inline v0::detail
