// fiber_extras.hpp - what few fibers have: a name, hooks, locals, scopes, an exception for join().
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <exception>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include <weft/fiber/cancel.hpp>
#include <weft/fiber/detail/cancel_follower.hpp>
#include <weft/fiber/detail/deadline_scope.hpp>
#include <weft/fiber/suspend.hpp>
#include <weft/fiber/suspend_hook.hpp>

#include "fiber/fiber_block.hpp"

namespace weft::inline v0::detail {

struct fiber_extras {
    std::string name;
    runnable* resumed_as = nullptr;  // in the fiber's stead, if it is_wrapped()
    stack_source* stacks = nullptr;  // the user's

    // The fiber alone.
    suspend_hook* hook = nullptr;      // the top of those that count now
    suspend_hook* top_hook = nullptr;  // of all that are set
    unsigned hook_changes = 0;         // set_suspend_hook() calls
    struct leaving_state {
        suspend_hook* top = nullptr;   // the hook that was on top when it began to leave
        departure* what = nullptr;     // what it asks for; nullptr: it has left already
        bool waits = false;            // a wait_request, else a suspend_request
    } leaving;                         // while its hooks are called
    const char* no_suspend = nullptr;  // the innermost scope's name
    unsigned no_suspend_depth = 0;
    struct local {
        const void* key;
        void* value;
        void (*destroy)(void*) noexcept;
    };
    std::vector<local> locals;
    std::exception_ptr error;  // for join()

    deadline_scope* deadline = nullptr;  // the innermost

    // Guarded by the block's lock.
    waiter* joiner = nullptr;  // of one that has, or had, a handle
    std::atomic<cancel_scope*> scope =
        nullptr;                           // the innermost; set without it, see cancel_scope()
    cancel_follower* followers = nullptr;  // the last attached first
    std::optional<std::stop_source> source;
};

}  // namespace weft::inline v0::detail
