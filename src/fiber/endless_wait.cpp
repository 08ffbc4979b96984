// endless_wait.cpp - waits without a deadline, whose request comes in registers.
//
// A firm one waits for its event alone; of kind own on a loop it goes the straight way, inlined
// (straight_wait.hpp), and never comes here. An endless one can be cancelled, and is withdrawn
// then. Each has a way for fibers of a loop of kind own, one for swapped ones, in as few bytes of
// their stack as can be, and one for all others: a request in memory, as wait_function() takes it.
//
// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include <weft/fiber/suspend.hpp>

#include "fiber/leaving.hpp"

namespace weft::inline v0::detail {

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

// As straight_fiber::leave(), inlined.
[[gnu::always_inline]] inline void leave_straight_here(thread_block& thread, fiber_worker& worker,
                                                       fiber_block& me,
                                                       const wait_reason* reason) noexcept {
    const wait_reason* const meanwhile = standing(reason);
    if (me.reason.load(std::memory_order_relaxed) != meanwhile) [[unlikely]]
        me.reason.store(meanwhile, std::memory_order_relaxed);
    auto& own = static_cast<own_fiber&>(me);
    if (thread.running != nullptr) [[unlikely]]
        return leave_for(worker, own, worker.exec.pick());
    if (leave_for_next(thread, worker, own, worker.exec.pick()) == nullptr) [[unlikely]]
        arrive();
}

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

// One that can be cancelled.
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

}  // namespace weft::inline v0::detail
