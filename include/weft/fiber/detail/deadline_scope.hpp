// deadline_scope.hpp - a cancel scope with a deadline: one timer, which cancels everything inside.
//
// The timer is armed when the fiber first waits inside (or asks for a stop token, or opens a
// group): a scope around something that does not wait costs little. When it fires, the scope itself
// is what runs next on that thread, or on the user's executor where its fiber lives, and cancels.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <weft/base/clock_source.hpp>
#include <weft/exec/runnable.hpp>
#include <weft/exec/timer_queue.hpp>
#include <weft/fiber/cancel.hpp>
#include <weft/fiber/waiter.hpp>

namespace weft::inline v0::detail {

/// The fiber that calls. Aborts, naming the call, outside any.
[[nodiscard]] fiber_block& running_fiber(const char* call) noexcept;
/// By the clock of its executor. Aborts, naming the call, outside any fiber.
[[nodiscard]] time_point now_of_running_fiber(const char* call) noexcept;

/// As cancel_scope: of the fiber that made it, and not in the stack of a swapped one.
class deadline_scope final : private runnable {
public:
    /// One that is late already is cancelled from the beginning.
    deadline_scope(time_point deadline, time_point now, cancel_scope::shield shielded);
    deadline_scope(const deadline_scope&) = delete;
    deadline_scope& operator=(const deadline_scope&) = delete;
    /// Suspends: maybe, if it fires at this moment. Cancel: ignored.
    ~deadline_scope();

    /// Whether its own deadline has cancelled it, or an earlier one around it.
    [[nodiscard]] bool has_fired() const noexcept;

private:
    friend void arm_deadlines(fiber_block& me) noexcept;
    friend void disarm_deadlines(fiber_block& me) noexcept;
    friend void cancel_late_deadlines(fiber_block& me) noexcept;

    runnable* run() noexcept override;
    static runnable* fire(timer_node& node) noexcept;
    void arm(time_point now) noexcept;
    void wait_until_run() noexcept;
    [[gnu::noinline, nodiscard]] bool is_late() const noexcept;

    cancel_scope scope_;
    // Its fiber alone.
    const time_point deadline_;
    deadline_scope* outer_;
    enum class state : unsigned char { unarmed, armed, fired, late } state_ = state::unarmed;
    // The queue's, while it is armed.
    timer_node timer_;
    // Guarded by the fiber's lock.
    bool has_run_ = false;
    waiter* leaver_ = nullptr;
};

}  // namespace weft::inline v0::detail
