// leaving.hpp - a fiber leaves its stack, and what whoever goes on does for it.
//
// A fiber that stops asks its worker what runs next. If that is a started fiber of the same kind it
// switches to it directly; otherwise to the worker's own stack, where fiber_block::run() goes on:
//
//      A                      B                       worker's stack
//      wait(): publishes                              loop: r->run() ...
//      pick() == B
//      swap  ---------------> goes on
//                             suspend(): after = ...
//                             swap  ----------------> after(B); return what runs next
//
// A swapped fiber does so if the other has another shared stack of their worker: it makes room for
// it there, and whoever goes on settles what it left on its own (swapped_place::make_way).
//
// On a loop a wait is published before the fiber leaves: only this thread resumes it. Where others
// may, and for a suspend(), a hook or an end, what is to be done comes once it is off its stack
// (`after`), by whoever goes on; and after that has published a fiber, nothing of it is touched.
//
// Inside a coroutine the thread says that this one runs; while a fiber runs outside of any it says
// nothing, and that is how it is at every switch to a fiber. So one that waits inside a coroutine
// takes that along, and says it again when it goes on.
//
// What is inlined here is so into the four files that switch: suspend.cpp (the verbs),
// endless_wait.cpp (a wait without a deadline), straight_wait.cpp (the short way of a loop's
// fibers), fiber_switch.cpp (first run and end). Everything that switches is reached through
// call_switching, or stands in the frame of who waits (docs/switch.md).
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include <weft/base/thread_block.hpp>

#include "context/switch.hpp"
#include "coroutine/swapped_backend.hpp"
#include "fiber/fiber_life.hpp"
#include "fiber/fiber_worker.hpp"

#if WEFT_NATIVE_SWITCH && defined(__x86_64__) && !WEFT_ASAN && !WEFT_TSAN
extern "C" unsigned char weft_v0_leave_swapped(weft::context& from, weft::context& to) noexcept;
#endif

