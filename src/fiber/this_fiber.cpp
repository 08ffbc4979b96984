// this_fiber.cpp - sleep, park, moving to another executor, and who a fiber is.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/fiber/this_fiber.hpp>

#include <algorithm>

#include <weft/base/assert.hpp>
#include <weft/fiber/cancel.hpp>
#include <weft/fiber/suspend.hpp>

#include "base/prefetch.hpp"
#include "fiber/fiber_life.hpp"
#include "fiber/fiber_list.hpp"
#include "fiber/fiber_worker.hpp"

namespace weft::inline v0 {

using detail::fiber_block;
using detail::fiber_worker;

namespace {

fiber_block* running() noexcept {
    fiber_worker* const worker = fiber_worker::here();
    return worker != nullptr ? worker->current : nullptr;
}

fiber_block& running(const char* message) noexcept {
    fiber_block* const block = running();
    WEFT_ASSERT(block != nullptr, message);
    return *block;
}

std::unexpected<std::error_code> error(std::errc code) {
    return std::unexpected(std::make_error_code(code));
}

std::unexpected<std::error_code> cancelled_error() {
    return std::unexpected(error_code_of(this_fiber::stop_reason()));
}

}  // namespace

// --- sleeping

namespace detail {

time_point now_for_sleep() noexcept {
    fiber_block* const block = running();
    return (block != nullptr ? block->home->clock() : steady_clock_source()).now();
}

time_point now_of_running_fiber(const char* call) noexcept {
    fiber_block* const block = running();
    return (block != nullptr ? *block : running_fiber(call)).home->clock().now();
}

std::expected<void, std::error_code> sleep(time_point deadline) {
    static constexpr wait_reason reason{"sleeps"};
    fiber_block* const me = running();
    if (me != nullptr && this_fiber::stop_requested()) return cancelled_error();
    if (deadline <= now_for_sleep()) return {};
    const wait_outcome outcome = wait(reason, deadline, [](waiter&) noexcept { return true; });
    if (outcome == wait_outcome::cancelled) return cancelled_error();
    return {};
}

}  // namespace detail

// --- park and unpark

// The protocol is permit.hpp's.

namespace {

// Two fibers on two workers that unpark each other in turn: while neither worker has anything else
// to do, each looks at its permit for a moment before it leaves, and nobody has to be woken. For
// those alone that may run nowhere else; a wake of any other stays on the waker's side.
bool await_permit(fiber_block& me) noexcept {
    detail::worker& here = fiber_worker::here()->exec;
    if (me.bound_to == 0 || here.shared == nullptr || me.isolated.held != nullptr ||
        me.attention.load(std::memory_order_relaxed) != detail::apart_bit)
        return false;
    return here.await_closely(
               [](const void* block) noexcept {
                   return static_cast<const fiber_block*>(block)->permit().is_given();
               },
               &me) &&
           me.permit().take();
}

}  // namespace

std::expected<void, std::error_code> park() { return park_until(no_deadline); }

std::expected<void, std::error_code> park_until(time_point deadline) {
    static constexpr wait_reason reason{"is parked"};
    fiber_block& me = running(deadline == no_deadline ? "park: called outside any fiber"
                                                      : "park_until: called outside any fiber");
    if (me.permit().take() || await_permit(me)) return {};
    const wait_outcome outcome = wait(
        reason, deadline, [permit = &me.permit()](waiter&) noexcept { return permit->await(); },
        [&me](waiter&) noexcept { me.permit().withdraw(); });
    if (outcome == wait_outcome::event) {
        static_cast<void>(me.permit().take());
        return {};
    }
    if (outcome == wait_outcome::timed_out) return error(std::errc::timed_out);
    return cancelled_error();
}

// If it is parked all that is written is in the first line of its block.
void unpark(const fiber_handle& fiber) noexcept {
    fiber_block* const block = detail::handle_access::block(fiber);
    if (block == nullptr) return;
    detail::prefetch_for_write(block);
    if (block->permit().give([block] { return block->waiter::claim(); })) block->wake();
}

// --- handles

fiber_handle::fiber_handle(detail::fiber_block& block) noexcept : block_(&block) {
    detail::add_reference(block);
}

fiber_handle::fiber_handle(const fiber_handle& other) noexcept : block_(other.block_) {
    if (block_ != nullptr) detail::add_reference(*block_);
}

fiber_handle::~fiber_handle() {
    if (block_ != nullptr) detail::release(block_);
}

// --- moving

executor& detail::home_of_running_fiber(const char* call) noexcept {
    return *running_fiber(call).home;
}

namespace {

// A hook may throw before the fiber has left, or when it is there.
struct way_to {
    executor& there;
    bool has_left = false;

