// cancel_follower.hpp - cancellation that goes from one fiber to others.
//
// A follower is attached to the innermost scope of the running fiber (to the fiber itself, if it is
// in none) and is told, once, when that is cancelled by itself or with one around it. A task group
// is one: it passes it on to its children, each of which may have followers of its own.
//
//   canceller                                          fiber that has a follower
//   under the fiber's lock: sets the reason;           attach(): links it under the lock, and
//   marks each follower that this concerns as          tells it itself if it is cancelled already
//   being told, and takes it into its round            detach(): unlinks it under the lock; if it
//   without any lock: tells them one by one            is being told, waits until that is over
//   under the lock: not being told any more;
//   claims the one who waits for that, then wakes it
//
// So a follower may lie in the stack of its fiber. A round is a list and no recursion: a tree may
// be deeper than the canceller's stack.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <weft/fiber/cancel.hpp>
#include <weft/fiber/this_fiber.hpp>
#include <weft/fiber/waiter.hpp>

namespace weft::inline v0::detail {

class cancel_round;

class cancel_follower {
public:
    cancel_follower() = default;
    cancel_follower(const cancel_follower&) = delete;
    cancel_follower& operator=(const cancel_follower&) = delete;

    /// From: a fiber; elsewhere it aborts. Fails: std::bad_alloc.
    void attach();
    /// Suspends: maybe. Cancel: ignored. From: the fiber that attached it.
    void detach() noexcept;

protected:
    ~cancel_follower() = default;
    /// Whether the fiber that attached it runs here.
    [[nodiscard]] bool is_attached_here() const noexcept;
    /// On the canceller's thread, without locks. Whoever else is to be stopped goes to the round.
    virtual void follow(cancel_reason reason, cancel_round& round) noexcept = 0;

private:
    friend class cancel_round;

    fiber_block* owner_ = nullptr;
    cancel_scope* scope_ = nullptr;
    // Guarded by the owner's lock.
    cancel_follower* next_ = nullptr;
    cancel_reason told_ = cancel_reason::none;
    bool being_told_ = false;
    waiter* leaver_ = nullptr;
    // The round's.
    cancel_follower* next_in_round_ = nullptr;
};

/// Those that remain to be told.
class cancel_round {
public:
    cancel_round() = default;
    cancel_round(const cancel_round&) = delete;
    cancel_round& operator=(const cancel_round&) = delete;
    ~cancel_round() { tell(); }

    /// Asks a fiber to stop.
    void stop(const fiber_handle& fiber, cancel_reason reason) noexcept;
    /// True: it had not been asked.
    bool stop(fiber_block& block, cancel_reason reason) noexcept;
    /// Takes the followers of a fiber whose scopes are cancelled now. With its lock held.
    void collect(fiber_block& block) noexcept;
    /// Until nobody is left.
    void tell() noexcept;

private:
    static void let_go(cancel_follower& told) noexcept;

    cancel_follower* first_ = nullptr;
    cancel_follower* last_ = nullptr;
};

}  // namespace weft::inline v0::detail
