// fiber_switch.cpp - a fiber stops, another goes on.
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
// Everything here that switches is reached through call_switching, or ends in the switch
// (docs/switch.md).
//
// A long file, for every switch between fibers stands in it: they inline the same few steps.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/base/assert.hpp>
#include <weft/base/test_point.hpp>
#include <weft/fiber/suspend.hpp>
#include <weft/fiber/this_fiber.hpp>

#include "context/switch.hpp"
#include "coroutine/swapped_backend.hpp"
#include "fiber/fiber_extras.hpp"
#include "fiber/fiber_life.hpp"
#include "fiber/fiber_worker.hpp"

namespace weft::inline v0::detail {

namespace {

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

// Done for the one that left, by the fiber that goes on.
[[gnu::always_inline]] inline void arrive() noexcept {
    fiber_worker& worker = *fiber_worker::here();
    if (worker.after == nullptr) return;
    const after_function after = std::exchange(worker.after, nullptr);
    if (runnable* const first = after(worker, *worker.left)) run_first(worker, first);
}

// A fiber on a thread of its own stands in for its worker's thread.
void adopt_thread(thread_fiber& me) noexcept {
    thread_block& thread = this_thread_block();
    thread.runs_for = &me.on->exec;
    thread.fibers = me.on;
    thread.running = me.running;
}

constexpr auto swapped_kind = static_cast<std::uint8_t>(stack_kind::swapped) | started_bit;

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

#if WEFT_NATIVE_SWITCH && defined(__x86_64__)
extern "C" unsigned char weft_v0_leave_swapped(context& from, context& to) noexcept;
#endif

namespace {

// Switches, and returns what weft_v0_arrive_swapped() does. A function that ends in it leaves
// nothing of its own on the stack, where it would be kept while the fiber waits.
#if WEFT_NATIVE_SWITCH && defined(__x86_64__) && !WEFT_ASAN && !WEFT_TSAN
[[gnu::always_inline]] inline unsigned char leave_swapped(context& from, context& to) noexcept {
    return weft_v0_leave_swapped(from, to);
}
#else
[[gnu::noinline]] unsigned char leave_swapped(context& from, context& to) noexcept {
    static_cast<void>(swap_and_return(from, to));
    return weft_v0_arrive_swapped();
}
#endif

// The same with exceptions in flight.
[[gnu::noinline, gnu::cold]] unsigned char carry_and_leave_swapped(context& from,
                                                                   context& to) noexcept {
    static_cast<void>(carry_and_return(from, to));
    return weft_v0_arrive_swapped();
}

// --- leaving

[[gnu::always_inline]] inline context& worker_side(fiber_worker& worker, own_fiber&) noexcept {
    return worker.home;
}
[[gnu::always_inline]] inline portable_context& worker_side(fiber_worker& worker,
                                                            ucontext_fiber&) noexcept {
    return worker.portable_home;
}

template <class Block>
[[gnu::always_inline]] inline void leave_for(fiber_worker& worker, Block& me,
                                             runnable* next) noexcept {
    if (next == &me) return note_runs(me);  // its event came meanwhile
    thread_block& thread = this_thread_block();
    me.running = thread.running;
    if (next != nullptr && next->kind == me.runnable::kind) [[likely]] {
        auto& other = static_cast<Block&>(*next);
        worker.current = &other;
        note_runs(other);
        thread.running = other.running;
        swap_here(me.where, other.where);
    } else {
        worker.then = next;
        swap_here(me.where, worker_side(worker, me));
    }
    arrive();
}

void leave_thread(fiber_worker& worker, thread_fiber& me, runnable* next) noexcept {
    me.running = this_thread_block().running;
    worker.then = next;
    me.where->leave();
    adopt_thread(me);
}

// From one of the worker's shared stacks to another straight on, otherwise by the worker. Says that
// the event came. Inlined, and to be the last thing that a function does: else a frame more would
// be kept, with the others, while the fiber waits.
[[gnu::always_inline]] inline unsigned char leave_shared_stack(fiber_worker& worker,
                                                               swapped_fiber& me,
                                                               runnable* next) noexcept {
    thread_block& thread = this_thread_block();
    me.running = thread.running;
    context* to = nullptr;
    if (next != nullptr && next->kind == swapped_kind) {
        auto& other = static_cast<swapped_fiber&>(*next);
        if (other.place.can_follow(me.place)) [[likely]] {
            worker.current = &other;
            note_runs(other);
            thread.running = other.running;
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

constexpr auto own_kind = static_cast<std::uint8_t>(stack_kind::own) | started_bit;

[[gnu::always_inline]] inline void leave(fiber_worker& worker, fiber_block& me,
                                         runnable* next) noexcept {
    if (me.runnable::kind == own_kind) [[likely]]
        leave_for(worker, static_cast<own_fiber&>(me), next);
    else
        leave_otherwise(worker, me, next);
}

// The request of a swapped fiber goes where it can be read once the stack has gone away.
template <class Request>
[[gnu::noinline]] Request* keep_request(fiber_worker& worker, Request& request,
                                        Request& kept) noexcept {
    kept = request;
    if constexpr (std::is_same_v<Request, suspend_request>) request.taken = true;
    kept.relocate(worker.scratch, request.callable);
    kept.callable = worker.scratch;
    return &kept;
}

// --- what is done for the one that left

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

// False: the fiber is cancelled already, and claimed for that.
[[gnu::always_inline]] inline bool begin_wait(fiber_worker& worker, fiber_block& left,
                                              const wait_request& request) noexcept {
    left.closed.store(worker.exec.closed, std::memory_order_relaxed);
    if (!request.reason->cancellable) {
        left.state.begin_deaf(request.deadline != no_deadline);
        return true;
    }
    return left.state.begin(left.closed, [&left] { return left.is_cancelled(); });
}

// Puts one that has left where its event will find it. Returns what is to run at once, if it has
// come already. After it was published nothing of `left` is touched.
[[gnu::always_inline]] inline runnable* publish(fiber_worker& worker, fiber_block& left,
                                                const wait_request& request,
                                                runnable* resumed_by) noexcept {
    if (worker.exec.local || !request.reason->cancellable) {
        if (!begin_wait(worker, left, request)) return resumed_by;
        if (request.call(request.callable, left)) return nullptr;
        return left.state.end_ready(left.closed) ? resumed_by : nullptr;
    }
    // Other threads may run it, and cancel it at any time.
    left.closed.store(false, std::memory_order_relaxed);
    const bool waits = left.state.begin_and_publish(
        [&left] { return left.is_cancelled(); },
        [&left, &request] { return request.call(request.callable, left); });
    return waits ? nullptr : resumed_by;
}

// The same with a timer that another thread fires, perhaps at once: armed while the word says that
// it is being published.
[[gnu::noinline]] runnable* publish_and_arm(fiber_worker& worker, fiber_block& left,
                                            const wait_request& request,
                                            runnable* resumed_by) noexcept {
    wait_timer& timer = *std::exchange(worker.late_timer, nullptr);
    const bool deaf = !request.reason->cancellable;
    left.closed.store(false, std::memory_order_relaxed);
    const bool waits =
        left.state.begin_and_publish([&left, deaf] { return !deaf && left.is_cancelled(); },
                                     [&] {
                                         arm(worker, timer, request.deadline);
                                         return request.call(request.callable, left);
                                     },
                                     deaf);
    return waits ? nullptr : resumed_by;
}

runnable* after_wait(fiber_worker& worker, fiber_block& left) noexcept {
    list(left);
    return publish(worker, left, static_cast<const wait_request&>(*worker.leaving), &left);
}

runnable* after_timed_wait(fiber_worker& worker, fiber_block& left) noexcept {
    if (worker.late_timer == nullptr) return after_wait(worker, left);
    list(left);
    return publish_and_arm(worker, left, static_cast<const wait_request&>(*worker.leaving), &left);
}

// What a callback of suspend() wants to be run next: nobody else runs it.
runnable* checked(runnable* next) noexcept {
#if defined(WEFT_CHECKS) && WEFT_CHECKS
    WEFT_ASSERT(next == nullptr || !next->is_posted.load(std::memory_order_relaxed),
                "suspend: what the callback returned is posted, too: it is resumed twice");
#endif
    return next;
}

runnable* after_suspend(fiber_worker& worker, fiber_block& left) noexcept {
    auto& request = static_cast<suspend_request&>(*worker.leaving);
    list(left);
    request.taken = true;
    return checked(request.call(request.callable, &left));
}

runnable* after_yield(fiber_worker& worker, fiber_block& left) noexcept {
    list(left);
    WEFT_TEST_POINT("fiber: has left, by a yield");
    if (worker.attachment != nullptr)
        worker.exec.requeue(&left);
    else
        worker.exec.home.post(&left);
    return nullptr;
}

// One that cannot go the straight way, or not yet.
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

// By a look instead of a write: mostly it is what it was.
[[gnu::always_inline]] inline void note_running(const thread_block& thread,
                                                fiber_block& me) noexcept {
    if (me.running != thread.running) [[unlikely]]
        me.running = thread.running;
}

// A fiber of kind own on a loop leaves for another of its kind. Says who left for it in turn;
// nullptr: one that ended, for which there is something to be done.
[[gnu::always_inline]] inline const context* switch_to_own(thread_block& thread,
                                                           fiber_worker& worker, fiber_block& me,
                                                           fiber_block& other) noexcept {
    note_running(thread, me);
    worker.current = &other;
    note_runs(other);
    thread.running = other.running;
    return swap_here(*thread.exceptions, me.where, other.where).left;
}

// The same for the worker's own stack, which goes on with `next`.
[[gnu::always_inline]] inline const context* switch_to_worker(thread_block& thread,
                                                              fiber_worker& worker, fiber_block& me,
                                                              runnable* next) noexcept {
    note_running(thread, me);
    worker.then = next;
    return swap_here(*thread.exceptions, me.where, worker.home).left;
}

}  // namespace

// --- the verbs

// The last hook's part: see hooks.cpp.
runnable* publish_left(fiber_worker& worker, fiber_block& left, runnable* resumed_by) noexcept {
    left.extras->resumed_as = resumed_by;
    left.set_wrapped(resumed_by != &left);
    departure* const what = left.extras->leaving.what;
    if (left.extras->leaving.waits) {
        const auto& request = static_cast<const wait_request&>(*what);
        if (worker.late_timer != nullptr) return publish_and_arm(worker, left, request, resumed_by);
        return publish(worker, left, request, resumed_by);
    }
    auto& request = static_cast<suspend_request&>(*what);
    request.taken = true;
    return checked(request.call(request.callable, resumed_by));
}

// By the worker's own stack: whoever is next on a loop expects nothing to be left to do.
void leave_with(after_function after, wait_timer* timer, const wait_request* waits) noexcept {
    fiber_worker& worker = *fiber_worker::here();
    fiber_block& me = *worker.current;
    if (waits != nullptr) begin_deadline(worker, timer, *waits);
    worker.after = after;
    worker.left = &me;
    leave(worker, me, nullptr);
}

departure* keep_if_swapped(fiber_worker& worker, fiber_block& me, departure* what,
                           bool waits) noexcept {
    if (me.runnable::kind != swapped_kind) return what;
    if (waits) return keep_request(worker, static_cast<wait_request&>(*what), worker.kept_wait);
    return keep_request(worker, static_cast<suspend_request&>(*what), worker.kept_suspend);
}

namespace {

// A wait without a deadline, as it comes in registers.
template <class Operations>
struct given_wait {
    void* given;
    const Operations& operations;
    const wait_reason* reason;
    void* withdrawer;

    given_wait(void* callable, void* known, std::uint64_t why, std::int64_t by) noexcept
        : given(callable),
          operations(*static_cast<const Operations*>(known)),
          reason(reinterpret_cast<const wait_reason*>(why)),
          withdrawer(reinterpret_cast<void*>(by)) {}

    [[nodiscard]] bool publish(fiber_block& me) const noexcept {
        return operations.call(given, me);
    }
    /// Where the callable lies, for one that has to find it there.
    [[nodiscard]] void* in_memory() noexcept { return operations.fits ? &given : given; }
};
using firm_wait = given_wait<firm_operations>;
using endless_wait = given_wait<endless_operations>;

// One that cannot go the straight way.
[[gnu::noinline]] unsigned char wait_firmly_otherwise(void* given, void* known,
                                                      std::uint64_t reason, std::int64_t) {
    firm_wait wait(given, known, reason, 0);
    wait_request request{{wait.in_memory(), wait.operations.relocate},
                         wait.operations.call_at,
                         wait.reason,
                         no_deadline,
                         wait_outcome::event};
    wait_function(&request, nullptr);
    return std::to_underlying(request.outcome);
}

[[gnu::noinline]] unsigned char wait_endlessly_otherwise(void* given, void* known,
                                                         std::uint64_t reason,
                                                         std::int64_t withdrawer) {
    endless_wait wait(given, known, reason, withdrawer);
    withdrawing_request request{{{wait.in_memory(), wait.operations.relocate},
                                 wait.operations.call_at,
                                 wait.reason,
                                 no_deadline,
                                 wait_outcome::event,
                                 true},
                                wait.withdrawer,
                                wait.operations.withdraw};
    wait_withdrawing_function(&request, nullptr);
    return std::to_underlying(request.outcome);
}

// A fiber of kind own on a loop, with nothing special, leaves and comes back. Nothing is to be done
// then for the one that left, but for one that ended, which jumped: nullptr is returned then.
[[gnu::always_inline]] inline const context* leave_for_next(thread_block& thread,
                                                            fiber_worker& worker, fiber_block& me,
                                                            runnable* next) noexcept {
    if (next == nullptr || next->kind != own_kind) [[unlikely]]
        return switch_to_worker(thread, worker, me, next);
    if (next != &me) [[likely]]
        return switch_to_own(thread, worker, me, static_cast<fiber_block&>(*next));
    note_runs(me);  // its event came meanwhile
    return &me.where;
}

// As leave_straight(), inlined.
[[gnu::always_inline]] inline void leave_straight_here(thread_block& thread, fiber_worker& worker,
                                                       fiber_block& me,
                                                       const wait_reason* reason) noexcept {
    const wait_reason* const meanwhile = standing(reason);
    if (me.reason.load(std::memory_order_relaxed) != meanwhile) [[unlikely]]
        me.reason.store(meanwhile, std::memory_order_relaxed);
    if (leave_for_next(thread, worker, me, worker.exec.pick()) == nullptr) [[unlikely]]
        arrive();
}

}  // namespace

namespace {

// Whether it is on a loop, and nothing but its kind is special about it.
[[gnu::always_inline]] inline bool is_merely_swapped(const fiber_worker* worker) noexcept {
    if (worker == nullptr || worker->current == nullptr) return false;
    const fiber_block& me = *worker->current;
    return me.runnable::kind == swapped_kind && worker->exec.local &&
           me.attention.load(std::memory_order_relaxed) == apart_bit && me.isolated.held == nullptr;
}

// As wait_firmly_function(), of kind swapped. While the fiber waits it has no frame: that would be
// kept, with those above it. So the reason is not taken back, either.
[[gnu::noinline]] unsigned char wait_firmly_swapped(void* given, void* known, std::uint64_t reason,
                                                    std::int64_t) {
    const firm_wait wait(given, known, reason, 0);
    fiber_worker& worker = *fiber_worker::here();
    auto& me = static_cast<swapped_fiber&>(*worker.current);
    list(me);
    me.state.begin_firmly();
    if (!wait.publish(me)) [[unlikely]] {
        me.state.end_firmly();
        return std::to_underlying(wait_outcome::ready);
    }
    me.reason.store(standing(wait.reason), std::memory_order_relaxed);
    return leave_shared_stack(worker, me, worker.exec.pick());
}

}  // namespace

// Of one that cannot go the straight way (straight_wait.hpp). Without a frame of its own.
unsigned char wait_firmly_function(void* given, void* known, std::uint64_t reason,
                                   std::int64_t none) {
    return is_merely_swapped(fiber_worker::here())
               ? wait_firmly_swapped(given, known, reason, none)
               : wait_firmly_otherwise(given, known, reason, none);
}

namespace {

// A canceller in another thread has claimed it while its event was there: that one resumes it.
[[gnu::noinline]] void leave_for_canceller(fiber_worker& worker, fiber_block& me) noexcept {
    leave(worker, me, worker.exec.pick());
}

}  // namespace

namespace {

// A fiber of a loop waits until its event comes, or until it is cancelled: leave() comes back then.
template <class Leave>
[[gnu::always_inline]] inline wait_outcome wait_on_loop(fiber_worker& worker, fiber_block& me,
                                                        const endless_wait& wait,
                                                        Leave leave) noexcept {
    me.closed.store(worker.exec.closed, std::memory_order_relaxed);
    if (!me.state.begin(me.closed, [&me] { return me.is_cancelled(); })) [[unlikely]]
        return wait_outcome::cancelled;
    if (!wait.publish(me)) [[unlikely]] {
        if (!me.state.end_ready(me.closed)) leave_for_canceller(worker, me);
        return wait_outcome::ready;
    }
    leave();
    const wait_outcome outcome = me.state.outcome();
    if (outcome != wait_outcome::event) [[unlikely]]
        wait.operations.withdraw(wait.withdrawer, me);
    return outcome;
}

// Of kind swapped. In one frame: it is kept, with those above it, while the fiber waits.
[[gnu::noinline]] unsigned char wait_endlessly_swapped(void* given, void* known,
                                                       std::uint64_t reason,
                                                       std::int64_t withdrawer) {
    const endless_wait wait(given, known, reason, withdrawer);
    fiber_worker& worker = *fiber_worker::here();
    auto& me = static_cast<swapped_fiber&>(*worker.current);
    list(me);
    return std::to_underlying(wait_on_loop(worker, me, wait, [&] {
        me.reason.store(standing(wait.reason), std::memory_order_relaxed);
        leave_shared_stack(worker, me, worker.exec.pick());
    }));
}

// Without a frame of its own.
[[gnu::noinline]] unsigned char wait_endlessly_apart(void* given, void* known, std::uint64_t reason,
                                                     std::int64_t withdrawer) {
    return is_merely_swapped(fiber_worker::here())
               ? wait_endlessly_swapped(given, known, reason, withdrawer)
               : wait_endlessly_otherwise(given, known, reason, withdrawer);
}

}  // namespace

// The same, and it can be cancelled.
[[gnu::aligned(64)]] unsigned char wait_endlessly_function(void* given, void* known,
                                                           std::uint64_t reason,
                                                           std::int64_t withdrawer) {
    const endless_wait wait(given, known, reason, withdrawer);
    thread_block& thread = this_thread_block();
    auto* const worker = static_cast<fiber_worker*>(thread.fibers);
    if (worker == nullptr || worker->current == nullptr || worker->current->is_special())
        [[unlikely]]
        return wait_endlessly_apart(given, known, reason, withdrawer);
    fiber_block& me = *worker->current;
    return std::to_underlying(wait_on_loop(
        *worker, me, wait, [&] { leave_straight_here(thread, *worker, me, wait.reason); }));
}

namespace {

// A wait that goes straight to the worker, on a loop and elsewhere.
[[gnu::always_inline]] inline void wait_directly(fiber_worker& worker, fiber_block& me,
                                                 wait_request& request,
                                                 wait_timer* timer) noexcept {
    if (worker.exec.local) [[likely]] {
        // Only this thread resumes it, and it does so after it has left: so it may be published
        // from its own stack, and if the event is there, stay. pick() may well give this very
        // fiber.
        list_on_loop(worker, me);
        if (!begin_wait(worker, me, request)) [[unlikely]] {
            request.outcome = wait_outcome::cancelled;
        } else if (request.call(request.callable, me)) [[likely]] {
            begin_deadline(worker, timer, request);
            leave(worker, me, worker.exec.pick());
            end_wait(me, timer, request);
        } else {
            if (!me.state.end_ready(me.closed))  // cancelled by another thread: its post will come
                leave(worker, me, worker.exec.pick());
            request.outcome = wait_outcome::ready;
        }
        return;
    }
    // First asked, then armed: pick() may fire timers, and this one has nobody waiting yet.
    runnable* const next = worker.exec.pick();
    begin_deadline(worker, timer, request);
    worker.after = timer != nullptr ? &after_timed_wait : &after_wait;
    worker.left = &me;
    worker.leaving = &request;
    if (me.runnable::kind == swapped_kind) [[unlikely]]
        worker.leaving = keep_request(worker, request, worker.kept_wait);
    leave(worker, me, next);
    end_wait(me, timer, request);
}

[[gnu::noinline]] void wait_with_deadline(fiber_worker& worker, fiber_block& me,
                                          wait_request& request) noexcept {
    const timer_of_wait timer(me);
    wait_directly(worker, me, request, timer.get());
}

}  // namespace

void wait_function(void* argument, void*) {
    auto& request = *static_cast<wait_request*>(argument);
    fiber_worker* const worker = fiber_worker::here();
    if (worker == nullptr || worker->current == nullptr) [[unlikely]]
        return wait_in_thread(request);
    fiber_block& me = *worker->current;
    if (me.isolated.held != nullptr) [[unlikely]]
        return wait_without(me, &wait_function, argument);
    bool hooked = false;
    if ((me.attention.load(std::memory_order_relaxed) & ~apart_bit) != 0) [[unlikely]] {
        if (!may_wait(me, request)) return;
        hooked = (me.attention.load(std::memory_order_relaxed) & hook_bit) != 0;
    }
    me.reason.store(standing(request.reason), std::memory_order_relaxed);
    if (hooked) [[unlikely]]
        leave_through_hooks(me, request, true);
    else if (request.deadline != no_deadline) [[unlikely]]
        wait_with_deadline(*worker, me, request);
    else
        wait_directly(*worker, me, request, nullptr);
    me.reason.store(nullptr, std::memory_order_relaxed);
}

void suspend_function(void* argument, void*) {
    auto& request = *static_cast<suspend_request*>(argument);
    fiber_worker* const worker = fiber_worker::here();
    WEFT_ASSERT(worker != nullptr && worker->current != nullptr,
                "suspend: called outside any fiber");
    static constexpr wait_reason reason{"suspended"};
    fiber_block& me = *worker->current;
    if (me.isolated.held != nullptr) [[unlikely]]
        return wait_without(me, &suspend_function, argument);
    if ((me.attention.load(std::memory_order_relaxed) & (no_suspend_bit | unarmed_bit)) != 0)
        [[unlikely]] {
        refuse_in_no_suspend(me);
        arm_deadlines(me);
    }
    me.reason.store(&reason, std::memory_order_relaxed);
    if ((me.attention.load(std::memory_order_relaxed) & hook_bit) != 0) [[unlikely]] {
        leave_through_hooks(me, request, false);
    } else {
        worker->after = &after_suspend;
        worker->left = &me;
        worker->leaving = &request;
        if (me.runnable::kind == swapped_kind) [[unlikely]]
            worker->leaving = keep_request(*worker, request, worker->kept_suspend);
        leave(*worker, me, nullptr);
    }
    me.reason.store(nullptr, std::memory_order_relaxed);
}

// --- the straight way (straight_wait.hpp)
//
// Each ends in a call of something that returns to its own caller in its stead, so none of them has
// a frame.

namespace {

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
            static_cast<swapped_fiber&>(me).place.begin_visits(me.where, &swapped_entry, &me);
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
    thread.running = block.running;
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
        this_thread_block().running = other.running;
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
