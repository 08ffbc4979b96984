// channel_core.cpp - how an item gets from a sender to a receiver.
//
// A plain item (bytes) is copied under the lock: into the place of a receiver that waits, else into
// a node; out of a node, else out of the place of a sender that waits. One step, done by whoever
// comes second; the first, claimed, is woken after the lock is dropped.
//
// The move of any other item is user code, so it happens without the lock, between two steps:
//
//   who                             has first         then       and last
//   a sender; a receiver waits      claim, free node  moves in   gives it the node, wakes it
//   a sender; there is room         free node         moves in   appends, or gives it to one who
//   a sender, woken with room       that node         moves in     waits
//   a receiver; there is an item    its node          moves out  frees the node, or gives it to a
//   a receiver, woken with an item  that node         moves out    sender who waits
//   a receiver; a sender waits      claim             moves out  wakes the sender
//     (capacity 0)
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
// Plain items take shorter ways (channel_plain.cpp); what is not plain moves in channel_moves.cpp.
//
// Nothing of the channel is touched after a wake, nor after the lock is dropped for the last time:
// whoever was woken may destroy the channel. What can be done is noted at each unlock, for those
// who come without the lock (may_be_ready, relaxed: a hint).
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/base/assert.hpp>
#include <weft/base/test_point.hpp>
#include <weft/fiber/detail/swapped.hpp>
#include <weft/fiber/suspend.hpp>

#include "sync/channel_lock.hpp"
#include "sync/channel_wake.hpp"

namespace weft::inline v0::detail {

// --- both kinds of items

channel_result channel_core::send_moved(void* value, patience how) {
    channel_waiter me{.where = this, .place = value, .sends = true};
    taken_item none;
    for (;;) {
        channel_result result = channel_result::would_block;
        if (may_be_ready(true)) result = try_send(value);
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

// A plain item changes hands in here, if it can; for the others it is tried again outside.
[[gnu::noinline]] bool channel_core::publish(channel_waiter& me, waiter& who) noexcept {
    lock();
    const std::uint32_t can = can_.load(std::memory_order_relaxed);
    if ((can & (me.sends ? can_send : can_receive)) == 0) [[likely]] {
        enqueue(me, who);
        can_.store(me.sends ? can_receive : can_send, std::memory_order_relaxed);
        lock_.unlock();
        return true;
    }
    if (!is_ready(me)) {
        enqueue(me, who);
        unlock();
        return true;
    }
    step done{verdict::ready, nullptr};
    if (type_.plain) done = step_plain(me);
    me.what = done.what;
    const bool waits = done.what == verdict::none;  // those on the other side had gone
    if (waits) enqueue(me, who);
    unlock();
    wake(done.woken);
    return waits;
}

[[gnu::noinline]] void channel_core::withdraw(channel_waiter& me) noexcept {
    WEFT_TEST_POINT("channel: a wait ended without its event");
    lock();
    dequeue(me);
    unlock();
}

inline wait_outcome channel_core::wait_here(channel_waiter& me, time_point deadline) {
    return wait(
        me.sends ? sends_to_channel : receives_from_channel, deadline,
        [this, one = &me](waiter& who) noexcept {
            WEFT_TEST_POINT("channel: about to wait");
            return publish(*one, who);
        },
        [this, one = &me](waiter&) noexcept { withdraw(*one); });
}

// With a deadline; and where swapped fibers run: perhaps one of them waits.
[[gnu::noinline]] wait_outcome channel_core::wait_otherwise(channel_waiter& me,
                                                            time_point deadline) {
    refuse_on_shared_stack(this, "channel: waited on where it lies on a swapped fiber's stack");
    if (!running_is_swapped()) return wait_here(me, deadline);
    channel_waiter* all[] = {&me};
    heap_parking parked(all);
    const wait_outcome ended = wait_here(*parked.waiters()[0], deadline);
    parked.bring_back();
    return ended;
}

channel_result channel_core::after_wait(channel_waiter& me, wait_outcome ended, taken_item& taken) {
    if (me.what != verdict::none) return conclude(me, taken);
    return ended == wait_outcome::timed_out ? channel_result::timed_out : channel_result::cancelled;
}

channel_result channel_core::wait_for(channel_waiter& me, time_point deadline, taken_item& taken) {
    me.what = verdict::none;
    const wait_outcome ended =
        shared_stack_here() ? wait_otherwise(me, deadline) : wait_here(me, deadline);
    return after_wait(me, ended, taken);
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
        case verdict::ready:
        case verdict::none:
            break;
    }
    return channel_result::again;
}

// --- the end

void channel_core::close() noexcept {
    claimed_waiters told;
    lock();
    if (!closed_) {
        closed_ = true;
        tell_if_drained(told);
        told.claim_all(senders_, verdict::closed);
    }
    unlock();
    told.wake();
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
