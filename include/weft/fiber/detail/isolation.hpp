// isolation.hpp - what a fiber holds only while it runs: let go over its waits.
//
// The control block has one place for it. Every wait, suspend and yield of a fiber that holds
// something there goes through around(), on the fiber itself: it lets the thing go, waits, takes it
// again and returns; meanwhile the place is empty. Nothing is posted or woken by this part for it:
// the fiber takes it again when it runs, so nobody holds it from a queue.
//
// The part actor is built on it. What is to happen around waits can also be added from outside,
// by a suspend_hook (suspend_hook.hpp); docs/decisions/0006 tells why this is not one.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <weft/base/version.hpp>

namespace weft::inline v0::detail {

class isolation;

/// The place in the control block. The fiber alone.
struct isolation_slot {
    const isolation* held = nullptr;
};

class isolation {
public:
    using wait_call = void (*)(void* request, void*);

    /// By the fiber that holds it, about to wait: lets it go, empties the slot, calls
    /// wait(request, nullptr), and undoes both, also when that throws.
    virtual void around(isolation_slot& slot, wait_call wait, void* request) const = 0;

protected:
    constexpr isolation() noexcept = default;
    ~isolation() = default;
};

/// Of the running fiber; nullptr: none runs here. It stays where it is as long as the fiber lives.
[[nodiscard]] isolation_slot* isolation_slot_here() noexcept;

}  // namespace weft::inline v0::detail