namespace weft::inline v0::detail {

/// For what is to run before all others on the worker, if it still can; once it was taken out of
/// its queue.
void run_first(fiber_worker& worker, runnable* r) noexcept;

/// Done for the one that left, by the fiber that goes on.
[[gnu::always_inline]] inline void arrive() noexcept {
    fiber_worker& worker = *fiber_worker::here();
    if (worker.after == nullptr) return;
    const after_function after = std::exchange(worker.after, nullptr);
    if (runnable* const first = after(worker, *worker.left)) run_first(worker, first);
}

/// The kinds that can be left straight for another of theirs.
inline constexpr auto own_kind = static_cast<std::uint8_t>(stack_kind::own) | started_bit;
inline constexpr auto swapped_kind = static_cast<std::uint8_t>(stack_kind::swapped) | started_bit;

// --- leaving

[[gnu::always_inline]] inline context& worker_side(fiber_worker& worker, own_fiber&) noexcept {
    return worker.home;
}
[[gnu::always_inline]] inline portable_context& worker_side(fiber_worker& worker,
                                                            ucontext_fiber&) noexcept {
    return worker.portable_home;
}

/// For the fiber `next`, if it is of the same kind and started, else for the worker's own stack.
template <class Block>
[[gnu::always_inline]] inline void leave_for(fiber_worker& worker, Block& me,
                                             runnable* next) noexcept {
    if (next == &me) return note_runs(me);  // its event came meanwhile
    activity* const inside = std::exchange(this_thread_block().running, nullptr);
    if (next != nullptr && next->kind == me.runnable::kind) [[likely]] {
        auto& other = static_cast<Block&>(*next);
        worker.current = &other;
        note_runs(other);
        swap_here(me.where, other.where);
    } else {
        worker.then = next;
        swap_here(me.where, worker_side(worker, me));
    }
    this_thread_block().running = inside;
    arrive();
}

// Switches, and returns what weft_v0_arrive_swapped() does (fiber_switch.cpp). A function that ends
// in it leaves nothing of its own on the stack, where it would be kept while the fiber waits.
#if WEFT_NATIVE_SWITCH && defined(__x86_64__) && !WEFT_ASAN && !WEFT_TSAN
[[gnu::always_inline]] inline unsigned char leave_swapped(context& from, context& to) noexcept {
    return ::weft_v0_leave_swapped(from, to);
}
#else
unsigned char leave_swapped(context& from, context& to) noexcept;
#endif
/// The same with exceptions in flight.
unsigned char carry_and_leave_swapped(context& from, context& to) noexcept;

/// From inside a coroutine: by the worker, who asks the thread what to keep of the shared stack.
unsigned char leave_inside_coroutine(fiber_worker& worker, swapped_fiber& me,
                                     runnable* next) noexcept;

/// From one of the worker's shared stacks to another straight on, otherwise by the worker. Says
/// that the event came. Inlined, and to be the last thing that a function does: else a frame more
/// would be kept, with the others, while the fiber waits.
[[gnu::always_inline]] inline unsigned char leave_shared_stack(fiber_worker& worker,
                                                               swapped_fiber& me,
                                                               runnable* next) noexcept {
    if (this_thread_block().running != nullptr) [[unlikely]]
        return leave_inside_coroutine(worker, me, next);
    context* to = nullptr;
    if (next != nullptr && next->kind == swapped_kind) {
        auto& other = static_cast<swapped_fiber&>(*next);
        if (other.place.can_follow(me.place)) [[likely]] {
            worker.current = &other;
            note_runs(other);
            worker.unsettled = &me;
            other.place.make_way(other.where, me.place);
            to = &other.where;
        }
    }
    if (to == nullptr) {
        worker.then = next;
        to = &me.place.back();
    }
    if (must_carry(*exceptions_of_this_thread(), *to)) [[unlikely]]
        return carry_and_leave_swapped(me.where, *to);
    return leave_swapped(me.where, *to);
}

/// One that is not of kind own.
void leave_otherwise(fiber_worker& worker, fiber_block& me, runnable* next) noexcept;

[[gnu::always_inline]] inline void leave(fiber_worker& worker, fiber_block& me,
                                         runnable* next) noexcept {
    if (me.runnable::kind == own_kind) [[likely]]
        leave_for(worker, static_cast<own_fiber&>(me), next);
    else
        leave_otherwise(worker, me, next);
}

// --- of kind own, on a loop

// A fiber of kind own on a loop leaves for another of its kind. Says who left for it in turn;
// nullptr: one that ended, for which there is something to be done.
[[gnu::always_inline]] inline const context* switch_to_own(const thread_block& thread,
                                                           fiber_worker& worker, own_fiber& me,
                                                           own_fiber& other) noexcept {
    worker.current = &other;
    note_runs(other);
    return swap_here(*thread.exceptions, me.where, other.where).left;
}

// The same for the worker's own stack, which goes on with `next`.
[[gnu::always_inline]] inline const context* switch_to_worker(const thread_block& thread,
                                                              fiber_worker& worker, own_fiber& me,
                                                              runnable* next) noexcept {
    worker.then = next;
    return swap_here(*thread.exceptions, me.where, worker.home).left;
}

// A fiber of kind own on a loop, with nothing special, leaves and comes back. Nothing is to be done
// then for the one that left, but for one that ended, which jumped: nullptr is returned then.
[[gnu::always_inline]] inline const context* leave_for_next(const thread_block& thread,
                                                            fiber_worker& worker, own_fiber& me,
                                                            runnable* next) noexcept {
    if (next == nullptr || next->kind != own_kind) [[unlikely]]
        return switch_to_worker(thread, worker, me, next);
    if (next != &me) [[likely]]
        return switch_to_own(thread, worker, me, static_cast<own_fiber&>(*next));
    note_runs(me);  // its event came meanwhile
    return &me.where;
}

// --- before a fiber can be found by others

[[gnu::always_inline]] inline void list(fiber_block& left) noexcept {
    if (!left.is_listed) [[unlikely]]
        fiber_list::of(*left.home).add(left);
}

// From then on the straight way is open to one of kind own. A locked operation would wait for every
// store before it, those to a new stack among them: so it is done only where others may cancel.
[[gnu::always_inline]] inline void list_on_loop(const fiber_worker& worker,
                                                fiber_block& me) noexcept {
    if ((me.attention.load(std::memory_order_relaxed) & apart_bit) == 0) return;
    list(me);  // which may cancel it
    if (me.runnable::kind != own_kind) return;
    constexpr auto others = static_cast<std::uint8_t>(~apart_bit);
    if (worker.exec.closed)
        me.attention.store(me.attention.load(std::memory_order_relaxed) & others,
                           std::memory_order_relaxed);
    else
        me.attention.fetch_and(others, std::memory_order_relaxed);
}

}  // namespace weft::inline v0::detail
