// channel_core.cpp - how an item gets from a sender to a receiver.
//
// A plain item (bytes) is copied under the lock: into the place of a receiver that waits, else into
// a node; out of a node, else out of the place of a sender that waits. One step, done by whoever
// comes second; the first, claimed, is woken after the lock is dropped.
//
// The move of any other item is user code, so it happens without the lock, between two steps:
//
//   sender comes, a receiver waits      claims it, takes a node | moves in | gives it the node,
//   wakes sender comes, there is room         takes a node            | moves in | appends it, or
//   gives it
//                                                                            to one who waits
//   sender was woken with room          has a node              | moves in | the same
//   receiver comes, there is an item    takes the node          | moves out | frees it, or gives it
//   receiver was woken with an item     has the node            | moves out | to a sender who waits
//   receiver comes to capacity 0,
//   a sender waits                      claims it               | moves out of its place | wakes it
//
// If the move throws, it throws in whoever made it, and the step is taken back: the node goes to
// the free ones, or back to the head of the items; one that was claimed is woken with `again`, and
// waits once more, at the head of its queue. Node and claim stay with the mover, however long that
// takes, so a move may wait. `moving_` counts nodes that are in neither list, for such an item may
// come (back): receivers of a closed channel are told so only when there is none.
//
// `size_` counts nodes that are not free. A sender waits only while size_ >= capacity_, and whoever
// would make it less gives the node to a sender instead. Handing over to a receiver that waits may
// exceed the capacity for a moment: that is how capacity 0 works at all. A receiver takes from a
// sender's place with capacity 0 only: elsewhere another, who was given room, may come before it.
//
//   who waits                                  who comes
//   publish, under the lock: still nothing?    under the lock: unlink the first, claim() it
//   then link; drop the lock                   false: its wait ended otherwise; the next one
//   woken: the verdict is there                drop the lock; move; write the verdict; wake()
//   not by its event: unlink under the lock
//
// Nothing of the channel is touched after a wake, nor after the lock is dropped for the last time:
// whoever was woken may destroy the channel. The lock word is acquired by exchange and released by
// a store, which pairs with it; free, it tells what can be done (may_be_ready, relaxed: a hint).
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/sync/detail/channel_core.hpp>

#include <weft/base/assert.hpp>
#include <weft/base/test_point.hpp>
#include <weft/fiber/detail/swapped.hpp>
#include <weft/fiber/suspend.hpp>

#include "sync/channel_wake.hpp"