    explicit way_to(executor& home) : there(home) { there.add_work(1); }
    way_to(const way_to&) = delete;
    way_to& operator=(const way_to&) = delete;
    ~way_to() {
        if (has_left)
            fiber_worker::here()->count_stack(1);
        else
            there.add_work(-1);
    }
};

}  // namespace

void switch_to(executor& there) {
    fiber_block& me = running("switch_to: called outside any fiber");
    executor& here = *me.home;
    if (&here == &there) return;
    WEFT_ASSERT(!me.pinned(), "switch_to: the fiber is pinned");
    WEFT_ASSERT(
        me.stack() == stack_kind::own || me.stack() == stack_kind::ucontext,
        "switch_to: a swapped fiber, or one on a thread of its own, stays where it started");
    detail::fiber_list::of(there);
    way_to way(there);
    suspend([&me, &here, &way](runnable* r) noexcept -> runnable* {
        executor& there = way.there;
        way.has_left = true;
        detail::disarm_deadlines(me);  // they are armed again by the first wait over there
        detail::fiber_list::remove(me);
        fiber_worker& worker = *fiber_worker::here();
        worker.count_stack(-1);
        detail::feed_hungry(worker, here);
        {
            const detail::block_lock lock(me);  // cancellers look at it
            me.home = &there;
        }
        me.runnable::kind |= detail::guest_bit;  // until a worker of `there` says otherwise
        me.attention.fetch_or(detail::apart_bit, std::memory_order_relaxed);
        detail::fiber_list::of(there).add(me);
        there.post(r);
        here.add_work(-1);
        return nullptr;
    });
}

// --- a fair share

// The clock is read when, by what the last calls took, a quarter more than so far has been held: so
// whatever the slice is, it is over for a quarter of it at most when that is seen, if the calls are
// as far apart as they were.
namespace {

std::uint32_t calls_until_next_look(const detail::slice_watch& slice, time_point now) noexcept {
    const std::uint32_t twice = std::min(2 * slice.span, detail::slice_watch::most);
    const std::chrono::nanoseconds took = now - slice.looked;
    if (took <= std::chrono::nanoseconds::zero()) return twice;
    const std::chrono::nanoseconds quarter = (now - slice.began) / 4;
    const std::int64_t fit = std::min<std::int64_t>(quarter.count(), 1'000'000'000) * slice.span /
                             took.count();  // calls
    return static_cast<std::uint32_t>(std::clamp<std::int64_t>(fit, 1, twice));
}

bool is_slice_of_running(const fiber_worker& worker) noexcept {
    return worker.slice.of == worker.current && worker.slice.looks == worker.exec.looks &&
           worker.slice.ticks == worker.exec.ticks.load(std::memory_order_relaxed);
}

void begin_slice(fiber_worker& worker, time_point began, time_point now) noexcept {
    detail::slice_watch& slice = worker.slice;
    slice.of = worker.current;
    slice.looks = worker.exec.looks;
    slice.ticks = worker.exec.ticks.load(std::memory_order_relaxed);
    slice.began = began;
    slice.looked = now;
    slice.countdown = slice.span = 1;
}

// Who comes next looks around: those who wait for a time or a post have waited for a slice.
void let_others_run(fiber_worker& worker) {
    worker.exec.end_ticks();
    yield();
    fiber_worker& here = *fiber_worker::here();
    const time_point now = here.exec.home.clock().now();
    begin_slice(here, now, now);
}

[[gnu::noinline]] void look_at_slice(fiber_worker& worker) {
    detail::slice_watch& slice = worker.slice;
    executor& home = worker.exec.home;
    const time_point now = home.clock().now();
    const bool is_first = !is_slice_of_running(worker);
    if (is_first)
        begin_slice(worker, worker.exec.runs_since_looked() ? worker.exec.looked : now, now);
    if (home.slice_is_over(now - slice.began)) return let_others_run(worker);
    if (is_first) return;
    slice.countdown = slice.span = calls_until_next_look(slice, now);
    slice.looked = now;
}

fiber_worker& worker_for_slice() noexcept {
    fiber_worker* const worker = fiber_worker::here();
    WEFT_ASSERT(worker != nullptr && worker->current != nullptr,
                "yield_if_due: called outside any fiber");
    return *worker;
}

}  // namespace

void yield_if_due() {
    fiber_worker& worker = worker_for_slice();
    if (worker.slice.of == worker.current && --worker.slice.countdown != 0) [[likely]]
        return;
    look_at_slice(worker);
}

void detail::yield_if_due_rarely() {
    fiber_worker& worker = worker_for_slice();
    if (--worker.slice.rare_countdown != 0) [[likely]]
        return;
    worker.slice.rare_countdown = slice_watch::most;
    look_at_slice(worker);
}

// --- who

namespace this_fiber {

fiber_id get_id() noexcept { return fiber_id(running()); }

std::string_view name() noexcept {
    const fiber_block* const block = running();
    return block != nullptr ? static_cast<const detail::activity*>(block)->name : "";
}

weft::executor& executor() noexcept {
    return *running("this_fiber::executor: called outside any fiber").home;
}

fiber_handle handle() noexcept {
    return fiber_handle(running("this_fiber::handle: called outside any fiber"));
}

}  // namespace this_fiber
}  // namespace weft::inline v0
