// channel_moves.cpp - the steps of items that are not plain: before and after a move.
//
// channel_core.cpp tells what they are for.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/base/test_point.hpp>

#include "sync/channel_lock.hpp"
#include "sync/channel_wake.hpp"

namespace weft::inline v0::detail {

// --- a sender's steps

channel_result channel_core::try_send(void* value) {
    for (;;) {
        lock();
        channel_waiter* receiver = nullptr;
        bool possible = !closed_ && (!receivers_.empty() || size_ < capacity_);
        const bool starved = possible && free_ == nullptr;
        if (possible && !starved) {
            receiver = receivers_.claim_first();
            possible = receiver != nullptr || size_ < capacity_;
        }
        item_node* node = nullptr;
        if (possible && !starved) {
            node = take_free();
            ++moving_;
        }
        const bool closed = closed_;
        unlock();
        if (!possible) return closed ? channel_result::closed : channel_result::would_block;
        if (node != nullptr) {
            fill(node, value, receiver);
            return channel_result::done;
        }
        grow();
    }
}

// The receiver, if there is one, is claimed.
void channel_core::fill(item_node* node, void* value, channel_waiter* receiver) {
    try {
        type_.move(item_in(node), value);
    } catch (...) {
        abandon(node, receiver);
        throw;
    }
    if (receiver == nullptr) return commit(node);
    receiver->item = node;
    receiver->what = verdict::item;
    receiver->who->wake();
}

void channel_core::commit(item_node* node) noexcept {
    WEFT_TEST_POINT("channel: an item is in its node");
    lock();
    --moving_;
    waiter* const woken = hand_to_receiver(node);
    if (woken == nullptr) append(node);
    unlock();
    wake(woken);
}

void channel_core::abandon(item_node* node, channel_waiter* receiver) noexcept {
    lock();
    --moving_;
    recycle(node);
    waiter* const sender = size_ < capacity_ ? hand_to_sender() : nullptr;
    claimed_waiters told;
    tell_if_drained(told);
    unlock();
    wake(sender);
    told.wake();
    if (receiver == nullptr) return;
    receiver->what = verdict::again;
    receiver->who->wake();
}

// --- a receiver's steps

channel_result channel_core::try_take(taken_item& taken) noexcept {
    claimed_waiters nudged;  // those that have to come themselves: heap_parking
    channel_result result = channel_result::would_block;
    lock();
    if (first_ != nullptr) {
        item_node* const node = pop();
        ++moving_;
        taken = {.from = item_in(node), .node = node};
        result = channel_result::done;
    } else {
        channel_waiter* sender = nullptr;
        while (capacity_ == 0 && (sender = senders_.claim_first()) != nullptr &&
               sender->place == nullptr)
            nudged.add(*sender, verdict::again);
        if (sender != nullptr) {
            taken = {.from = sender->place, .sender = sender};
            result = channel_result::done;
        } else if (closed_ && moving_ == 0) {
            result = channel_result::closed;
        }
    }
    unlock();
    nudged.wake();
    return result;
}

void channel_core::finish(const taken_item& taken) noexcept {
    if (taken.sender != nullptr) {
        taken.sender->what = verdict::passed;
        taken.sender->who->wake();
        return;
    }
    type_.destroy(taken.from);
    WEFT_TEST_POINT("channel: an item is out of its node");
    lock();
    --moving_;
    recycle(taken.node);
    waiter* const sender = size_ < capacity_ ? hand_to_sender() : nullptr;
    claimed_waiters told;
    tell_if_drained(told);
    unlock();
    wake(sender);
    told.wake();
}

void channel_core::put_back(const taken_item& taken) noexcept {
    if (taken.sender != nullptr) {
        taken.sender->what = verdict::again;
        taken.sender->who->wake();
        return;
    }
    lock();
    --moving_;
    waiter* const woken = hand_to_receiver(taken.node);
    if (woken == nullptr) {
        taken.node->next = first_;
        first_ = taken.node;
        if (last_ == nullptr) last_ = taken.node;
    }
    unlock();
    wake(woken);
}

// --- with the lock held: giving to those who wait

waiter* channel_core::hand_to_receiver(item_node* node) noexcept {
    channel_waiter* const receiver = receivers_.claim_first();
    if (receiver == nullptr) return nullptr;
    ++moving_;
    receiver->item = node;
    receiver->what = verdict::item;
    return receiver->who;
}

// There is a free node, for somebody just gave it up.
waiter* channel_core::hand_to_sender() noexcept {
    channel_waiter* const sender = senders_.claim_first();
    if (sender == nullptr) return nullptr;
    ++moving_;
    sender->item = take_free();
    sender->what = verdict::room;
    return sender->who;
}

// Receivers of a closed channel in which nothing is left, and to which nothing comes back.
void channel_core::tell_if_drained(claimed_waiters& told) noexcept {
    if (closed_ && first_ == nullptr && moving_ == 0) told.claim_all(receivers_, verdict::closed);
}

}  // namespace weft::inline v0::detail
