// mutex_core.cpp - the slow ways of a mutex.
//
// While the word is quick its holder gives it up by a plain store (quick_word.hpp), and there is
// nothing in it but locked. All that follows makes it careful before it sets another bit, and
// leaves that bit out below.
//
// To take the lock is an acquire, to give it up a release; with guarded it is the same for the
// queue and for coming_. Whoever holds locked and guarded is alone, and so is whoever holds guarded
// while another holds locked, for that one cannot unlock meanwhile: their last step is a plain
// store. Every other change of the word is a read-modify-write.
//
//   waits                                        unlocks
//   + locked: it was there already   (acquire)   CAS locked -> 0                        (release)
//   CAS while locked: + guarded      (acquire)
//   into the queue; coming_?                     fails: somebody is queued
//     store locked                   (release)     CAS while awaited: + guarded         (acquire)
//     else store locked + awaited    (release)     take out the eldest, coming_ = true
//                                                  store 0                              (release)
//                                                  wake it
//   woken: CAS while free: + locked + guarded (acquire)
//          coming_ = false, store locked, + awaited if others are queued      (release)
//   beaten: into the queue as above, at the front; coming_ = false
//
// No wake is lost. Somebody goes to the queue only while the lock is held and cannot be given up,
// and leaves awaited behind, which the unlock sees, unless coming_ is set. Then somebody is on its
// way who takes coming_ away under the guard, with the lock held by it or another, and sets awaited
// if anybody is queued: when it takes the lock, when it goes back to the queue, or when it does not
// want the lock any more and passes the duty on.
//
// One that was woken and takes the lock while it is quick is alone with coming_ and the queue as
// soon as it has stopped the changes of the mode (arrive_quickly); if nobody else is queued the
// lock stays quick.
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

// How often a holder who may be about to unlock is asked to do it carefully: some 3 us.
constexpr unsigned asks = 10;

}  // namespace

// --- locking

// If it is free.
bool mutex_core::take() noexcept {
    std::uint32_t seen = word_.load(std::memory_order_relaxed);
    while ((seen & locked) == 0)
        if (word_.take_from(seen)) return true;
    return false;
}

// The same for one that was woken: nobody is on the way any more.
bool mutex_core::take_woken() noexcept {
    std::uint32_t seen = word_.load(std::memory_order_relaxed);
    for (spin_wait spinning; (seen & locked) == 0;) {
        if ((seen & guarded) != 0) {
            spinning.once();
            seen = word_.load(std::memory_order_relaxed);
        } else if ((seen & careful) == 0) {
            if (!word_.take_from(seen)) continue;
            arrive_quickly();
            return true;
        } else if (word_.take_from(seen, guarded)) {
            coming_.store(false, std::memory_order_relaxed);
            WEFT_TEST_POINT("mutex: woken, and has taken the lock");
            word_.bits().store(locked | careful | awaited_now(), std::memory_order_release);
            return true;
        }
    }
    return false;
}

// With the lock held, which was quick. Others can change the queue only when it is careful.
void mutex_core::arrive_quickly() noexcept {
    if (word_.stop()) {
        coming_.store(false, std::memory_order_relaxed);
        WEFT_TEST_POINT("mutex: woken, and has taken the lock quickly");
        if (queue_.empty())
            word_.go_on();
        else
            word_.be_careful(awaited);
        return;
    }
    const std::uint32_t seen = guard();
    coming_.store(false, std::memory_order_relaxed);
    word_.bits().store(locked | careful | awaited_now() | (seen & starving),
                       std::memory_order_release);
}

void mutex_core::lock_slowly(const lock_names& names) {
    if (spin()) return;
    const waits_for edge(names.edge, this, &holder_of, false);
    static_cast<void>(acquire(names, names.waits, no_deadline));
}

bool mutex_core::try_lock_until(time_point deadline, const lock_names& names) {
    owner_.refuse_again(names.again);
    if (!take() && !spin() && !acquire(names, names.waits_for_a_time, deadline)) return false;
    owner_.take();
    return true;
}

