// fiber_switch.cpp - a fiber runs: entered by its worker, until it leaves (leaving.hpp) or ends.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/base/assert.hpp>

#include "fiber/leaving.hpp"

namespace weft::inline v0::detail {

// --- arriving

// A guest's worker has no queue that anybody would look at again.
// Where others take from the queues it goes to the slot: they must see it while this worker runs
// something else.
void run_first(fiber_worker& worker, runnable* r) noexcept {
    note_runs(*r);  // it was taken out of its queue
    if (worker.exec.shared != nullptr)
        return r->bound_to == 0 ? worker.exec.wake(r) : worker.exec.home.post(r);
    if (worker.attachment != nullptr && (r->bound_to == 0 || r->bound_to == worker.exec.number))
        worker.exec.put_first(r);
    else
        worker.exec.home.post(r);
}

namespace {

// A fiber on a thread of its own stands in for its worker's thread.
void adopt_thread(thread_fiber& me) noexcept {
    thread_block& thread = this_thread_block();
    thread.runs_for = &me.on->exec;
    thread.fibers = me.on;
}

}  // namespace

// A swapped fiber goes on: after another, or entered by its worker. Says what its wait came to, if
// that cannot be anything else.
extern "C" [[gnu::visibility("hidden")]] unsigned char weft_v0_arrive_swapped() noexcept {
    fiber_worker& worker = *fiber_worker::here();
    if (swapped_fiber* const left = std::exchange(worker.unsettled, nullptr)) {
        left->place.settle(left->where);
        arrive();
    }
    return std::to_underlying(wait_outcome::event);
}

// --- leaving, for the kinds that do not do so all the time

#if !(WEFT_NATIVE_SWITCH && defined(__x86_64__) && !WEFT_ASAN && !WEFT_TSAN)
[[gnu::noinline]] unsigned char leave_swapped(context& from, context& to) noexcept {
    static_cast<void>(swap_registers(from, to));
    return weft_v0_arrive_swapped();
}
#endif

[[gnu::noinline, gnu::cold]] unsigned char carry_and_leave_swapped(context& from,
                                                                   context& to) noexcept {
    static_cast<void>(carry_and_return(from, to));
    return weft_v0_arrive_swapped();
}

[[gnu::noinline, gnu::cold]] unsigned char leave_inside_coroutine(fiber_worker& worker,
                                                                  swapped_fiber& me,
                                                                  runnable* next) noexcept {
    activity* const inside = this_thread_block().running;
    worker.then = next;
    const unsigned char came = must_carry(*exceptions_of_this_thread(), me.place.back())
                                   ? carry_and_leave_swapped(me.where, me.place.back())
                                   : leave_swapped(me.where, me.place.back());
    this_thread_block().running = inside;
    return came;
}

namespace {

// What its own thread says that runs stays.
void leave_thread(fiber_worker& worker, thread_fiber& me, runnable* next) noexcept {
    worker.then = next;
    me.where->leave();
    adopt_thread(me);
}

}  // namespace

[[gnu::noinline]] void leave_otherwise(fiber_worker& worker, fiber_block& me,
                                       runnable* next) noexcept {
    switch (me.stack()) {
        case stack_kind::ucontext:
            return leave_for(worker, static_cast<ucontext_fiber&>(me), next);
        case stack_kind::thread:
            return leave_thread(worker, static_cast<thread_fiber&>(me), next);
        case stack_kind::swapped:
            leave_shared_stack(worker, static_cast<swapped_fiber&>(me), next);
            return;
        case stack_kind::own:
            return leave_for(worker, static_cast<own_fiber&>(me), next);
    }
}

// --- entering, from the worker's own stack

namespace {

void enter_function(void* block, void* side) {
    auto& me = *static_cast<fiber_block*>(block);
    auto& worker = *static_cast<fiber_worker*>(side);
    switch (me.stack()) {
        case stack_kind::own:
            swap_here(worker.home, static_cast<own_fiber&>(me).where);
            break;
        case stack_kind::ucontext:
            swap_here(worker.portable_home, static_cast<ucontext_fiber&>(me).where);
            break;
        case stack_kind::thread:
            static_cast<thread_fiber&>(me).on = &worker;
            static_cast<thread_fiber&>(me).where->enter();
            break;
        case stack_kind::swapped: {
            auto& it = static_cast<swapped_fiber&>(me);
            it.place.begin_visits(it.where, &swapped_entry, &me);
            auto& back = static_cast<swapped_fiber&>(*worker.current);
            back.place.settle(back.where);
            break;
        }
    }
}

}  // namespace

runnable* run_on(fiber_worker& worker, fiber_block& block) noexcept {
    if (!block.started() && !prepare(worker, block)) return nullptr;
    thread_block& thread = this_thread_block();
    worker.outside = thread.running;
    worker.current = &block;
    note_runs(block);
    thread.running = nullptr;
    call_switching(&enter_function, &block, &worker);
    thread.running = worker.outside;
    worker.current = nullptr;
    runnable* const then = std::exchange(worker.then, nullptr);
    if (worker.after != nullptr) {
        const after_function after = std::exchange(worker.after, nullptr);
        if (runnable* const first = after(worker, *worker.left)) {
            if (then != nullptr) {
                worker.exec.count_missed();  // it is picked once more
                run_first(worker, then);
            }
            return first;
        }
    }
    worker.exec.was_picked = then != nullptr;
    return then;
}

// --- the ends of a fiber's life on its stack

namespace {

// Jumps away from a stack that is not needed any more.
template <class Block>
[[noreturn, gnu::always_inline]] inline void depart(Block& me) noexcept {
    fiber_worker& worker = *fiber_worker::here();
    worker.after = &after_end;
    worker.left = &me;
    runnable* const next = std::exchange(worker.then, nullptr);
    if (next != nullptr && next->kind == me.runnable::kind) {
        auto& other = static_cast<Block&>(*next);
        worker.current = &other;
        note_runs(other);
        jump_from_here(other.where);
    }
    worker.then = next;
    jump_from_here(worker_side(worker, me));
}

}  // namespace

// Left by a jump: not instrumented (see context/annotate.hpp).
WEFT_NO_SANITIZE void own_entry(void* block) {
    auto* me = static_cast<fiber_block*>(block);
    live(*me);
    while ((me = successor_of(*me)) != nullptr) live_on(*me);
    depart(static_cast<own_fiber&>(*fiber_worker::here()->current));
}

WEFT_NO_SANITIZE void ucontext_entry(void* block) {
    auto* me = static_cast<fiber_block*>(block);
    live(*me);
    while ((me = successor_of(*me)) != nullptr) live_on(*me);
    depart(static_cast<ucontext_fiber&>(*fiber_worker::here()->current));
}

// The back end hands over when this returns.
void thread_entry(void* block) {
    auto& me = static_cast<thread_fiber&>(*static_cast<fiber_block*>(block));
    adopt_thread(me);
    live(me);
    fiber_worker& worker = *fiber_worker::here();
    worker.after = &after_end;
    worker.left = &me;
}

WEFT_NO_SANITIZE void end_swapped(swapped_fiber& me) {
    fiber_worker& worker = *fiber_worker::here();
    worker.after = &after_end;
    worker.left = &me;
    me.place.finish(me.where);
}

// First on its stack.
[[gnu::noinline]] void live(fiber_block& me) {
    arrive();
    live_on(me);
}

}  // namespace weft::inline v0::detail
