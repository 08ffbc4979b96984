// shared_mutex.cpp - how one waits for a shared_mutex; the protocol is in shared_word.hpp.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/sync/shared_mutex.hpp>

#include <weft/fiber/detail/swapped.hpp>
#include <weft/fiber/this_fiber.hpp>

#include "fiber/wait_graph.hpp"
#include "sync/spinning.hpp"

namespace weft::inline v0::detail {

template class basic_shared_word<wait_word>;

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
bool shared_mutex_core::look_again(bool (shared_word::*take_it)() noexcept) noexcept {
    if (!spinning_may_help()) return false;
    for (int i = 0; i < 16; ++i) pause();
    return word_.may_be_had() && (word_.*take_it)();
}

// --- writers

void shared_mutex_core::lock_slowly() {
    owner_.refuse_again(again);
    if (!look_again(&shared_word::take)) {
        const waits_for edge("waits to write under shared_mutex", this, &holder_of, false);
        static_cast<void>(acquire(writes, no_deadline));
    }
    owner_.take();
    reader_.forget();
}

bool shared_mutex_core::try_lock_until(time_point deadline) {
    owner_.refuse_again(again);
    if (!look_again(&shared_word::take) && !acquire(writes_for_a_time, deadline)) return false;
    owner_.take();
    reader_.forget();
    return true;
}

bool shared_mutex_core::acquire(const wait_reason& reason, time_point deadline) {
    refuse_on_shared_stack(this, swapped);
    const time_point began = now_for_sleep();
    for (bool was_woken = false;; was_woken = true) {
        if (was_woken && word_.arrive()) return true;
        const bool starves = was_woken && now_for_sleep() - began > patience;
        const wait_outcome outcome = wait_or_ready(
            reason, deadline,
            [this, was_woken, starves](waiter& me) noexcept {
                return word_.enqueue(me, was_woken, starves);
            },
            [this](waiter& me) noexcept { word_.withdraw(me); });
        if (outcome != wait_outcome::event) return outcome == wait_outcome::ready;
    }
}

// --- readers

void shared_mutex_core::lock_shared_slowly() {
    owner_.refuse_again(reads_own);
    if (!look_again(&shared_word::take_shared)) {
        const waits_for edge("waits to read under shared_mutex", this, &writer_of, false);
        static_cast<void>(acquire_shared(reads, no_deadline));
    }
    reader_.add();
}

bool shared_mutex_core::try_lock_shared_until(time_point deadline) {
    owner_.refuse_again(reads_own);
    if (!look_again(&shared_word::take_shared) && !acquire_shared(reads_for_a_time, deadline))
        return false;
    reader_.add();
    return true;
}

bool shared_mutex_core::acquire_shared(const wait_reason& reason, time_point deadline) {
    refuse_on_shared_stack(this, swapped);
    const time_point began = now_for_sleep();
    for (bool was_woken = false;; was_woken = true) {
        if (was_woken && word_.arrive_shared()) return true;
        const bool starves = was_woken && now_for_sleep() - began > patience;
        const wait_outcome outcome = wait_or_ready(
            reason, deadline,
            [this, was_woken, starves](waiter& me) noexcept {
                return word_.enqueue_shared(me, was_woken, starves);
            },
            [this](waiter& me) noexcept { word_.withdraw_shared(me); });
        if (outcome != wait_outcome::event) return outcome == wait_outcome::ready;
    }
}

}  // namespace weft::inline v0::detail
