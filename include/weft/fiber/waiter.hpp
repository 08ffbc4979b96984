// waiter.hpp - somebody who waits, as a primitive sees it.
//
// A wait may end in three ways: its event came, its deadline passed, it was cancelled. Each is a
// source, perhaps on a thread of its own, and exactly one of them wins: see detail/wait_state.hpp.
// Whoever wins then makes the waiter run, and touches it no more after that.
//
// While a waiter is being published, whoever wants to claim it waits for that. A publish function
// must therefore not wait for a lock whose holder claims this waiter; if it takes several, then in
// the order in which everybody takes them.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

#include <weft/base/version.hpp>
#include <weft/fiber/detail/wait_state.hpp>

namespace weft::inline v0 {

/// What kind of wait, for dumps and reports. Static.
struct wait_reason {
    const char* text;         // "sleeps", "joins", "waits for a lock"
    bool cancellable = true;  // false: cancellation is ignored by this wait
};

/// A fiber or a plain thread that waits. In at most one list at a time, whose owner's lock guards
/// the links.
class waiter {
public:
    waiter(const waiter&) = delete;
    waiter& operator=(const waiter&) = delete;

    /// For the event's source: true if the event comes first. Then wake() must follow, once.
    /// From: any thread, while the waiter is in the caller's list (under the lock of that).
    [[nodiscard]] bool claim() noexcept { return claim(wait_outcome::event); }

    /// The same, if that takes one step; false: it was not claimed, and claim() says whether it can
    /// be.
    [[nodiscard]] bool claim_at_once() noexcept { return state.claim_at_once(closed); }

    /// Makes it run; it may be gone when this returns. From: whoever claimed it.
    inline void wake() noexcept;

    // The list of the primitive.
    /// Of the list that it waits in; belongs to whoever publishes it.
    waiter* next = nullptr;
    /// The same, backwards.
    waiter* previous = nullptr;

    // For weft's own sources.
    [[nodiscard]] bool claim(wait_outcome outcome) noexcept { return state.claim(outcome, closed); }
    /// The word that event, deadline and cancellation race for.
    detail::wait_state state;
    /// What waits.
    enum class who : unsigned char {
        fiber,          // it is resumed itself
        wrapped_fiber,  // what its hooks made of it is
        thread,         // it sleeps on a futex
    };
    /// A fiber or a plain thread; of a fiber, whether something is resumed in its stead. It alone
    /// changes that, before it can be claimed.
    who what;
    /// No other thread ever claims it: plain stores will do.
    std::atomic<bool> closed = false;  // relaxed
    bool listed = false;               // whether publish of a wait that can be withdrawn said true

protected:
    explicit waiter(who w) noexcept : what(w) {}
    ~waiter() = default;

private:
    void wake_apart() noexcept;
};

}  // namespace weft::inline v0

#include <weft/fiber/detail/fiber_front.hpp>  // wake()