namespace weft::inline v0::detail {

namespace {

constexpr wait_reason sends{"sends to a channel"};
constexpr wait_reason receives{"receives from a channel"};

}  // namespace

// --- both kinds of items

channel_result channel_core::send(void* value, patience how) {
    channel_waiter me{.where = this, .place = value, .sends = true};
    taken_item none;
    for (;;) {
        channel_result result = channel_result::would_block;
        if (may_be_ready(true)) result = type_.plain ? try_plain(me) : try_send(value);
        if (result != channel_result::would_block || !how.waits) return result;
        result = wait_for(me, how.deadline, none);
        if (result != channel_result::again) return result;
    }
}

channel_result channel_core::receive_plain(void* to, patience how) {
    channel_waiter me{.where = this, .place = to, .sends = false};
    taken_item none;
    for (;;) {
        channel_result result = channel_result::would_block;
        if (may_be_ready(false)) result = try_plain(me);
        if (result != channel_result::would_block || !how.waits) return result;
        result = wait_for(me, how.deadline, none);
        if (result != channel_result::again) return result;
    }
}

channel_result channel_core::take(taken_item& taken, patience how) {
    channel_waiter me{.where = this, .place = nullptr, .sends = false};
    for (;;) {
        channel_result result = channel_result::would_block;
        if (may_be_ready(false)) result = try_take(taken);
        if (result != channel_result::would_block || !how.waits) return result;
        result = wait_for(me, how.deadline, taken);
        if (result != channel_result::again) return result;
    }
}

bool channel_core::publish(channel_waiter& me, waiter& who) noexcept {
    WEFT_TEST_POINT("channel: about to wait");
    lock();
    waiter* woken = nullptr;
    if (type_.plain ? step_plain(me, woken) : is_ready(me)) {
        unlock();
        wake(woken);
        return false;
    }
    enqueue(me, who);
    unlock();
    return true;
}

channel_result channel_core::wait_for(channel_waiter& mine, time_point deadline,
                                      taken_item& taken) {
    refuse_on_shared_stack(this, "channel: waited on where it lies on a swapped fiber's stack");
    const auto wait_as = [this, deadline](channel_waiter& me) {
        return wait(
            me.sends ? sends : receives, deadline,
            [this, one = &me](waiter& who) noexcept { return publish(*one, who); },
            [this, one = &me](waiter&) noexcept {
                WEFT_TEST_POINT("channel: a wait ended without its event");
                lock();
                dequeue(*one);
                unlock();
            });
    };
    mine.what = verdict::none;
    wait_outcome ended;
    if (running_is_swapped()) [[unlikely]] {
        channel_waiter* all[] = {&mine};
        heap_parking parked(all);
        ended = wait_as(*parked.waiters()[0]);
        parked.bring_back();
    } else {
        ended = wait_as(mine);
    }
    if (mine.what != verdict::none) return conclude(mine, taken);
    if (ended == wait_outcome::event) return channel_result::again;
    return ended == wait_outcome::timed_out ? channel_result::timed_out : channel_result::cancelled;
}

channel_result channel_core::conclude(channel_waiter& me, taken_item& taken) {
    switch (me.what) {
        case verdict::passed:
            return channel_result::done;
        case verdict::item:
            taken = {.from = item_in(me.item), .node = me.item};
            return channel_result::done;
        case verdict::room:
            fill(me.item, me.place, nullptr);
            return channel_result::done;
        case verdict::closed:
            return channel_result::closed;
        case verdict::again:
            me.first = true;
            return channel_result::again;
        case verdict::none:
            break;
    }
    return channel_result::again;
}

bool channel_core::is_ready(const channel_waiter& me) const noexcept {
    if (me.sends) return closed_ || !receivers_.empty() || size_ < capacity_;
    return first_ != nullptr || (capacity_ == 0 && !senders_.empty()) || (closed_ && moving_ == 0);
}

void channel_core::enqueue(channel_waiter& me, waiter& who) noexcept {
    me.who = &who;
    me.queued = true;
    channel_waiters& queue = me.sends ? senders_ : receivers_;
    if (me.first)
        queue.push_front(me);
    else
        queue.push_back(me);
}

void channel_core::dequeue(channel_waiter& me) noexcept {
    if (me.queued) (me.sends ? senders_ : receivers_).remove(me);
    me.queued = false;
}

// --- plain items

// True: it is done, as the verdict says; `none`: a node must be allocated first.
inline bool channel_core::step_plain(channel_waiter& me, waiter*& woken) noexcept {
    channel_waiter* other = nullptr;
    if (me.sends) {
        if (closed_) {
            me.what = verdict::closed;
        } else if ((other = receivers_.claim_first()) != nullptr) {
            copy(other->place, me.place);
            me.what = verdict::passed;
        } else if (size_ < capacity_) {
            if (free_ == nullptr) return true;
            item_node* const node = take_free();
            copy(item_in(node), me.place);
            append(node);
            me.what = verdict::passed;
        } else {
            return false;
        }
    } else if (first_ != nullptr) {
        item_node* const node = pop();
        copy(me.place, item_in(node));
        me.what = verdict::passed;
        if ((other = senders_.claim_first()) != nullptr) {
            copy(item_in(node), other->place);
            append(node);
        } else {
            recycle(node);
        }
    } else if ((other = senders_.claim_first()) != nullptr) {
        copy(me.place, other->place);
        me.what = verdict::passed;
    } else if (closed_) {
        me.what = verdict::closed;
    } else {
        return false;
    }
    if (other != nullptr) {
        other->what = verdict::passed;
        woken = other->who;
    }
    return true;
}

channel_result channel_core::try_plain(channel_waiter& me) {
    for (;;) {
        waiter* woken = nullptr;
        lock();
        me.what = verdict::none;
        const bool over = step_plain(me, woken);
        unlock();
        wake(woken);
        if (!over) return channel_result::would_block;
        if (me.what == verdict::passed) return channel_result::done;
        if (me.what == verdict::closed) return channel_result::closed;
        grow();
    }
}

// --- the end

void channel_core::close() noexcept {
    lock();
    channel_waiter* told = nullptr;
    if (!closed_) {
        closed_ = true;
        told = drained();
        told = claim_all(senders_, verdict::closed, told);
    }
    unlock();
    wake_chain(told);
}

bool channel_core::is_closed() const noexcept {
    lock();
    const bool closed = closed_;
    unlock();
    return closed;
}

std::size_t channel_core::size() const noexcept {
    lock();
    const std::size_t size = size_;
    unlock();
    return size;
}

}  // namespace weft::inline v0::detail
