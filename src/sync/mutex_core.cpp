// mutex_core.cpp - the slow ways of a mutex.
//
// Every change of the word is a read-modify-write, but for one store in release_slowly(): who holds
// both locked and guarded is alone. To take the lock is an acquire, to give it up a release; with
// guarded it is the same for the queue.
//
//   waits                                             unlocks
//   RMW + locked; it was locked:          (acquire)   CAS locked -> 0                     (release)
//   CAS while locked: + guarded + queued  (acquire)
//   into the queue; - guarded             (release)   fails: somebody is queued
//                                                       woken, not starving: CAS - locked (release)
//                                                       else CAS + guarded, take out the eldest,
//                                                       store - locked - guarded + woken  (release)
//                                                       wake it
//   woken: CAS + locked - woken           (acquire)
//   beaten: to the front of the queue, and - woken in the same CAS as + guarded
//
// No wake is lost. Somebody goes to the queue only by a CAS that finds the lock held, so the unlock
// comes after it and sees queued. That unlock wakes nobody only if woken is set, and then somebody
// is on its way who will take the lock, and look at the queue when it unlocks, or go back to the
// queue, or pass the duty on: each takes woken away by a CAS that sees whether the lock is held.
//
// With starving the word stays locked while the eldest is woken: the lock is its. Nobody else is
// on its way then, and starving is taken away only by the one that got the lock, or by an unlock
// that finds nobody; so whoever was woken knows from that bit whether the lock was handed over.
//
// The last touch of the mutex is the operation that gives the lock up, and waking comes after it:
// whoever gets the lock next may destroy the mutex.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/sync/detail/mutex_core.hpp>

#include <weft/base/test_point.hpp>
#include <weft/fiber/detail/swapped.hpp>
#include <weft/fiber/suspend.hpp>
#include <weft/fiber/this_fiber.hpp>

#include "fiber/wait_graph.hpp"
#include "sync/spinning.hpp"

