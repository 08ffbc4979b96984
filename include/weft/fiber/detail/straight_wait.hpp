// straight_wait.hpp - the short way of a wait or a yield: a fiber of kind own, on a loop, with
// nothing special.
//
// It is inlined into whoever waits, the switch too (weft/context/swap_in_frame.hpp), but for one
// step, which is a call: to find who is next.
//
//   wait()             who am I, the word of the wait, publish
//   choose_next()      takes the next one from the queue, and says from where to where to switch
//   swap_in_frame()    the switch
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <weft/context/call_switching.hpp>
#include <weft/context/swap_in_frame.hpp>
#include <weft/fiber/detail/fiber_front.hpp>

namespace weft::inline v0::detail {

/// A switch that is still to be made; or none, to nullptr: the fiber goes on.
struct way_out {
    framed_context* from;
    context* to;
};

/// For the running fiber, which has been published and waits until somebody runs it.
[[nodiscard, WEFT_CALL_BEFORE_SWITCH]] way_out choose_next(worker_front& worker, fiber_front& me,
                                                           const wait_reason* meanwhile) noexcept;
/// The same for one that is ready to go on, and queues itself.
[[nodiscard, WEFT_CALL_BEFORE_SWITCH]] way_out choose_other(worker_front& worker,
                                                            fiber_front& me) noexcept;

/// Does what is left to do for one that ended, and so went away without a switch.
void arrive_after_end() noexcept;

/// A yield of any fiber; through call_switching(). Aborts outside any.
void yield_function(void*, void*);

/// The running fiber with its worker, if it may go the straight way; or none.
struct straight_fiber {
    worker_front* worker = nullptr;
    fiber_front* me = nullptr;

    [[nodiscard, gnu::always_inline]] static straight_fiber here() noexcept {
        worker_front* const worker = fibers_of_this_thread();
        if (worker == nullptr) [[unlikely]]
            return {};
        fiber_front* const me = worker->front();
        if (me == nullptr || me->is_special()) [[unlikely]]
            return {};
        return {worker, me};
    }

    /// Whether there is one.
    [[nodiscard, gnu::always_inline]] explicit operator bool() const noexcept {
        return me != nullptr;
    }

    /// Until it is woken.
    [[gnu::always_inline]] void leave(const wait_reason& reason) const noexcept {
        go(choose_next(*worker, *me, standing(&reason)));
    }
    /// Until it has its turn again.
    [[gnu::always_inline]] void yield() const noexcept { go(choose_other(*worker, *me)); }

private:
    [[gnu::always_inline]] static void go(const way_out& way) noexcept {
        if (swap_in_frame(way.from, way.to).left == nullptr) [[unlikely]]
            arrive_after_end();
    }
};

}  // namespace weft::inline v0::detail
