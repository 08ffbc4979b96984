// annotate.hpp - what valgrind, LSan and TSan are told about memory that is used as a stack.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <weft/stack/stack.hpp>

namespace weft::inline v0::detail {

/// Called once for memory that becomes a stack; fills in stack::tsan_fiber in TSan builds.
/// Fails: std::bad_alloc.
void announce_stack(stack& fresh);

/// Called before that memory goes back to the system.
void forget_stack(const stack& gone) noexcept;

}  // namespace weft::inline v0::detail
