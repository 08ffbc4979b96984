// hooks.cpp - the chain of suspend hooks of a fiber.
//
// Leaving goes down the chain on the fiber (suspend), and once more off its stack (suspended):
//
//   fiber:   top->suspend() -> ... -> last->suspend() -> leaves
//   worker:  top->suspended(fiber) -> ... -> last->suspended(r) -> publishes r
//   fiber:   comes back through the same suspend() calls, the last first
//
// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include <weft/base/assert.hpp>
#include <weft/fiber/suspend_hook.hpp>
#include <weft/fiber/this_fiber.hpp>

#include "fiber/fiber_extras.hpp"
#include "fiber/fiber_life.hpp"

namespace weft::inline v0 {

struct hook_access {
    static suspend_hook*& below(suspend_hook& hook) noexcept { return hook.below_; }
    static suspend_hook*& went_to(suspend_hook& hook) noexcept { return hook.went_to_; }
    static detail::fiber_block*& of(suspend_hook& hook) noexcept { return hook.of_; }
};

namespace detail {

namespace {

void set_bit(fiber_block& me, std::uint8_t bit, bool on) noexcept {
    if (on)
        me.attention.fetch_or(bit, std::memory_order_relaxed);
    else
        me.attention.fetch_and(static_cast<std::uint8_t>(~bit), std::memory_order_relaxed);
}

void use_hooks_from(fiber_block& me, suspend_hook* hook) noexcept {
    me.extras->hook = hook;
    set_bit(me, hook_bit, hook != nullptr);
}

// Takes the uppermost out of its chain; returns the next.
suspend_hook* remove(suspend_hook& hook) noexcept {
    hook_access::of(hook) = nullptr;
    suspend_hook* const next = std::exchange(hook_access::below(hook), nullptr);
    hook.finish();
    return next;
}

// Whom it goes on to. If it has removed itself, all that are set were below it.
suspend_hook* following(const fiber_block& me, suspend_hook& hook) noexcept {
    return hook_access::of(hook) == &me ? hook_access::below(hook) : me.extras->top_hook;
}

// Before what it is a part of is gone.
void unset(suspend_hook& hook) noexcept {
    fiber_block& me = *hook_access::of(hook);
    const fiber_worker* const worker = fiber_worker::here();
    if (worker == nullptr || worker->current != &me)
        fail("suspend_hook: destroyed while it is set, and not by its fiber",
             static_cast<const activity&>(me).name);
    suspend_hook* const next = hook_access::below(hook);
    suspend_hook** link = &me.extras->top_hook;
    for (; *link != &hook; link = &hook_access::below(**link))
        WEFT_ASSERT(*link != nullptr, "suspend_hook: destroyed by the finish() of one above it");
    *link = next;
    if (me.extras->hook == &hook) use_hooks_from(me, next);
}

// While it runs, the hooks below it are those that count. Unless somebody set others meanwhile, it
// counts again afterwards.
void call_suspend(fiber_block& me, suspend_hook& hook) {
    struct way_back {
        fiber_block& me;
        const unsigned changes = me.extras->hook_changes;
        suspend_hook* const before = me.extras->hook;
        ~way_back() {
            if (me.extras->hook_changes == changes) use_hooks_from(me, before);
        }
    };
    const way_back back{me};
    suspend_hook* const below = hook_access::below(hook);
    hook_access::went_to(hook) = below;  // also if it calls that one's suspend() itself
    use_hooks_from(me, below);
    hook.suspend();
}

// Off the fiber's stack.
runnable* after_hooks(fiber_worker& worker, fiber_block& left) noexcept {
    if (!left.is_listed) fiber_list::of(*left.home).add(left);
    suspend_hook* const top = left.extras->leaving.top;
    return top != nullptr ? top->suspended(&left) : publish_left(worker, left, &left);
}

}  // namespace

// A hook may wait before it lets the fiber leave: that is another departure, inside this one.
void leave_through_hooks(fiber_block& me, departure& what, bool waits) {
    fiber_extras& extras = *me.extras;
    struct way_back {
        fiber_block& me;
        const fiber_extras::leaving_state around;
        ~way_back() {
            me.extras->leaving = around;
            me.reason.store(nullptr, std::memory_order_relaxed);
        }
    };
    const way_back back{
        me, std::exchange(extras.leaving, {.top = extras.hook, .what = &what, .waits = waits})};
    call_suspend(me, *extras.hook);
}

namespace {

// Below the last hook. What the wait came to is noted at once: hooks may wait on the way back.
void suspend_below(fiber_block& me) {
    fiber_worker& worker = *fiber_worker::here();
    fiber_extras::leaving_state& leaving = me.extras->leaving;
    WEFT_ASSERT(leaving.what != nullptr,
                "suspend_hook::suspend: called by somebody else, or twice");
    departure* const original = leaving.what;
    const bool waits = leaving.waits;
    leaving.what = keep_if_swapped(worker, me, original, waits);
    // A hook above may have waited for something else.
    me.listed = false;
    auto* const request = waits ? static_cast<wait_request*>(original) : nullptr;
    me.reason.store(waits ? standing(request->reason) : &is_suspended, std::memory_order_relaxed);
    std::optional<timer_of_wait> made;
    if (waits && request->deadline != no_deadline) made.emplace(me);
    wait_timer* const timer = made ? made->get() : nullptr;
    leave_with(&after_hooks, timer, request);
    leaving.what = nullptr;
    me.reason.store(nullptr, std::memory_order_relaxed);
    me.set_wrapped(false);
    if (!waits) return;
    end_wait(me, timer, *request);
    // Before the hooks above go on: they may wait for something else, in another list.
    if (request->can_be_withdrawn) conclude(static_cast<withdrawing_request&>(*request), me);
}

}  // namespace

// A yield with hooks is a suspend whose callback queues the fiber.
void yield_through_hooks(fiber_block& me) {
    refuse_in_no_suspend(me);
    executor* const home = me.home;
    suspend([home](runnable* r) noexcept -> runnable* {
        home->post(r);
        return nullptr;
    });
}

void finish_hooks(fiber_block& me) noexcept {
    suspend_hook* hook = std::exchange(me.extras->top_hook, nullptr);
    use_hooks_from(me, nullptr);
    while (hook != nullptr) hook = remove(*hook);
}

}  // namespace detail

suspend_hook::~suspend_hook() {
    if (of_ != nullptr) detail::unset(*this);
}

void suspend_hook::suspend() {
    detail::fiber_block& me = detail::running_fiber("suspend_hook::suspend");
    went_to_ = detail::following(me, *this);
    if (went_to_ != nullptr)
        detail::call_suspend(me, *went_to_);
    else
        detail::suspend_below(me);
}

runnable* suspend_hook::suspended(runnable* r) noexcept {
    if (went_to_ != nullptr) return went_to_->suspended(r);
    detail::fiber_worker& worker = *detail::fiber_worker::here();
    return detail::publish_left(worker, *worker.left, r);
}

namespace this_fiber {

suspend_hook* get_suspend_hook() noexcept {
    const detail::fiber_block& me = detail::running_fiber("get_suspend_hook");
    return me.extras != nullptr ? me.extras->top_hook : nullptr;
}

suspend_hook* set_suspend_hook(suspend_hook* hook) {
    detail::fiber_block& me = detail::running_fiber("set_suspend_hook");
    detail::fiber_extras& extras = detail::extras_of(me);
    suspend_hook* const before = extras.top_hook;
    bool known = hook == nullptr;
    for (suspend_hook* one = before; one != nullptr && !known; one = hook_access::below(*one))
        known = one == hook;
    ++extras.hook_changes;
    if (known) {
        suspend_hook* removed = before;
        extras.top_hook = hook;
        detail::use_hooks_from(me, hook);
        while (removed != hook) removed = detail::remove(*removed);
        return before;
    }
    WEFT_ASSERT(hook_access::of(*hook) == nullptr, "set_suspend_hook: it is in another chain");
    hook_access::of(*hook) = &me;
    hook_access::below(*hook) = before;
    extras.top_hook = hook;
    detail::use_hooks_from(me, hook);
    hook->start();
    return before;
}

}  // namespace this_fiber
}  // namespace weft::inline v0
