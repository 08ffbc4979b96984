// inline_run.cpp - a child runs as a plain call on the stack of the fiber that waits for it.
//
//   parent                                     its stack
//   waits for its children                     | parent          |
//   takes back one that nobody has started     |                 |
//     worker.current = child; calls it         | parent | child  |
//     child waits: it is parked right there,   | parent | parked |
//       its registers are in its own block,    |                 |
//       and any worker may resume it           | parent | child  |
//     child ends: returns                      |                 |
//   worker.current = parent                    | parent          |
//   the next one; none: waits as usual
//
// The parent could not have gone on before the child ended: so it loses nothing by standing below
// it. That holds only if whatever cancels its wait cancels the child, too, so not if the parent
// opened a scope between the group and the wait. (A child that shields itself then holds it up; a
// parent that leaves the group waits for such a one in any case.) It is in no queue meanwhile; when
// the child ends the thread goes on as the parent, wherever that is. What a worker looks at every
// 61 dispatches, its inbox and its timers, it looks at between two children, too; and when they
// have had a slice the parent waits as usual, so that others get their turn.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/fiber/suspend.hpp>

#include "fiber/fiber_extras.hpp"
#include "fiber/fiber_life.hpp"

namespace weft::inline v0::detail {

namespace {

constexpr auto own_unstarted = static_cast<std::uint8_t>(stack_kind::own);
constexpr auto own_started = static_cast<std::uint8_t>(own_unstarted | started_bit);

bool is_child_of(const runnable& r, const void* group) {
    if (r.kind != own_unstarted || r.bound_to != 0) return false;
    auto& block = static_cast<fiber_block&>(const_cast<runnable&>(r));
    constexpr auto wanted = fiber_marks::of_group | fiber_marks::common_stack;
    return (block.marks & (wanted | fiber_marks::stays_put)) == wanted &&
           static_cast<const group_member*>(block.callable())->group == group;
}

bool has_room(const fiber_block& me) noexcept {
    const auto* const here = static_cast<const std::byte*>(__builtin_frame_address(0));
    return static_cast<std::size_t>(here - me.stack_low) >= me.stack_size() / 4;
}

bool may_wait_now(const fiber_block& me) noexcept {
    constexpr auto in_the_way = hook_bit | no_suspend_bit | cancelled_bit;
    return (me.attention.load(std::memory_order_relaxed) & in_the_way) == 0;
}

// Of a pool's worker, on its own stack and not that of a coroutine, with nothing in the way of a
// wait and no exception of its own in flight, which the child would find. Between two children on
// one worker only may_wait_now() can have changed.
bool may_run_children(const fiber_worker& worker, const fiber_block& me) noexcept {
    return worker.attachment != nullptr && worker.exec.number != 0 &&
           me.runnable::kind == own_started && may_wait_now(me) &&
           this_thread_block().running == nullptr && !exceptions_of_this_thread()->any() &&
           has_room(me);
}

// The child has moved to another executor, and ended there.
[[gnu::noinline]] void go_home(fiber_block& me) {
    fiber_worker::here()->count_stack(-1);
    executor& home = *me.home;
    suspend([&home](runnable* r) noexcept -> runnable* {
        home.post(r);
        return nullptr;
    });
    fiber_worker::here()->count_stack(1);
}

// Perhaps by another thread than the one that called it.
void run_as_call(fiber_block& me, fiber_block& child) noexcept {
    child.inherit_stack(me);
    child.runnable::kind = own_started;
    fiber_worker::here()->current = &child;
    note_runs(child);
    live_on(child);
    fiber_worker& worker = *fiber_worker::here();
    worker.current = &me;
    bury_inside(worker, child);
    if (&worker.exec.home != me.home) go_home(me);
}

// Between two children. False: others come first now.
bool may_go_on(fiber_worker& worker) noexcept {
    if (worker.exec.count_transfer()) [[likely]]
        return true;
    executor& home = worker.exec.home;
    const time_point now = home.clock().now();
    if (worker.children_since == time_point{}) worker.children_since = now;
    const bool others_wait = worker.exec.look_without_leaving();
    if (!others_wait && !home.slice_is_over(now - worker.children_since))
        return worker.exec.count_transfer();
    worker.children_since = {};
    return false;
}

struct call_without {
    const group_state& group;
    const cancel_scope& body;
    const wait_reason& reason;
    static void run(void* self, void*) {
        const auto& me = *static_cast<call_without*>(self);
        run_unstarted_children(me.group, me.body, me.reason);
    }
};

}  // namespace

void run_unstarted_children(const group_state& group, const cancel_scope& body,
                            const wait_reason& reason) noexcept {
    fiber_worker* worker = fiber_worker::here();
    if (worker == nullptr || worker->current == nullptr) return;
    fiber_block& me = *worker->current;
    if (!may_run_children(*worker, me)) return;
    // What cancels the wait must cancel the child, which the parent cannot leave before its end.
    if (me.extras == nullptr || me.extras->scope.load(std::memory_order_relaxed) != &body) return;
    if (me.isolated.held != nullptr) {  // a child may want it
        call_without call{group, body, reason};
        return wait_without(me, &call_without::run, &call);
    }
    if ((me.attention.load(std::memory_order_relaxed) & unarmed_bit) != 0) {
        arm_deadlines(me);
        if (!may_wait_now(me)) return;
    }
    me.reason.store(&reason, std::memory_order_relaxed);
    while (may_go_on(*worker)) {
        runnable* const child = worker->exec.take_back(&is_child_of, &group);
        if (child == nullptr) {
            worker->exec.count_missed();
            break;
        }
        run_as_call(me, static_cast<fiber_block&>(*child));
        fiber_worker* const before = std::exchange(worker, fiber_worker::here());
        if (worker == before ? !may_wait_now(me) : !may_run_children(*worker, me)) break;
    }
    me.reason.store(nullptr, std::memory_order_relaxed);
}

}  // namespace weft::inline v0::detail
