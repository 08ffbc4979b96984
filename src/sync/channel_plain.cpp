// channel_plain.cpp - items that are plain bytes: copied under the lock, by whoever comes second.
//
// From the shortest way to the longest, each of which goes on with the next if it is not enough:
//
//   send_plain, receive_plain  biased, with room or an item, nobody to be woken: no stack frame
//   ..._otherwise              biased, from hand to hand with one who waits (capacity 0)
//   ..._in_turn                whatever there is
//   ..._slowly                 waits
//
// channel_core.cpp tells how an item changes hands.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/base/test_point.hpp>
#include <weft/fiber/suspend.hpp>

#include "fiber/fiber_worker.hpp"
#include "sync/channel_lock.hpp"
#include "sync/channel_wake.hpp"

namespace weft::inline v0::detail {

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

// With the lock held. One of the others, who waits with a place for an item, or with one, and can
// be claimed in one step: it is to be woken. nullptr: nothing was done.
[[gnu::always_inline]] inline waiter* channel_core::meet(channel_waiters& others, void* to,
                                                         const void* value) noexcept {
    channel_waiter* const other = others.claim_first_at_once();
    if (other == nullptr) [[unlikely]]
        return nullptr;
    copy_easily(to != nullptr ? to : other->place, value != nullptr ? value : other->place);
    other->what = verdict::passed;
    const std::uint32_t can =
        (senders_.empty() ? 0U : can_receive) | (receivers_.empty() ? 0U : can_send);
    can_.store(can, std::memory_order_relaxed);
    return other->who;
}

// To the user's code one goes back from these by a jump.
[[gnu::always_inline]] inline channel_result channel_core::send_slowly(const void* value,
                                                                       patience how) {
    return static_cast<channel_result>(call_waiting(&send_waiting, this, const_cast<void*>(value),
                                                    how.waits,
                                                    how.deadline.time_since_epoch().count()));
}

[[gnu::always_inline]] inline channel_result channel_core::receive_slowly(void* to, patience how) {
    return static_cast<channel_result>(call_waiting(&receive_waiting, this, to, how.waits,
                                                    how.deadline.time_since_epoch().count()));
}

// The shortest way first, with nothing on the stack: biased and easy. If nothing can be done it is
// not tried.
channel_result channel_core::send_plain(const void* value, patience how) {
    const std::uint32_t can = can_.load(std::memory_order_relaxed);
    if ((can & easy_send) != 0 && lock_.lock_biased(&this_thread_block())) [[likely]] {
        const bool done = send_easily(value);
        lock_.unlock_biased();
        if (done) [[likely]]
            return channel_result::done;
    }
    if ((can & can_send) == 0 && how.waits) return send_slowly(value, how);
    return send_otherwise(value, how);
}

channel_result channel_core::receive_plain(void* to, patience how) {
    const std::uint32_t can = can_.load(std::memory_order_relaxed);
    if ((can & easy_receive) != 0 && lock_.lock_biased(&this_thread_block())) [[likely]] {
        const bool done = receive_easily(to);
        lock_.unlock_biased();
        if (done) [[likely]]
            return channel_result::done;
    }
    if ((can & can_receive) == 0 && how.waits) return receive_slowly(to, how);
    return receive_otherwise(to, how);
}

// From hand to hand, biased.
[[gnu::noinline]] channel_result channel_core::send_otherwise(const void* value, patience how) {
    if (!meets_ || !lock_.lock_biased(&this_thread_block())) return send_in_turn(value, how);
    waiter* const met = meet(receivers_, nullptr, value);
    lock_.unlock_biased();
    if (met == nullptr) [[unlikely]]
        return send_in_turn(value, how);
    met->wake();
    return channel_result::done;
}

[[gnu::noinline]] channel_result channel_core::receive_otherwise(void* to, patience how) {
    if (!meets_ || !lock_.lock_biased(&this_thread_block())) return receive_in_turn(to, how);
    waiter* const met = meet(senders_, to, nullptr);
    lock_.unlock_biased();
    if (met == nullptr) [[unlikely]]
        return receive_in_turn(to, how);
    met->wake();
    return channel_result::done;
}

// Whatever there is.
[[gnu::noinline]] channel_result channel_core::send_in_turn(const void* value, patience how) {
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
            return send_in_turn(value, how);  // with room there is nothing to wait for
        }
    }
    return how.waits ? send_slowly(value, how) : channel_result::would_block;
}

[[gnu::noinline]] channel_result channel_core::receive_in_turn(void* to, patience how) {
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

// --- waiting

// publish(), biased and with nothing to be had: no call, and no frame.
template <bool sends>
[[gnu::always_inline]] inline bool channel_core::publish_shortly(channel_waiter& me,
                                                                 waiter& who) noexcept {
    WEFT_TEST_POINT("channel: about to wait");
    if (!lock_.lock_biased(&this_thread_block())) return publish(me, who);
    if ((can_.load(std::memory_order_relaxed) & (sends ? can_send : can_receive)) != 0)
        [[unlikely]] {
        lock_.unlock_biased();
        return publish(me, who);
    }
    me.who = &who;
    me.queued = true;
    (sends ? senders_ : receivers_).push_back(me);
    can_.store(sends ? can_receive : can_send, std::memory_order_relaxed);
    lock_.unlock_biased();
    return true;
}

template <bool sends>
[[gnu::always_inline]] inline wait_outcome channel_core::wait_shortly(channel_waiter& me,
                                                                      time_point deadline) {
    const fiber_worker* const worker = fiber_worker::here();
    if (deadline != no_deadline || worker == nullptr || worker->has_shared_stack) [[unlikely]]
        return wait_otherwise(me, deadline);
    auto withdraws = [one = &me](waiter&) noexcept { one->where->withdraw(*one); };
    return or_event(wait_endlessly<true>(
        sends ? sends_to_channel : receives_from_channel,
        [one = &me](waiter& who) noexcept { return one->where->publish_shortly<sends>(*one, who); },
        withdraws));
}

// Comes back when something was missing.
unsigned char channel_core::send_waiting(void* core, void* value, std::uint64_t waits,
                                         std::int64_t deadline) {
    auto& self = *static_cast<channel_core*>(core);
    const patience how{waits != 0, time_point(time_point::duration(deadline))};
    channel_waiter me{.where = &self, .place = value, .sends = true};
    const wait_outcome ended = self.wait_shortly<true>(me, how.deadline);
    if (me.what == verdict::passed) [[likely]]
        return static_cast<unsigned char>(channel_result::done);
    return static_cast<unsigned char>(self.send_once_more(me, ended, how));
}

[[gnu::noinline]] channel_result channel_core::send_once_more(channel_waiter& me,
                                                              wait_outcome ended, patience how) {
    taken_item none;
    const channel_result result = after_wait(me, ended, none);
    if (result != channel_result::again) return result;
    grow();
    return send_in_turn(me.place, how);
}

unsigned char channel_core::receive_waiting(void* core, void* to, std::uint64_t,
                                            std::int64_t deadline) {
    auto& self = *static_cast<channel_core*>(core);
    channel_waiter me{.where = &self, .place = to, .sends = false};
    const wait_outcome ended =
        self.wait_shortly<false>(me, time_point(time_point::duration(deadline)));
    if (me.what == verdict::passed) [[likely]]
        return static_cast<unsigned char>(channel_result::done);
    taken_item none;
    return static_cast<unsigned char>(self.after_wait(me, ended, none));
}

}  // namespace weft::inline v0::detail
