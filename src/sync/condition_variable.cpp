// condition_variable.cpp - see condition_variable.hpp; the protocol of the queues is
// wait_word.hpp's.
//
// condition_variable: whoever waits goes to the queue and then gives the lock up, once it is off
// its stack. So whoever takes the lock after it finds it in the queue. It may be woken before the
// lock is given up, by somebody without the lock: then it waits for the lock, and to give that up
// is the last touch of anything.
//
// condition_variable_any: a user's unlock() can only be called on the fiber's own stack, before it
// waits. So notifications are counted:
//
//   waits                                       notifies
//   read the count, with the lock held          change something, with the lock held
//   unlock
//   guarded: has the count changed? go on       guarded: count it, take out one or all; wake them
//            else into the queue
//
// A notification after the unlock is either seen in the count or finds the waiter. One that finds
// several between unlock and queue wakes all of these, which is allowed, and rare. The state is
// shared, for the object may be destroyed once all were notified, and such a one still looks.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/sync/condition_variable.hpp>

#include <weft/fiber/detail/swapped.hpp>

namespace weft::inline v0 {

using detail::wait_word;

namespace {

constexpr wait_reason waits{"waits for a condition_variable"};

void wake_one(wait_word& word, std::uint64_t more) noexcept {
    const std::uint64_t number = word.enter();
    waiter* const one = word.queue().claim_one();
    word.leave(number + more);
    if (one != nullptr) one->wake();
}

void wake_all(wait_word& word, std::uint64_t more) noexcept {
    const std::uint64_t number = word.enter();
    detail::woken_list woken;
    word.queue().claim_all(woken);
    word.leave(number + more);
    woken.wake();
}

cv_status status_of(wait_outcome outcome) {
    if (outcome == wait_outcome::cancelled) detail::throw_cancelled();
    return outcome == wait_outcome::timed_out ? cv_status::timeout : cv_status::no_timeout;
}

}  // namespace

// relaxed: whoever changed something under the lock has seen those who went to the queue before.
void condition_variable::notify_one() noexcept {
    if (word_.load(std::memory_order_relaxed) != 0) wake_one(word_, 0);
}

void condition_variable::notify_all() noexcept {
    if (word_.load(std::memory_order_relaxed) != 0) wake_all(word_, 0);
}

cv_status condition_variable::wait_until(std::unique_lock<mutex>& lock, time_point deadline) {
    WEFT_ASSERT(lock.owns_lock(), "condition_variable: waits with a lock that is not locked");
    detail::refuse_on_shared_stack(this,
                                   "condition_variable: lies in the stack of a swapped fiber");
    detail::mutex_core& core = lock.mutex()->core_;
    core.leave_to_another();
    bool withdrawn = false;
    const wait_outcome outcome = weft::wait(
        waits, deadline,
        [word = &word_, held = &core](waiter& me) noexcept {
            const std::uint64_t number = word->enter();
            word->queue().push_back(me);
            word->leave(number);
            WEFT_TEST_POINT("condition_variable: about to unlock");
            held->release();
            return true;
        },
        [this, &withdrawn](waiter& me) noexcept {
            word_.withdraw(me);
            withdrawn = true;
        });
    if (outcome == wait_outcome::cancelled && !withdrawn)
        core.come_back();  // before it was published
    else
        core.lock();
    return status_of(outcome);
}

void condition_variable_any::notify_one(wait_word& state) noexcept { wake_one(state, 1); }
void condition_variable_any::notify_all(wait_word& state) noexcept { wake_all(state, 1); }

cv_status condition_variable_any::wait_for_change(wait_word& state, std::uint64_t seen,
                                                  time_point deadline) {
    const std::uint64_t before = seen / wait_word::unit;
    return status_of(weft::wait(
        waits, deadline,
        [word = &state, before](waiter& me) noexcept {
            const std::uint64_t number = word->enter();
            if (number == before) word->queue().push_back(me);
            word->leave(number);
            return number == before;
        },
        [word = &state](waiter& me) noexcept { word->withdraw(me); }));
}

}  // namespace weft::inline v0
