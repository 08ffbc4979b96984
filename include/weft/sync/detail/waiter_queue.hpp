// waiter_queue.hpp - those who wait for a primitive, the eldest first.
//
// A ring through the waiters' own links, so nothing is allocated. It has no lock: whoever owns the
// queue guards it (wait_word.hpp). A waiter whose wait ended otherwise, by its deadline or by
// cancellation, may still stand in it; then claiming it fails, and it takes itself out.
//
// Waking comes after the owner's lock is dropped, for whoever wakes may destroy the primitive. In
// between those that are claimed stand in a woken_list, which is the waker's alone.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <weft/fiber/waiter.hpp>

namespace weft::inline v0::detail {

/// Claimed waiters, to be woken in the order in which they were added.
class woken_list {
public:
    void add(waiter& claimed) noexcept {
        claimed.next = nullptr;
        (last_ != nullptr ? last_->next : first_) = &claimed;
        last_ = &claimed;
    }

    /// Everything that they waited for may be gone when this returns.
    void wake() noexcept {
        for (waiter* one = first_; one != nullptr;) {
            waiter* const next = one->next;  // it may be gone after the wake
            one->next = nullptr;
            one->wake();
            one = next;
        }
    }

private:
    waiter* first_ = nullptr;
    waiter* last_ = nullptr;
};

class waiter_queue {
public:
    [[nodiscard]] bool empty() const noexcept { return first_ == nullptr; }

    void push_back(waiter& one) noexcept {
        if (first_ == nullptr) {
            one.next = one.previous = &one;
            first_ = &one;
            return;
        }
        one.next = first_;
        one.previous = first_->previous;
        first_->previous->next = &one;
        first_->previous = &one;
    }

    void push_front(waiter& one) noexcept {
        push_back(one);
        first_ = &one;
    }

    /// One that is in no queue, or in this.
    void remove(waiter& one) noexcept {
        if (one.next == nullptr) return;
        if (one.next == &one) {
            first_ = nullptr;
        } else {
            one.previous->next = one.next;
            one.next->previous = one.previous;
            if (first_ == &one) first_ = one.next;
        }
        one.next = one.previous = nullptr;
    }

    [[nodiscard]] waiter* first() const noexcept { return first_; }

    /// Takes the eldest out that still waits, claimed; nullptr: nobody does.
    [[nodiscard]] waiter* claim_one() noexcept {
        while (waiter* const one = first_) {
            remove(*one);
            if (one->claim()) return one;
        }
        return nullptr;
    }

    /// Takes all out, and claims those who still wait.
    void claim_all(woken_list& claimed) noexcept {
        while (waiter* const one = claim_one()) claimed.add(*one);
    }

private:
    waiter* first_ = nullptr;
};

}  // namespace weft::inline v0::detail
