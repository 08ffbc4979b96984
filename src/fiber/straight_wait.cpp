// straight_wait.cpp - the short way of a wait and of a yield, after what is inlined of it
// (straight_wait.hpp).
//
// Each ends in a call of something that returns to its own caller in its stead, so none of them has
// a frame.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/base/assert.hpp>
#include <weft/base/test_point.hpp>
#include <weft/fiber/detail/straight_wait.hpp>

#include "fiber/leaving.hpp"

namespace weft::inline v0::detail {

namespace {

// --- a yield that cannot go the straight way, or not yet

runnable* after_yield(fiber_worker& worker, fiber_block& left) noexcept {
    list(left);
    WEFT_TEST_POINT("fiber: has left, by a yield");
    if (worker.attachment != nullptr)
        worker.exec.requeue(&left);
    else
        worker.exec.home.post(&left);
    return nullptr;
}

void yield_otherwise(void*, void*) {
    fiber_worker& worker = *fiber_worker::here();
    fiber_block& me = *worker.current;
    if (me.isolated.held != nullptr) return wait_without(me, &yield_otherwise, nullptr);
    if ((me.attention.load(std::memory_order_relaxed) & (hook_bit | no_suspend_bit)) != 0)
        return yield_through_hooks(me);
    runnable* const next = worker.exec.pick();
    if (next == nullptr && worker.exec.ticks.load(std::memory_order_relaxed) != 0) return;
    if (!worker.exec.local) {
        worker.after = &after_yield;
        worker.left = &me;
        return leave(worker, me, next);
    }
    list_on_loop(worker, me);
    worker.exec.ready.push(&me);
    leave(worker, me, next);
}

// --- the straight way

[[gnu::always_inline]] inline who_left leave_straight_for(fiber_worker& worker, fiber_block& me,
                                                          runnable& next) noexcept {
    auto& other = static_cast<fiber_block&>(next);
    thread_block& thread = this_thread_block();
    note_running(thread, me);
    worker.current = &other;
    note_runs(other);
    thread.running = other.running;
    if (must_carry(*thread.exceptions, other.where)) [[unlikely]]
        return carry_and_return(me.where, other.where);
    return swap_and_return(me.where, other.where);
}

// For what is no fiber to switch to.
who_left leave_for_whatever(void* worker_side, void* block, void* next) {
    auto& worker = *static_cast<fiber_worker*>(worker_side);
    auto& me = *static_cast<fiber_block*>(block);
    return leave_for_next(this_thread_block(), worker, me, static_cast<runnable*>(next));
}

[[gnu::always_inline]] inline who_left leave_for_picked(fiber_worker& worker, fiber_block& me,
                                                        runnable* next) noexcept {
    if (next != nullptr && next->kind == own_kind) [[likely]]
        return leave_straight_for(worker, me, *next);
    return call_leaving(&leave_for_whatever, &worker, &me, next);
}

// What takes more than a step to find: a look around comes first, or the queue is long. Its frame
// is gone before it leaves, so that whoever goes on there later comes back as from a straight wait:
// by another way the processor would guess wrong several times, every so many dispatches.
[[gnu::noinline]] who_left find_and_leave(fiber_worker& worker, fiber_block& me) noexcept {
    return leave_for_picked(worker, me, worker.exec.pick());
}

// The same of one that yields.
[[gnu::noinline]] who_left find_and_yield(fiber_worker& worker, fiber_block& me) noexcept {
    runnable* const picked = worker.exec.pick();
    if (picked == nullptr && worker.exec.ticks.load(std::memory_order_relaxed) != 0)
        return &me.where;  // 0: perhaps the loop is stepped
    worker.exec.ready.push(&me);
    return leave_for_picked(worker, me, picked);
}

who_left yield_specially(void*, void*, void*) {
    yield_otherwise(nullptr, nullptr);
    return &no_fiber;  // nobody that ended is left to be looked after
}

}  // namespace

[[gnu::aligned(64)]] who_left leave_straight(worker_front& front, fiber_front& fiber,
                                             const wait_reason* meanwhile) {
    auto& worker = static_cast<fiber_worker&>(front);
    auto& me = static_cast<fiber_block&>(fiber);
    me.reason.store(meanwhile, std::memory_order_relaxed);
    runnable* const next = worker.exec.pick_at_once(own_kind);
    if (next == nullptr) [[unlikely]]
        return find_and_leave(worker, me);
    return leave_straight_for(worker, me, *next);  // itself, if its event came meanwhile
}

// On a loop the fiber may queue itself before it has left: nobody else takes from that queue.
[[gnu::aligned(64)]] who_left yield_straight() {
    fiber_worker* const worker = fiber_worker::here();
    WEFT_ASSERT(worker != nullptr && worker->current != nullptr, "yield: called outside any fiber");
    fiber_block& me = *worker->current;
    if (me.is_special()) [[unlikely]]
        return call_leaving(&yield_specially, nullptr, nullptr, nullptr);
    runnable* const next = worker->exec.pass_at_once(&me, own_kind);
    if (next == nullptr) [[unlikely]]
        return find_and_yield(*worker, me);
    return leave_straight_for(*worker, me, *next);
}

void arrive_after_end() noexcept { arrive(); }

}  // namespace weft::inline v0::detail
