// suspend.cpp - the two verbs, suspend() and wait(): how a request is carried out.
//
// Waits without a deadline that can be withdrawn, and those for an event alone, come in registers
// and have a file of their own (endless_wait.cpp).
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/base/assert.hpp>
#include <weft/base/test_point.hpp>
#include <weft/fiber/suspend.hpp>

#include "fiber/fiber_extras.hpp"
#include "fiber/leaving.hpp"

namespace weft::inline v0::detail {

namespace {

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

}  // namespace

// --- for hooks

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

// --- the verbs

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
    fiber_block& me = *worker->current;
    if (me.isolated.held != nullptr) [[unlikely]]
        return wait_without(me, &suspend_function, argument);
    if ((me.attention.load(std::memory_order_relaxed) & (no_suspend_bit | unarmed_bit)) != 0)
        [[unlikely]] {
        refuse_in_no_suspend(me);
        arm_deadlines(me);
    }
    me.reason.store(&is_suspended, std::memory_order_relaxed);
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

}  // namespace weft::inline v0::detail
