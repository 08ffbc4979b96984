// fiber_life.hpp - what leaving.hpp and its neighbours need of each other.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <weft/fiber/detail/deadline_scope.hpp>
#include <weft/fiber/suspend.hpp>

#include "fiber/fiber_worker.hpp"

namespace weft::inline v0::detail {

// fiber_switch.cpp
runnable* run_on(fiber_worker& worker, fiber_block& block) noexcept;
void own_entry(void* block);
void ucontext_entry(void* block);
void thread_entry(void* block);
/// Goes back for good, unless it never left: then it returns.
void end_swapped(swapped_fiber& me);
void live(fiber_block& me);

// suspend.cpp
/// What reports say of one that has left by suspend().
inline constexpr wait_reason is_suspended{"suspended"};
/// Off the stack of one that left through its hooks: hands it to whoever resumes it.
runnable* publish_left(fiber_worker& worker, fiber_block& left, runnable* resumed_by) noexcept;
/// Leaves. A wait with a deadline arms its timer first.
void leave_with(after_function after, wait_timer* timer, const wait_request* waits) noexcept;
[[nodiscard]] departure* keep_if_swapped(fiber_worker& worker, fiber_block& me, departure* what,
                                         bool waits) noexcept;

// fiber_birth.cpp
/// From the worker's cache over the depot of control blocks.
[[nodiscard]] void* take_memory(std::size_t size);
void give_memory(void* memory, std::size_t size) noexcept;

// fiber_life.cpp
/// Gives it a stack, or whatever its kind runs on. False: there is none now, and it has been seen
/// to.
[[nodiscard]] bool prepare(fiber_worker& worker, fiber_block& block) noexcept;
/// From the first instruction on its stack to the last.
void live_on(fiber_block& me);
void swapped_entry(void* block);
/// Asks what runs after the one that ended. If that is a fiber that has not started it takes over
/// the stack, and is returned. Otherwise it is in worker.then.
[[nodiscard]] fiber_block* successor_of(fiber_block& ended) noexcept;
/// A stack was given back here: one that found none may try again.
void feed_hungry(fiber_worker& worker, executor& home) noexcept;
/// Nothing of it is left but the block: from now on it has ended, for all.
void bury(fiber_block& ended) noexcept;
/// The same, of a child, by the fiber that opened its group and in whose stack it ran.
void bury_inside(fiber_worker& worker, fiber_block& ended) noexcept;
/// Off its stack: gives everything back.
runnable* after_end(fiber_worker& worker, fiber_block& ended) noexcept;

/// For executor::unhandled(). If that terminates, a line says whose exception it was.
void give_to_nobody(fiber_block& ended, std::exception_ptr error) noexcept;

/// From now on terminate says in which fiber it happens, before it does what it did before.
void name_fibers_at_terminate() noexcept;

// waiting.cpp
/// False: it is cancelled, and the request says so. Aborts: inside no_suspend.
[[nodiscard]] bool may_wait(fiber_block& me, wait_request& request) noexcept;
void refuse_in_no_suspend(const fiber_block& me) noexcept;
/// In the timers of the worker, or of what stands in for them on a user's executor.
void arm(fiber_worker& worker, timer_node& timer, time_point deadline) noexcept;
/// The timer of one wait: in the frame of that, but for swapped fibers, whose frames go away.
/// Aborts: if there is no memory for that.
class timer_of_wait {
public:
    explicit timer_of_wait(fiber_block& me) noexcept
        : in_frame_(me), used_(me.stack() == stack_kind::swapped ? make_apart(me) : &in_frame_) {}
    timer_of_wait(const timer_of_wait&) = delete;
    timer_of_wait& operator=(const timer_of_wait&) = delete;
    ~timer_of_wait() {
        if (used_ != &in_frame_) free_apart(used_);
    }
    [[nodiscard]] wait_timer* get() const noexcept { return used_; }

private:
    static wait_timer* make_apart(fiber_block& me) noexcept;
    static void free_apart(wait_timer* timer) noexcept;

    wait_timer in_frame_;
    wait_timer* const used_;
};
/// Arms the timer, if the wait has one: at once where this thread fires it.
[[gnu::always_inline]] inline void begin_deadline(fiber_worker& worker, wait_timer* timer,
                                                  const wait_request& request) noexcept {
    if (timer == nullptr) return;
    if (worker.exec.timers == nullptr) [[unlikely]]
        worker.late_timer = timer;
    else
        arm(worker, *timer, request.deadline);
}
/// Notes what it came to; no timer is armed any more.
[[gnu::always_inline]] inline void end_wait(fiber_block& me, wait_timer* timer,
                                            wait_request& request) noexcept {
    request.outcome = me.state.outcome();
    if (timer != nullptr && request.outcome != wait_outcome::timed_out) timer_queue::disarm(*timer);
}
void wait_in_thread(wait_request& request) noexcept;
/// For one that holds something: wait(request, nullptr) without it.
void wait_without(fiber_block& me, isolation::wait_call wait, void* request);
/// Takes the waiter out of its list if its wait ended otherwise than by its event. Once.
void conclude(withdrawing_request& request, waiter& me) noexcept;

/// Lends to the fibers of users' executors.
[[nodiscard]] driver_lender& lender_of_guests() noexcept;

// cancel.cpp
/// A child that never waited is not in the list of its group, which asks it to stop by that. From
/// now on it is; if the group is cancelled it has been asked when this returns. From: the child.
void enlist(fiber_block& me) noexcept;
/// The same, if the group is cancelled.
[[gnu::always_inline]] inline void enlist_if_cancelled(fiber_block& me) noexcept {
    if ((me.attention.load(std::memory_order_relaxed) & unenlisted_bit) != 0 &&
        me.group().reason.load(std::memory_order_acquire) != cancel_reason::none) [[unlikely]]
        enlist(me);
}
/// What is put off until a fiber waits, follows its cancellation, or asks for it.
[[gnu::always_inline]] inline void catch_up(fiber_block& me) noexcept;

// deadline_scope.cpp
/// Arms the timers of deadline scopes that have none yet; those that are late already are
/// cancelled.
void arm_deadlines(fiber_block& me) noexcept;
/// Before it goes to another executor, whose timers will do.
void disarm_deadlines(fiber_block& me) noexcept;
/// For one that asks and does not wait: its worker, which it holds, would never look at the timer.
void cancel_late_deadlines(fiber_block& me) noexcept;

void catch_up(fiber_block& me) noexcept {
    const std::uint8_t attention = me.attention.load(std::memory_order_relaxed);
    if ((attention & unenlisted_bit) != 0) enlist(me);
    if ((attention & unarmed_bit) != 0) arm_deadlines(me);
}

// hooks.cpp
void leave_through_hooks(fiber_block& me, departure& what, bool waits);
void yield_through_hooks(fiber_block& me);
void finish_hooks(fiber_block& me) noexcept;

}  // namespace weft::inline v0::detail
