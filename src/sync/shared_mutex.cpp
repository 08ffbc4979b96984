// shared_mutex.cpp - see shared_mutex.hpp; the protocol of the word is wait_word.hpp's.
//
// Two queues, both guarded by the word's bit: nobody else writes the word while somebody has it.
//
//   waits                                       unlocks, so that it is free
//   CAS of a word that lets it in  (acquire)    CAS to 0 of a word without `queued`     (release)
//   enter()                        (acquire)
//   cannot have it: into the queue              with `queued`: enter()                  (acquire)
//   leave(), `queued` unless                      takes out whom it wakes, coming_ += n
//     somebody is coming           (release)      leave(0)                              (release)
//                                                 wakes them
//   woken: enter(), --coming_      (acquire)
//     takes it, or is beaten and comes back to the front of its queue
//     leave(), `queued` if nobody is coming and others are in a queue                   (release)
//
// Who is woken: after a writer all readers who wait, or else the eldest writer; after the last
// reader the eldest writer, or else all readers. While any of them is on its way the word says
// nothing of those who wait, so whoever runs locks and unlocks as if it were alone.
//
// No wake is lost. Somebody goes to a queue only while the lock is held, and leaves `queued` behind
// unless others are coming; the last of those puts it there when it comes, with the lock held by it
// or by another. Readers alone in a queue never wait for readers: leave() wakes them, for the last
// writer before them may have given up.
//
// No writer waits for an endless stream of readers: `queued` keeps new ones out while readers hold
// the lock. One that was woken and is beaten more than `patience` after it began says that its side
// starves. Then whoever frees the lock hands it over instead: to all readers who wait (admitted_)
// or to the eldest writer (handed_), which are holders from then on, and learn that when they come.
// If both starve, the readers come after a writer, the writer after readers. Others of the same
// side may be coming meanwhile; then whoever comes first takes what was handed over, and the other
// counts as the one that was coming.
//
// The last touch of the lock is the operation that gives it up, and waking comes after it: whoever
// has it next may destroy it.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/sync/shared_mutex.hpp>

#include <weft/fiber/detail/swapped.hpp>
#include <weft/fiber/this_fiber.hpp>

#include "fiber/wait_graph.hpp"
#include "sync/spinning.hpp"

