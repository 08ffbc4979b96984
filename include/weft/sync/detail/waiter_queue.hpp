// waiter_queue.hpp - those who wait for a primitive, the eldest first.
//
// A ring through the waiters' own links, so nothing is allocated. It has no lock: whoever owns the
// queue guards it (wait_word.hpp). A waiter whose wait ended otherwise, by its deadline or by
// cancellation, may still stand in it; then claiming it fails, and it takes itself out.
//
// Waking comes after the owner's lock is dropped, for whoever wakes may destroy the primitive. In
// between those that are claimed stand in a woken_list, which is the waker's alone.
//
// Written over its waiters, so that tests/model has the same queues.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <weft/fiber/waiter.hpp>

namespace weft::inline v0::detail {

/// Claimed waiters, to be woken in the order in which they were added.
template <class Waiter>
class basic_woken_list {
public:
    void add(Waiter& claimed) noexcept {
        claimed.next = nullptr;
        (last_ != nullptr ? last_->next : first_) = &claimed;
        last_ = &claimed;
    }

    /// Everything that they waited for may be gone when this returns.
    void wake() noexcept {
        for (Waiter* one = first_; one != nullptr;) {
            Waiter* const next = one->next;  // it may be gone after the wake
            one->next = nullptr;
            one->wake();
            one = next;
        }
    }

private:
    Waiter* first_ = nullptr;
    Waiter* last_ = nullptr;
};

template <class Waiter>
class basic_waiter_queue {
public:
    [[nodiscard]] bool empty() const noexcept { return first_ == nullptr; }

    void push_back(Waiter& one) noexcept {
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

    void push_front(Waiter& one) noexcept {
        push_back(one);
        first_ = &one;
    }

    /// One that is in no queue, or in this.
    void remove(Waiter& one) noexcept {
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

    [[nodiscard]] Waiter* first() const noexcept { return first_; }

    /// Takes the eldest out that still waits, claimed; nullptr: nobody does.
    [[nodiscard]] Waiter* claim_one() noexcept {
        while (Waiter* const one = first_) {
            remove(*one);
            if (one->claim()) return one;
        }
        return nullptr;
    }

    /// Takes all out, and claims those who still wait.
    void claim_all(basic_woken_list<Waiter>& claimed) noexcept {
        while (Waiter* const one = claim_one()) claimed.add(*one);
    }

private:
    Waiter* first_ = nullptr;
};

using woken_list = basic_woken_list<waiter>;
using waiter_queue = basic_waiter_queue<waiter>;

}  // namespace weft::inline v0::detail