bool mutex_core::acquire(const lock_names& names, const wait_reason& reason, time_point deadline) {
    refuse_on_shared_stack(this, names.on_stack);
    const time_point began = now_for_sleep();
    for (bool was_woken = false;; was_woken = true) {
        if (was_woken ? take_woken() : take()) return true;
        if ((word_.load() & careful) == 0) {
            word_.make_careful(spinning_may_help() ? asks : 0);
            if (was_woken ? take_woken() : take()) return true;
        }
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

// Where others may be about to unlock on another processor. Each look takes the cache line away
// from whoever holds the lock, and wins it as often as not: so three, far apart
// (docs/decisions/0007).
bool mutex_core::spin() noexcept {
    if (!spinning_may_help()) return false;
    for (int looks = 0; looks < 3; ++looks) {
        for (int i = 0; i < 16; ++i) pause();
        const std::uint32_t seen = word_.load(std::memory_order_relaxed);
        if ((seen & starving) != 0) return false;
        if ((seen & locked) == 0 && take()) return true;
    }
    return false;
}

// False: it was free, and is taken.
bool mutex_core::enqueue(waiter& me, bool was_woken, bool starves) noexcept {
    std::uint32_t seen = word_.load(std::memory_order_relaxed);
    for (spin_wait spinning;;) {
        if ((seen & locked) == 0) {
            if (was_woken ? take_woken() : take()) return false;
            seen = word_.load(std::memory_order_relaxed);
        } else if ((seen & guarded) != 0) {
            spinning.once();
            seen = word_.load(std::memory_order_relaxed);
        } else if ((seen & careful) == 0) {
            word_.make_careful(asks);
            seen = word_.load(std::memory_order_relaxed);
        } else if (word_.bits().compare_exchange_weak(seen, seen | guarded,
                                                      std::memory_order_acquire,
                                                      std::memory_order_relaxed)) {
            break;
        }
    }
    WEFT_TEST_POINT("mutex: about to enqueue");
    if (was_woken) {
        coming_.store(false, std::memory_order_relaxed);
        queue_.push_front(me);
    } else {
        queue_.push_back(me);
    }
    const std::uint32_t kept = seen & starving;
    word_.bits().store(locked | careful | awaited_now() | (starves ? starving : kept),
                       std::memory_order_release);
    return true;
}

// Sets these bits together with guarded. What was there before.
std::uint32_t mutex_core::guard(std::uint32_t with) noexcept {
    std::uint32_t seen = word_.load(std::memory_order_relaxed);
    for (spin_wait spinning;;) {
        if ((seen & guarded) != 0) {
            spinning.once();
            seen = word_.load(std::memory_order_relaxed);
        } else if ((seen & careful) == 0) {
            word_.make_careful(0);
            seen = word_.load(std::memory_order_relaxed);
        } else if (word_.bits().compare_exchange_weak(seen, seen | guarded | with,
                                                      std::memory_order_acquire,
                                                      std::memory_order_relaxed)) {
            return seen;
        }
    }
}

// Came to its deadline, or was cancelled. Perhaps nobody holds the lock, and somebody takes it
// meanwhile.
void mutex_core::withdraw(waiter& me) noexcept {
    guard();
    queue_.remove(me);
    word_.bits().fetch_and(~(guarded | (queue_.empty() ? awaited : 0U)), std::memory_order_release);
}

// Woken, and does not want the lock any more. True: it was free, and is taken after all. If it is
// held whoever unlocks wakes another.
bool mutex_core::pass_wake_on() noexcept {
    const std::uint32_t seen = guard(locked);
    coming_.store(false, std::memory_order_relaxed);
    word_.bits().store(locked | careful | awaited_now() | (seen & starving),
                       std::memory_order_release);
    return (seen & locked) == 0;
}

// Its owner may take starving away while another, who guards, stores it once more: then the next
// unlock hands the lock over, too, which is allowed at any time.
bool mutex_core::was_handed_over(time_point began) noexcept {
    const std::uint32_t seen = word_.load(std::memory_order_acquire);
    if ((seen & starving) == 0) return false;
    if ((seen & awaited) == 0 || now_for_sleep() - began <= patience)
        word_.bits().fetch_and(~starving, std::memory_order_relaxed);
    return true;
}

// --- unlocking

void mutex_core::release_slowly() noexcept {
    std::uint32_t seen = word_.load(std::memory_order_relaxed);
    for (spin_wait spinning;;) {
        WEFT_ASSERT((seen & locked) != 0, "mutex: unlocked while nobody holds it");
        if ((seen & careful) == 0 && word_.answer()) return;
        if ((seen & guarded) != 0) {
            spinning.once();
            seen = word_.load(std::memory_order_relaxed);
        } else if ((seen & awaited) == 0) {
            if (word_.bits().compare_exchange_weak(seen, seen & careful, std::memory_order_release,
                                                   std::memory_order_relaxed))
                return;
        } else if (word_.bits().compare_exchange_weak(seen, seen | guarded,
                                                      std::memory_order_acquire,
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
    std::uint32_t left = careful;
    if (next != nullptr) {
        if ((seen & starving) != 0)
            left = locked | careful | starving | awaited_now();
        else
            coming_.store(true, std::memory_order_relaxed);
    }
    word_.bits().store(left, std::memory_order_release);
    return next;
}

}  // namespace weft::inline v0::detail