namespace weft::inline v0::detail {

namespace {

constexpr wait_reason writes{"waits for a shared_mutex, to write", false};
constexpr wait_reason reads{"waits for a shared_mutex, to read", false};
constexpr wait_reason writes_for_a_time{"waits for a shared_mutex, to write, with a deadline"};
constexpr wait_reason reads_for_a_time{"waits for a shared_mutex, to read, with a deadline"};
constexpr const char* again = "shared_mutex: locked again by the fiber or thread that holds it";
constexpr const char* reads_own = "shared_mutex: locked to read by the fiber or thread that writes";
constexpr const char* swapped = "shared_mutex: lies in the stack of a swapped fiber";

// How long somebody is beaten by newcomers before it is handed the lock.
constexpr std::chrono::nanoseconds patience = std::chrono::milliseconds(1);

}  // namespace

// Where others may be about to unlock on another processor: one look, as far off as a mutex's. More
// cost more than the waits that they save (docs/decisions/0007).
bool shared_mutex_core::look_again(bool (shared_mutex_core::*take_it)() noexcept) noexcept {
    if (!spinning_may_help()) return false;
    for (int i = 0; i < 16; ++i) pause();
    const std::uint64_t seen = word_.load(std::memory_order_relaxed);
    return (seen & (writing | starving) * wait_word::unit) == 0 && (this->*take_it)();
}

// --- writers

void shared_mutex_core::lock_slowly() {
    owner_.refuse_again(again);
    if (!look_again(&shared_mutex_core::take)) {
        const waits_for edge("waits to write under shared_mutex", this, &holder_of, false);
        static_cast<void>(acquire(writes, no_deadline));
    }
    owner_.take();
    reader_.forget();
}

bool shared_mutex_core::try_lock_until(time_point deadline) {
    owner_.refuse_again(again);
    if (!look_again(&shared_mutex_core::take) && !acquire(writes_for_a_time, deadline))
        return false;
    owner_.take();
    reader_.forget();
    return true;
}

bool shared_mutex_core::acquire(const wait_reason& reason, time_point deadline) {
    refuse_on_shared_stack(this, swapped);
    const time_point began = now_for_sleep();
    for (bool was_woken = false;; was_woken = true) {
        if (was_woken && arrive()) return true;
        const bool starves = was_woken && now_for_sleep() - began > patience;
        const wait_outcome outcome = wait_or_ready(
            reason, deadline,
            [this, was_woken, starves](waiter& me) noexcept {
                return enqueue(me, was_woken, starves);
            },
            [this](waiter& me) noexcept { withdraw(word_.queue(), me); });
        if (outcome != wait_outcome::event) return outcome == wait_outcome::ready;
    }
}

// Was woken. False: it is beaten.
bool shared_mutex_core::arrive() noexcept {
    std::uint64_t number = word_.enter();
    bool mine = handed_;
    if (mine) {
        handed_ = false;
    } else {
        --coming_;
        mine = number == 0;
        if (mine) number = writing;
    }
    woken_list woken;
    leave(number, woken);
    woken.wake();
    return mine;
}

// False: it was free, and is taken.
bool shared_mutex_core::enqueue(waiter& me, bool was_woken, bool starves) noexcept {
    std::uint64_t number = word_.enter();
    const bool must_wait = number != 0;
    if (!must_wait) number = writing;
    if (must_wait && was_woken) word_.queue().push_front(me);
    if (must_wait && !was_woken) word_.queue().push_back(me);
    if (must_wait && starves) number |= writer_starves;
    woken_list nobody;
    leave(number, nobody);
    return must_wait;
}

void shared_mutex_core::unlock_slowly() noexcept {
    const std::uint64_t number = word_.enter();
    WEFT_ASSERT((number & writing) != 0, "shared_mutex: unlocked while no writer holds it");
    free(number & starving, true);
}

// --- readers

void shared_mutex_core::lock_shared_slowly() {
    owner_.refuse_again(reads_own);
    if (!look_again(&shared_mutex_core::take_shared)) {
        const waits_for edge("waits to read under shared_mutex", this, &writer_of, false);
        static_cast<void>(acquire_shared(reads, no_deadline));
    }
    reader_.add();
}

bool shared_mutex_core::try_lock_shared_until(time_point deadline) {
    owner_.refuse_again(reads_own);
    if (!look_again(&shared_mutex_core::take_shared) && !acquire_shared(reads_for_a_time, deadline))
        return false;
    reader_.add();
    return true;
}

bool shared_mutex_core::acquire_shared(const wait_reason& reason, time_point deadline) {
    refuse_on_shared_stack(this, swapped);
    const time_point began = now_for_sleep();
    for (bool was_woken = false;; was_woken = true) {
        if (was_woken && arrive_shared()) return true;
        const bool starves = was_woken && now_for_sleep() - began > patience;
        const wait_outcome outcome = wait_or_ready(
            reason, deadline,
            [this, was_woken, starves](waiter& me) noexcept {
                return enqueue_shared(me, was_woken, starves);
            },
            [this](waiter& me) noexcept { withdraw(readers_, me); });
        if (outcome != wait_outcome::event) return outcome == wait_outcome::ready;
    }
}

bool shared_mutex_core::arrive_shared() noexcept {
    std::uint64_t number = word_.enter();
    bool mine = admitted_ != 0;
    if (mine) {
        --admitted_;
    } else {
        --coming_;
        mine = (number & writing) == 0;
        if (mine) number += reader;
    }
    woken_list woken;
    leave(number, woken);
    woken.wake();
    return mine;
}

// False: it could be had, and is taken. A writer that waits for readers comes before those who come
// later, but not if it was woken or others were: then it has to contend.
bool shared_mutex_core::enqueue_shared(waiter& me, bool was_woken, bool starves) noexcept {
    std::uint64_t number = word_.enter();
    const bool writer_first =
        number != 0 && !word_.queue().empty() && (coming_ == 0 || (number & starving) != 0);
    const bool must_wait = (number & writing) != 0 || writer_first;
    if (!must_wait) number += reader;
    if (must_wait && was_woken) readers_.push_front(me);
    if (must_wait && !was_woken) readers_.push_back(me);
    if (must_wait && starves) number |= reader_starves;
    woken_list nobody;
    leave(number, nobody);
    return must_wait;
}

void shared_mutex_core::unlock_shared_slowly() noexcept {
    const std::uint64_t number = word_.enter();
    WEFT_ASSERT(number >= reader && (number & writing) == 0,
                "shared_mutex: unlocked while no reader holds it");
    if (number < 2 * reader) return free(number & starving, false);
    woken_list nobody;
    leave(number - reader, nobody);
}

// --- both, under the word's bit

// Came to its deadline, or was cancelled.
void shared_mutex_core::withdraw(waiter_queue& from, waiter& me) noexcept {
    const std::uint64_t number = word_.enter();
    from.remove(me);
    woken_list woken;
    leave(number, woken);
    woken.wake();
}

// Gives it up, or hands it over.
void shared_mutex_core::free(std::uint64_t starves, bool by_writer) noexcept {
    woken_list woken;
    const std::uint64_t number = hand_over(starves, by_writer, woken);
    if (number == 0 && coming_ == 0) {
        if (by_writer)
            static_cast<void>(wake_readers(woken) || wake_writer(woken));
        else
            static_cast<void>(wake_writer(woken) || wake_readers(woken));
    }
    leave(number, woken);
    woken.wake();
}

// To those who starve, if they still wait. What the number is then; 0: to nobody.
std::uint64_t shared_mutex_core::hand_over(std::uint64_t starves, bool by_writer,
                                           woken_list& woken) noexcept {
    const bool to_readers =
        (starves & reader_starves) != 0 && (by_writer || (starves & writer_starves) == 0);
    if (to_readers) {
        starves &= ~reader_starves;
        std::uint64_t held = 0;
        while (waiter* const one = readers_.claim_one()) {
            woken.add(*one);
            ++admitted_;
            held += reader;
        }
        if (held != 0) return held | starves;
    }
    if ((starves & writer_starves) != 0)
        if (waiter* const one = word_.queue().claim_one()) {
            woken.add(*one);
            handed_ = true;
            return writing | (starves & ~writer_starves);
        }
    return 0;
}

bool shared_mutex_core::wake_writer(woken_list& woken) noexcept {
    waiter* const one = word_.queue().claim_one();
    if (one == nullptr) return false;
    woken.add(*one);
    ++coming_;
    return true;
}

bool shared_mutex_core::wake_readers(woken_list& woken) noexcept {
    while (waiter* const one = readers_.claim_one()) {
        woken.add(*one);
        ++coming_;
    }
    return coming_ != 0;
}

// Whoever is woken here has still to come; that is for after it, when all of it may be gone.
void shared_mutex_core::leave(std::uint64_t number, woken_list& woken) noexcept {
    if (number >= reader && word_.queue().empty() && coming_ == 0)
        static_cast<void>(wake_readers(woken));
    if (word_.queue().empty()) number &= ~writer_starves;
    if (readers_.empty()) number &= ~reader_starves;
    const bool queued = !word_.queue().empty() || !readers_.empty();
    const bool to_be_woken = coming_ == 0 || (number & starving) != 0;
    word_.leave(number, number != 0 && queued && to_be_woken);
}

}  // namespace weft::inline v0::detail
