// suspend_hook.hpp - to be told when a fiber stops and goes on.
//
// A fiber has a chain of hooks, set one above the other. When it is about to suspend, the top one's
// suspend() is called on the fiber; it does what it must before, lets the next one suspend, and
// does what it must after. Once the fiber is off its stack suspended(r) goes down the chain the
// same way: a hook may pass a wrapper of r down, which is then what wakers post, and whose run()
// may itself wait before it goes on to r.
//
//     class saves_state : public suspend_hook {
//         void suspend() override { save(); suspend_hook::suspend(); restore(); }
//     };
//
// While a hook's suspend() runs, only the hooks below it are set: it may wait. One that removes
// itself there goes on with those that are left.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <weft/exec/runnable.hpp>

namespace weft::inline v0 {

namespace detail {
struct fiber_block;
}

class suspend_hook {
public:
    suspend_hook() = default;
    /// A copy is set nowhere, and what is assigned to stays where it is set.
    suspend_hook(const suspend_hook&) noexcept {}
    suspend_hook& operator=(const suspend_hook&) noexcept { return *this; }
    /// Removes it, if it is set still; finish() is not called then, for what would do it is gone.
    /// So it may live in the fiber itself: in its function, its captures, a fiber_local.
    /// From: if it is set, the fiber it is set on alone; else it aborts.
    virtual ~suspend_hook();

    /// Called by the fiber that is about to suspend. The default goes on to the hook below; the
    /// last one suspends. A hook that does not call it must not return: the fiber has to stop.
    virtual void suspend();
    /// Called off the fiber's stack, with what resumes it. The default passes r down; below the
    /// last one it is handed to whoever will resume it. Returns what the thread runs next.
    virtual runnable* suspended(runnable* r) noexcept;
    /// It was set on the running fiber.
    virtual void start() {}
    /// It was removed from its fiber, or the fiber ends.
    virtual void finish() noexcept {}

    /// The hook that was set before it, or nullptr.
    [[nodiscard]] suspend_hook* below() const noexcept { return below_; }

private:
    friend struct hook_access;
    suspend_hook* below_ = nullptr;
    suspend_hook* went_to_ = nullptr;    // as suspend() did, so does suspended()
    detail::fiber_block* of_ = nullptr;  // the fiber on which it is set
};

namespace this_fiber {

/// The top of the chain, or nullptr. Aborts outside a fiber.
[[nodiscard]] suspend_hook* get_suspend_hook() noexcept;

/// Puts a hook on top of the chain, calls its start(), and returns the one that was on top. A hook
/// already in the chain becomes the top: those above it are removed, and their finish() called;
/// nullptr removes all. A hook is in one chain at a time. Aborts outside a fiber.
suspend_hook* set_suspend_hook(suspend_hook* hook);

}  // namespace this_fiber
}  // namespace weft::inline v0
