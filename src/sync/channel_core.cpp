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

namespace {

constexpr wait_reason sends{"sends to a channel"};
constexpr wait_reason receives{"receives from a channel"};

}  // namespace

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
inline bool channel_core::publish(channel_waiter& me, waiter& who) noexcept {
    WEFT_TEST_POINT("channel: about to wait");
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

inline wait_outcome channel_core::wait_here(channel_waiter& me, time_point deadline) {
    return wait(
        me.sends ? sends : receives, deadline,
        [this, one = &me](waiter& who) noexcept { return publish(*one, who); },
        [this, one = &me](waiter&) noexcept {
            WEFT_TEST_POINT("channel: a wait ended without its event");
            lock();
            dequeue(*one);
            unlock();
        });
}

// Where swapped fibers run: perhaps one of them waits.
[[gnu::noinline]] wait_outcome channel_core::wait_parked(channel_waiter& me, time_point deadline) {
    refuse_on_shared_stack(this, "channel: waited on where it lies on a swapped fiber's stack");
    if (!running_is_swapped()) return wait_here(me, deadline);
    channel_waiter* all[] = {&me};
    heap_parking parked(all);
    const wait_outcome ended = wait_here(*parked.waiters()[0], deadline);
    parked.bring_back();
    return ended;
}

inline channel_result channel_core::wait_for(channel_waiter& me, time_point deadline,
                                             taken_item& taken) {
    me.what = verdict::none;
    const wait_outcome ended =
        shared_stack_here() ? wait_parked(me, deadline) : wait_here(me, deadline);
    if (me.what == verdict::passed) [[likely]]
        return channel_result::done;
    if (me.what != verdict::none) return conclude(me, taken);
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
        case verdict::ready:
        case verdict::none:
            break;
    }
    return channel_result::again;
}

// --- plain items

// What it came to; none: it has to wait; ready: once a node is allocated.
[[gnu::always_inline]] inline channel_core::step channel_core::send_step(
    const void* value) noexcept {
    if (closed_) [[unlikely]]
        return {verdict::closed, nullptr};
    if (channel_waiter* const other = receivers_.claim_first()) {
        copy(other->place, value);
        other->what = verdict::passed;
        return {verdict::passed, other->who};
    }
    if (size_ >= capacity_) return {verdict::none, nullptr};
    if (free_ == nullptr) [[unlikely]]
        return {verdict::ready, nullptr};
    item_node* const node = take_free();
    copy(item_in(node), value);
    append(node);
    return {verdict::passed, nullptr};
}

[[gnu::always_inline]] inline channel_core::step channel_core::receive_step(void* to) noexcept {
    item_node* const node = first_;
    if (node != nullptr) {
        static_cast<void>(pop());
        copy(to, item_in(node));
    }
    if (channel_waiter* const other = senders_.claim_first()) {
        copy(node != nullptr ? item_in(node) : to, other->place);
        if (node != nullptr) append(node);
        other->what = verdict::passed;
        return {verdict::passed, other->who};
    }
    if (node == nullptr) return {closed_ ? verdict::closed : verdict::none, nullptr};
    recycle(node);
    return {verdict::passed, nullptr};
}

[[gnu::noinline]] channel_core::step channel_core::step_plain(const channel_waiter& me) noexcept {
    return me.sends ? send_step(me.place) : receive_step(me.place);
}

// With the lock held. True: done.
[[gnu::always_inline]] inline bool channel_core::send_easily(const void* value) noexcept {
    if ((can_.load(std::memory_order_relaxed) & easy_send) == 0) return false;
    item_node* const node = take_free();
    copy_easily(item_in(node), value);
    append(node);
    std::uint32_t can = can_receive | (senders_.empty() ? easy_receive : 0U);
    if (size_ < capacity_) can |= can_send | (free_ != nullptr ? easy_send : 0U);
    can_.store(can, std::memory_order_relaxed);
    return true;
}

[[gnu::always_inline]] inline bool channel_core::receive_easily(void* to) noexcept {
    if ((can_.load(std::memory_order_relaxed) & easy_receive) == 0) return false;
    item_node* const node = pop();
    copy_easily(to, item_in(node));
    recycle(node);
    std::uint32_t can = can_send | (receivers_.empty() ? easy_send : 0U);
    if (first_ != nullptr) can |= can_receive | easy_receive;
    can_.store(can, std::memory_order_relaxed);
    return true;
}

// The shortest way first, with nothing on the stack: biased and easy.
channel_result channel_core::send_plain(const void* value, patience how) {
    if ((can_.load(std::memory_order_relaxed) & easy_send) == 0 ||
        !lock_.lock_biased(&this_thread_block())) [[unlikely]]
        return send_otherwise(value, how);
    const bool done = send_easily(value);
    lock_.unlock_biased();
    return done ? channel_result::done : send_otherwise(value, how);
}

channel_result channel_core::receive_plain(void* to, patience how) {
    if ((can_.load(std::memory_order_relaxed) & easy_receive) == 0 ||
        !lock_.lock_biased(&this_thread_block())) [[unlikely]]
        return receive_otherwise(to, how);
    const bool done = receive_easily(to);
    lock_.unlock_biased();
    return done ? channel_result::done : receive_otherwise(to, how);
}

[[gnu::noinline]] channel_result channel_core::send_otherwise(const void* value, patience how) {
    if (may_be_ready(true)) {
        lock();
        if (send_easily(value)) {
            lock_.unlock();
            return channel_result::done;
        }
        const step done = send_step(value);
        unlock();
        wake(done.woken);
        if (done.what == verdict::passed) [[likely]]
            return channel_result::done;
        if (done.what == verdict::closed) return channel_result::closed;
        if (done.what == verdict::ready) {
            grow();
            return send_otherwise(value, how);  // with room there is nothing to wait for
        }
    }
    return how.waits ? send_slowly(value, how) : channel_result::would_block;
}

[[gnu::noinline]] channel_result channel_core::receive_otherwise(void* to, patience how) {
    if (may_be_ready(false)) {
        lock();
        if (receive_easily(to)) {
            lock_.unlock();
            return channel_result::done;
        }
        const step done = receive_step(to);
        unlock();
        wake(done.woken);
        if (done.what == verdict::passed) [[likely]]
            return channel_result::done;
        if (done.what == verdict::closed) return channel_result::closed;
    }
    return how.waits ? receive_slowly(to, how) : channel_result::would_block;
}

// Comes back when something was missing.
[[gnu::noinline]] channel_result channel_core::send_slowly(const void* value, patience how) {
    channel_waiter me{.where = this, .place = const_cast<void*>(value), .sends = true};
    taken_item none;
    const channel_result result = wait_for(me, how.deadline, none);
    if (result != channel_result::again) return result;
    grow();
    return send_otherwise(value, how);
}

[[gnu::noinline]] channel_result channel_core::receive_slowly(void* to, patience how) {
    channel_waiter me{.where = this, .place = to, .sends = false};
    taken_item none;
    return wait_for(me, how.deadline, none);
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