namespace weft::inline v0::detail {

const lock_names mutex_names{{"waits for a mutex", false},
                             {"waits for a mutex, with a deadline"},
                             "mutex: locked again by the fiber or thread that holds it",
                             "waits for mutex",
                             "mutex: lies in the stack of a swapped fiber"};

namespace {

// How long somebody is beaten by newcomers before it is handed the lock.
constexpr std::chrono::nanoseconds patience = std::chrono::milliseconds(1);

}  // namespace

// --- locking

// If it is free; takes the bits of `without` away in the same step.
bool mutex_core::take(std::uint32_t without) noexcept {
    std::uint32_t seen = word_.load(std::memory_order_relaxed);
    while ((seen & locked) == 0)
        if (word_.compare_exchange_weak(seen, (seen | locked) & ~without, std::memory_order_acquire,
                                        std::memory_order_relaxed))
            return true;
    return false;
}

void mutex_core::lock_slowly(const lock_names& names) {
    if (spin()) return;
    const waits_for edge(names.edge, this, &holder_of, false);
    static_cast<void>(acquire(names, names.waits, no_deadline));
}

bool mutex_core::try_lock_until(time_point deadline, const lock_names& names) {
    owner_.refuse_again(names.again);
    if (!take(0) && !spin() && !acquire(names, names.waits_for_a_time, deadline)) return false;
    owner_.take();
    return true;
}

bool mutex_core::acquire(const lock_names& names, const wait_reason& reason, time_point deadline) {
    refuse_on_shared_stack(this, names.on_stack);
    const time_point began = now_for_sleep();
    for (bool was_woken = false;; was_woken = true) {
        if (take(was_woken ? woken : 0)) return true;
        const bool starves = was_woken && now_for_sleep() - began > patience;
        bool withdrawn = false;
        const wait_outcome outcome = wait_or_ready(
            reason, deadline,
            [this, was_woken, starves](waiter& me) noexcept {
                return enqueue(me, was_woken, starves);
            },
            [this, &withdrawn](waiter& me) noexcept {
                withdraw(me);
                withdrawn = true;
            });
        if (outcome == wait_outcome::ready) return true;
        if (outcome != wait_outcome::event) return was_woken && !withdrawn && pass_wake_on();
        if (was_handed_over(began)) return true;
    }
}

// Where others may be about to unlock on another processor.
bool mutex_core::spin() noexcept {
    if (!spinning_may_help()) return false;
    for (int i = 0; i < 40; ++i) {
        const std::uint32_t seen = word_.load(std::memory_order_relaxed);
        if ((seen & starving) != 0) return false;
        if ((seen & locked) == 0 && take(0)) return true;
        pause();
    }
    return false;
}

// False: it was free, and is taken.
bool mutex_core::enqueue(waiter& me, bool was_woken, bool starves) noexcept {
    const std::uint32_t without = was_woken ? woken : 0;
    const std::uint32_t with = guarded | queued | (starves ? starving : 0U);
    std::uint32_t seen = word_.load(std::memory_order_relaxed);
    for (spin_wait spinning;;) {
        if ((seen & locked) == 0) {
            if (take(without)) return false;
            seen = word_.load(std::memory_order_relaxed);
        } else if ((seen & guarded) != 0) {
            spinning.once();
            seen = word_.load(std::memory_order_relaxed);
        } else if (word_.compare_exchange_weak(seen, (seen | with) & ~without,
                                               std::memory_order_acquire,
                                               std::memory_order_relaxed)) {
            break;
        }
    }
    WEFT_TEST_POINT("mutex: about to enqueue");
    if (was_woken)
        queue_.push_front(me);
    else
        queue_.push_back(me);
    word_.fetch_and(~guarded, std::memory_order_release);
    return true;
}

// Came to its deadline, or was cancelled.
void mutex_core::withdraw(waiter& me) noexcept {
    std::uint32_t seen = word_.load(std::memory_order_relaxed);
    for (spin_wait spinning;;) {
        if ((seen & guarded) != 0) {
            spinning.once();
            seen = word_.load(std::memory_order_relaxed);
        } else if (word_.compare_exchange_weak(seen, seen | guarded, std::memory_order_acquire,
                                               std::memory_order_relaxed)) {
            break;
        }
    }
    queue_.remove(me);
    word_.fetch_and(~(guarded | (queue_.empty() ? queued : 0U)), std::memory_order_release);
}

// Woken, and does not want the lock any more. True: it was free, and is taken after all.
bool mutex_core::pass_wake_on() noexcept {
    std::uint32_t seen = word_.load(std::memory_order_relaxed);
    for (;;) {
        const bool free = (seen & locked) == 0;
        // If it is held: whoever unlocks wakes another.
        if (word_.compare_exchange_weak(seen, (seen | locked) & ~woken, std::memory_order_acquire,
                                        std::memory_order_relaxed))
            return free;
    }
}

bool mutex_core::was_handed_over(time_point began) noexcept {
    const std::uint32_t seen = word_.load(std::memory_order_acquire);
    if ((seen & starving) == 0) return false;
    if ((seen & queued) == 0 || now_for_sleep() - began <= patience)
        word_.fetch_and(~starving, std::memory_order_relaxed);
    return true;
}

// --- unlocking

void mutex_core::release_slowly() noexcept {
    std::uint32_t seen = word_.load(std::memory_order_relaxed);
    for (spin_wait spinning;;) {
        WEFT_ASSERT((seen & locked) != 0, "mutex: unlocked while nobody holds it");
        const bool somebody_comes = (seen & (woken | starving)) == woken;
        const bool nobody_waits = (seen & (queued | guarded)) == 0;
        if (somebody_comes || nobody_waits) {
            if (word_.compare_exchange_weak(seen, seen & ~(locked | starving),
                                            std::memory_order_release, std::memory_order_relaxed))
                return;
        } else if ((seen & guarded) != 0) {
            spinning.once();
            seen = word_.load(std::memory_order_relaxed);
        } else if (word_.compare_exchange_weak(seen, seen | guarded, std::memory_order_acquire,
                                               std::memory_order_relaxed)) {
            break;
        }
    }
    if (waiter* const next = next_holder(seen)) next->wake();
}

// With locked and guarded held: gives both up, or hands over.
waiter* mutex_core::next_holder(std::uint32_t seen) noexcept {
    WEFT_TEST_POINT("mutex: about to wake");
    waiter* const next = queue_.claim_one();
    std::uint32_t left = queue_.empty() ? 0 : queued;
    if (next != nullptr) left |= (seen & starving) != 0 ? locked | starving : woken;
    word_.store(left, std::memory_order_release);
    return next;
}

}  // namespace weft::inline v0::detail
