// straight_wait.cpp - the short way of a wait and of a yield, between what is inlined of it
// (straight_wait.hpp): who is next. And a yield that cannot go that way.
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

}  // namespace

void yield_function(void*, void*) {
    fiber_worker* const here = fiber_worker::here();
    WEFT_ASSERT(here != nullptr && here->current != nullptr, "yield: called outside any fiber");
    fiber_worker& worker = *here;
    fiber_block& me = *worker.current;
    if (me.isolated.held != nullptr) return wait_without(me, &yield_function, nullptr);
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

namespace {

way_out nowhere(own_fiber& me) noexcept { return {&me.where, nullptr}; }

// With exceptions in flight, or inside a coroutine, the switch has a frame, in which those wait; so
// it is made here.
[[gnu::noinline, gnu::cold]] way_out leave_in_frame(fiber_worker& worker, own_fiber& me,
                                                    runnable* next) noexcept {
    leave_for(worker, me, next);
    return nowhere(me);
}

[[gnu::always_inline]] inline bool needs_frame() noexcept {
    const exception_words& words = *exceptions_of_this_thread();
    return ((reinterpret_cast<std::uintptr_t>(words.caught) | words.uncaught) |
            reinterpret_cast<std::uintptr_t>(running_on_this_thread())) != 0;
}

// To itself, if its event came meanwhile.
[[gnu::always_inline]] inline way_out way_to_own(fiber_worker& worker, own_fiber& me,
                                                 runnable& next) noexcept {
    auto& other = static_cast<own_fiber&>(next);
    if (needs_frame()) [[unlikely]]
        return leave_in_frame(worker, me, &other);
    worker.current = &other;
    note_runs(other);
    return {&me.where, &other.where};
}

// To whatever was picked; nullptr: to the worker.
way_out way_to_any(fiber_worker& worker, own_fiber& me, runnable* next) noexcept {
    if (next != nullptr && next->kind == own_kind) return way_to_own(worker, me, *next);
    if (needs_frame()) return leave_in_frame(worker, me, next);
    worker.then = next;
    return {&me.where, &worker.home};
}

// What takes more than a step to find: a look around comes first, or the queue is long.
[[gnu::noinline]] way_out find_next(fiber_worker& worker, own_fiber& me) noexcept {
    return way_to_any(worker, me, worker.exec.pick());
}

// The same for one that yields.
[[gnu::noinline]] way_out find_other(fiber_worker& worker, own_fiber& me) noexcept {
    runnable* const picked = worker.exec.pick();
    if (picked == nullptr && worker.exec.ticks.load(std::memory_order_relaxed) != 0)
        return nowhere(me);  // 0: perhaps the loop is stepped
    worker.exec.ready.push(&me);
    return way_to_any(worker, me, picked);
}

}  // namespace

[[gnu::aligned(64)]] way_out choose_next(worker_front& front, fiber_front& fiber,
                                         const wait_reason* meanwhile) noexcept {
    auto& worker = static_cast<fiber_worker&>(front);
    auto& me = static_cast<own_fiber&>(fiber);
    me.reason.store(meanwhile, std::memory_order_relaxed);
    runnable* const next = worker.exec.pick_at_once(own_kind);
    if (next == nullptr) [[unlikely]]
        return find_next(worker, me);
    return way_to_own(worker, me, *next);
}

// On a loop the fiber may queue itself before it has left: nobody else takes from that queue.
[[gnu::aligned(64)]] way_out choose_other(worker_front& front, fiber_front& fiber) noexcept {
    auto& worker = static_cast<fiber_worker&>(front);
    auto& me = static_cast<own_fiber&>(fiber);
    runnable* const next = worker.exec.pass_at_once(&me, own_kind);
    if (next == nullptr) [[unlikely]]
        return find_other(worker, me);
    return way_to_own(worker, me, *next);
}

void arrive_after_end() noexcept { arrive(); }

}  // namespace weft::inline v0::detail
