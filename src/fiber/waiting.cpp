// waiting.cpp - the slow sides of a wait: deadlines, plain threads, the wake itself.
//
// SPDX-License-Identifier: Apache-2.0
#include <sched.h>

#include <weft/base/assert.hpp>
#include <weft/fiber/detail/swapped.hpp>

#include "base/futex.hpp"
#include "base/pause.hpp"
#include "exec/timer_thread.hpp"
#include "fiber/fiber_extras.hpp"
#include "fiber/fiber_life.hpp"

namespace weft::inline v0 {

namespace {

void wake_otherwise(detail::fiber_block& woken) noexcept {
    detail::worker* const here = detail::worker_of_this_thread();
    if (here != nullptr && &here->home == woken.home && (here->local || here->shared != nullptr))
        here->wake(woken.resumed_as());
    else
        woken.home->post(woken.resumed_as());
}

}  // namespace

[[gnu::aligned(64)]] void waiter::wake_apart() noexcept {
    if (what == who::thread)
        static_cast<detail::thread_waiter&>(*this).wake_thread();
    else
        wake_otherwise(static_cast<detail::fiber_block&>(*this));
}

namespace detail {

template class basic_wait_state<std::atomic, publisher_spin, process_barrier>;

void publisher_spin::once() noexcept {
    if (rounds_ < 64) {
        ++rounds_;
        pause();
    } else {
        ::sched_yield();  // whoever publishes it may have lost its CPU
    }
}

void refuse_in_no_suspend(const fiber_block& me) noexcept {
    if ((me.attention.load(std::memory_order_relaxed) & no_suspend_bit) != 0)
        fail("no_suspend: something inside suspends", me.extras->no_suspend);
}

bool may_wait(fiber_block& me, wait_request& request) noexcept {
    refuse_in_no_suspend(me);
    catch_up(me);
    if (!request.reason->cancellable) return true;
    if (!me.is_cancelled()) return true;
    request.outcome = wait_outcome::cancelled;
    return false;
}

void arm(fiber_worker& worker, timer_node& timer, time_point deadline) noexcept {
    executor& home = worker.exec.home;
    if (worker.attachment != nullptr) return worker.exec.timers->arm(timer, deadline);
    // A user's executor: by the timers of the one whose thread runs it.
    if (worker.exec.timers != nullptr) return worker.exec.timers->arm(timer, deadline, &home);
    WEFT_ASSERT(&home.clock() == &steady_clock_source(),
                "wait: a deadline on an executor that has a clock of its own and no timers");
    arm_in_timer_thread(timer, deadline, home);
}

wait_timer* timer_of_wait::make_apart(fiber_block& me) noexcept {
    try {
        return ::new (take_memory(sizeof(wait_timer))) wait_timer(me);
    } catch (const std::bad_alloc&) { fail("wait: no memory for the deadline of a swapped fiber"); }
}

void timer_of_wait::free_apart(wait_timer* timer) noexcept {
    timer->~wait_timer();
    give_memory(timer, sizeof *timer);
}

// With the timer queue's lock held: whoever disarms waits for that, so timer and block are still
// there. One that timed out disarms nothing: after the claim another thread may run it, and the
// timer is gone.
runnable* wait_timer::fire(timer_node& node) noexcept {
    fiber_block& block = static_cast<wait_timer&>(node).whose;
    return block.waiter::claim(wait_outcome::timed_out) ? block.resumed_as() : nullptr;
}

// --- plain threads

void thread_waiter::sleep_until_claimed(time_point deadline, clock_source& clock) noexcept {
    while (woken_.load(std::memory_order_acquire) == 0) {
        if (deadline == no_deadline) {
            futex_wait(woken_, 0);
            continue;
        }
        const time_point now = clock.now();
        if (now >= deadline && waiter::claim(wait_outcome::timed_out)) return;
        // The event has claimed it if not: its wake is on the way.
        futex_wait_for(woken_, 0,
                       now < deadline ? deadline - now : std::chrono::nanoseconds::max());
    }
}

// The waiter may be gone after the store: its address is only a key.
void thread_waiter::wake_thread() noexcept {
    std::atomic<std::uint32_t>* const key = &woken_;
    key->store(1, std::memory_order_release);
    futex_wake_one(key);
}

namespace {

// Those who would end its wait may be the ones that it keeps from running.
void refuse_on_worker(const wait_request& request) noexcept {
    if (worker_of_this_thread() != nullptr)
        fail("wait: in a posted callable or the like, outside any fiber, on an executor's thread",
             request.reason->text);
}

void wait_as(thread_waiter& me, wait_request& request) noexcept {
    me.state.begin_in_thread();
    if (!request.call(request.callable, me)) {
        request.outcome = wait_outcome::ready;
        return;
    }
    refuse_on_worker(request);
    me.sleep_until_claimed(request.deadline, steady_clock_source());
    request.outcome = me.state.outcome();
}

}  // namespace

void wait_in_thread(wait_request& request) noexcept {
    thread_waiter me;
    wait_as(me, request);
}

// --- waits that may have to be withdrawn

void conclude(withdrawing_request& request, waiter& me) noexcept {
    if (std::exchange(request.concluded, true)) return;  // by the lowest hook
    const bool otherwise =
        request.outcome == wait_outcome::timed_out || request.outcome == wait_outcome::cancelled;
    if (otherwise && me.listed) request.withdraw(request.withdrawer, me);
}

void wait_withdrawing_function(void* argument, void*) {
    auto& request = *static_cast<withdrawing_request*>(argument);
    fiber_worker* const worker = fiber_worker::here();
    if (worker == nullptr || worker->current == nullptr) {
        thread_waiter me;
        wait_as(me, request);
        return conclude(request, me);
    }
    fiber_block& me = *worker->current;
    // Around all of it: to take something again is a wait, too, in another list.
    if (me.isolated.held != nullptr) [[unlikely]]
        return wait_without(me, &wait_withdrawing_function, argument);
    me.listed = false;
    wait_function(argument, nullptr);
    conclude(request, me);
}

// --- what is let go meanwhile

void wait_without(fiber_block& me, isolation::wait_call wait, void* request) {
    refuse_in_no_suspend(me);
    me.isolated.held->around(me.isolated, wait, request);
}

isolation_slot* isolation_slot_here() noexcept {
    fiber_worker* const worker = fiber_worker::here();
    if (worker == nullptr || worker->current == nullptr) [[unlikely]]
        return nullptr;
    return &worker->current->isolated;
}

// --- what swapped fibers may not share

bool on_shared_stack(const void* address) noexcept {
    const fiber_worker* const worker = fiber_worker::here();
    return worker != nullptr && worker->attachment != nullptr &&
           worker->attachment->shared.holds(address);
}

bool shared_stack_here() noexcept {
    const fiber_worker* const worker = fiber_worker::here();
    return worker != nullptr && worker->has_shared_stack;
}

bool running_is_swapped() noexcept {
    const fiber_worker* const worker = fiber_worker::here();
    return worker != nullptr && worker->current != nullptr &&
           worker->current->stack() == stack_kind::swapped;
}

// --- a loop inside a fiber

// By real time: where nobody looks at that, the timer thread does.
void fiber_driver::wait(std::chrono::nanoseconds limit) noexcept {
    if (limit == std::chrono::nanoseconds::max()) return wait_until(no_deadline);
    executor& home = this_fiber::executor();
    fiber_worker& here = *fiber_worker::here();
    if (here.looks_at_real_time()) return wait_until(deadline_after(home.clock().now(), limit));
    const awaits_others rings(&here.exec);
    arm_in_timer_thread(alarm_, deadline_after(steady_clock_source().now(), limit), home);
    wait_until(no_deadline);
    timer_queue::disarm(alarm_);
}

// With the queue's lock held: it is posted without.
runnable* fiber_driver::alarm::fire(timer_node& node) noexcept {
    waiter* const woken = static_cast<alarm&>(node).whose.claim_sleeper();
    return woken != nullptr ? static_cast<fiber_block&>(*woken).resumed_as() : nullptr;
}

void fiber_driver::wait_until(time_point deadline) noexcept {
    static constexpr wait_reason reason{"runs a loop that is idle", false};
    weft::wait(
        reason, deadline,
        [this](waiter& me) noexcept {
            const std::lock_guard lock(mutex_);
            if (woken_) return false;
            sleeper_ = &me;
            return true;
        },
        [this](waiter&) noexcept {
            const std::lock_guard lock(mutex_);
            sleeper_ = nullptr;
        });
    const std::lock_guard lock(mutex_);
    sleeper_ = nullptr;
    woken_ = false;
}

void fiber_driver::wake() noexcept {
    if (waiter* const woken = claim_sleeper()) woken->wake();
}

waiter* fiber_driver::claim_sleeper() noexcept {
    const std::lock_guard lock(mutex_);
    woken_ = true;
    waiter* const sleeper = std::exchange(sleeper_, nullptr);
    return sleeper != nullptr && sleeper->claim() ? sleeper : nullptr;
}

fiber_attachment::fiber_attachment(worker& w) : side(w, stacks, this) {
    name_fibers_at_terminate();
    fiber_list::of(w.home).hungry.add(side);
}

fiber_attachment::~fiber_attachment() { fiber_list::of(side.exec.home).hungry.remove(side); }

// What it gave back, or took ahead, lies in its own cache, where nobody else finds it. With nothing
// there and nothing new it would let the same one try in vain, over and over.
void fiber_attachment::idle() noexcept {
    if (!std::exchange(side.gave_back, false) && stacks.cached() == 0) return;
    hunger& hungry = fiber_list::of(side.exec.home).hungry;
    if (!hungry.any_before_sleep()) return;
    stacks.trim();
    hungry.feed();
}

driver* fiber_attachment::driver_of_running_fiber() {
    if (side.current == nullptr) return nullptr;
    for (const auto& one : drivers_)
        if (!one->lent_.load(std::memory_order_acquire)) {
            one->lent_.store(true, std::memory_order_relaxed);
            return one.get();
        }
    drivers_.push_back(std::make_unique<fiber_driver>());
    drivers_.back()->lent_.store(true, std::memory_order_relaxed);
    return drivers_.back().get();
}

driver_lender& lender_of_guests() noexcept {
    class lends_new_ones final : public driver_lender {
        driver* driver_of_running_fiber() override {
            const fiber_worker& here = *fiber_worker::here();
            // Whoever wakes the fiber posts to its executor, and that perhaps to the loop around it
            // and other guests.
            const worker* around = here.exec.outer;
            while (around != nullptr && around->lender == this) around = around->outer;
            if (here.current == nullptr || (around != nullptr && around->may_close)) return nullptr;
            return new fiber_driver(true);
        }
    };
    static lends_new_ones all;
    return all;
}

shared_stack& fiber_attachment::next_shared() {
    side.has_shared_stack = true;
    return shared.next(side.exec.home.stacks());
}

thread_cache& fiber_attachment::threads() {
    if (!threads_) threads_.emplace();
    return *threads_;
}

}  // namespace detail
}  // namespace weft::inline v0
