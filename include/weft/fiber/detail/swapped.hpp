// swapped.hpp - what primitives ask before they let others write to something during a wait.
//
// The locals of a swapped fiber are somewhere else while it is parked. So a primitive that is
// waited on may not lie there, and what others write to during a wait has to come from the heap.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <weft/base/assert.hpp>

namespace weft::inline v0::detail {

/// Whether the address lies in the stack that the swapped fibers of this worker share.
[[nodiscard]] bool on_shared_stack(const void* address) noexcept;

/// Whether swapped fibers run here at all: if not, nothing lies in such a stack.
[[nodiscard]] bool shared_stack_here() noexcept;

/// Whether a swapped fiber runs.
[[nodiscard]] bool running_is_swapped() noexcept;

/// Aborts, with the message, if the object lies there.
inline void refuse_on_shared_stack(const void* object, const char* message) noexcept {
    WEFT_ASSERT(!on_shared_stack(object), message);
}

}  // namespace weft::inline v0::detail
