// shared_mutex.cpp - see shared_mutex.hpp; the protocol of the word is wait_word.hpp's.
//
// Two queues, both guarded by the word's bit. Writers wait while anybody holds the lock, readers
// while a writer holds it or waits for it:
//
//   a writer unlocks         all readers who wait; if there are none, the eldest writer
//   the last reader unlocks  the eldest writer; if none can be claimed, all readers who wait
//   a writer gives up        if no other waits and no writer holds it, all readers who wait
//
// Whoever is let in is counted before the bit is given up, and woken after that.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/sync/shared_mutex.hpp>

#include <weft/fiber/detail/swapped.hpp>

#include "fiber/wait_graph.hpp"

namespace weft::inline v0::detail {

namespace {
constexpr wait_reason writes{"waits for a shared_mutex, to write", false};
constexpr wait_reason reads{"waits for a shared_mutex, to read", false};
constexpr wait_reason writes_for_a_time{"waits for a shared_mutex, to write, with a deadline"};
constexpr wait_reason reads_for_a_time{"waits for a shared_mutex, to read, with a deadline"};
constexpr const char* again = "shared_mutex: locked again by the fiber or thread that holds it";
constexpr const char* reads_own = "shared_mutex: locked to read by the fiber or thread that writes";
constexpr const char* swapped = "shared_mutex: lies in the stack of a swapped fiber";
}  // namespace

// --- writers

void shared_mutex_core::lock_slowly() {
    owner_.refuse_again(again);
    const waits_for edge("waits to write under shared_mutex", this, &holder_of, false);
    static_cast<void>(acquire(writes, no_deadline));
    owner_.take();
}

bool shared_mutex_core::try_lock_until(time_point deadline) {
    if (!acquire(writes_for_a_time, deadline)) return false;
    owner_.take();
    return true;
}

bool shared_mutex_core::acquire(const wait_reason& reason, time_point deadline) {
    owner_.refuse_again(again);
    refuse_on_shared_stack(this, swapped);
    const wait_outcome outcome = wait(
        reason, deadline,
        [this](waiter& me) noexcept {
            const std::uint64_t number = word_.enter();
            if (number != 0) word_.queue().push_back(me);
            leave(number != 0 ? number : writer);
            return number != 0;
        },
        [this](waiter& me) noexcept { withdraw_writer(me); });
    return outcome == wait_outcome::event;
}

void shared_mutex_core::unlock_slowly() noexcept {
    const std::uint64_t number = word_.enter();
    WEFT_ASSERT(number == writer, "shared_mutex: unlocked while no writer holds it");
    woken_list woken;
    std::uint64_t next = admit_readers(woken);
    if (next == 0) {
        if (waiter* const one = word_.queue().claim_one()) {
            woken.add(*one);
            next = writer;
        }
    }
    leave(next);
    woken.wake();
}

void shared_mutex_core::withdraw_writer(waiter& me) noexcept {
    std::uint64_t number = word_.enter();
    word_.queue().remove(me);
    woken_list woken;
    if (word_.queue().empty() && number != writer) number += admit_readers(woken);
    leave(number);
    woken.wake();
}

// --- readers

void shared_mutex_core::lock_shared_slowly() {
    owner_.refuse_again(reads_own);
    const waits_for edge("waits to read under shared_mutex", this, &holder_of, false);
    static_cast<void>(acquire_shared(reads, no_deadline));
}

bool shared_mutex_core::try_lock_shared_until(time_point deadline) {
    return acquire_shared(reads_for_a_time, deadline);
}

bool shared_mutex_core::acquire_shared(const wait_reason& reason, time_point deadline) {
    owner_.refuse_again(reads_own);
    refuse_on_shared_stack(this, swapped);
    const wait_outcome outcome = wait(
        reason, deadline,
        [this](waiter& me) noexcept {
            const std::uint64_t number = word_.enter();
            const bool must_wait = number == writer || !word_.queue().empty();
            if (must_wait) readers_.push_back(me);
            leave(must_wait ? number : number + reader);
            return must_wait;
        },
        [this](waiter& me) noexcept {
            const std::uint64_t number = word_.enter();
            readers_.remove(me);
            leave(number);
        });
    return outcome == wait_outcome::event;
}

// The last one lets others in.
void shared_mutex_core::unlock_shared_slowly() noexcept {
    std::uint64_t number = word_.enter();
    WEFT_ASSERT(number >= reader && (number & writer) == 0,
                "shared_mutex: unlocked while no reader holds it");
    number -= reader;
    woken_list woken;
    if (number == 0) {
        if (waiter* const one = word_.queue().claim_one()) {
            woken.add(*one);
            number = writer;
        } else {
            number = admit_readers(woken);
        }
    }
    leave(number);
    woken.wake();
}

// What they add to the number.
std::uint64_t shared_mutex_core::admit_readers(woken_list& woken) noexcept {
    std::uint64_t admitted = 0;
    while (waiter* const one = readers_.claim_one()) {
        woken.add(*one);
        admitted += reader;
    }
    return admitted;
}

}  // namespace weft::inline v0::detail
