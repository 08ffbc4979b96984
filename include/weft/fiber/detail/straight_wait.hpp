// straight_wait.hpp - the short way of a wait: a fiber of kind own, on a loop, with nothing
// special.
//
// What comes before the switch is inlined into whoever waits; the switch itself never is
// (src/context/switch.hpp). leave_straight() takes the next one from the queue and goes there, and
// whoever goes on returns to its own caller by a jump, with no frame of the library between:
//
//   wait()            inlined: who am I, the word of the wait, publish
//   leave_straight()  the next of the queue; ends in ...
//   swap_and_return() registers to the stack, the switch, registers from the stack
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <weft/fiber/detail/fiber_front.hpp>

namespace weft::inline v0::detail {

/// Who left for the one that goes on; nullptr: one that has ended, and arrive_after_end() must
/// follow.
using who_left = const void*;

/// The running fiber, which has been published, waits until somebody runs it.
[[nodiscard]] who_left leave_straight(worker_front& worker, fiber_front& me,
                                      const wait_reason* meanwhile);
/// The same, of one that is ready to go on; of any fiber. Aborts outside any.
[[nodiscard]] who_left yield_straight();
/// Does what is left to do for one that ended.
void arrive_after_end() noexcept;

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
        if (leave_straight(*worker, *me, standing(&reason)) == nullptr) [[unlikely]]
            arrive_after_end();
    }
};

}  // namespace weft::inline v0::detail
