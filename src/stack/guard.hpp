// guard.hpp - making the memory below a stack inaccessible.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <weft/stack/stack_depot.hpp>

namespace weft::inline v0::detail {

/// The size of every guard. It costs address space and page tables only, and catches a frame that
/// skips memory, of 96 KiB wherever on the stack it begins, in code that was compiled without
/// -fstack-clash-protection. With a stack of any class an odd number of pages: so the tops of
/// stacks, which all fibers touch, fall into all sets of the processor's TLB and not into a few
/// (docs/decisions/0015).
inline constexpr std::size_t guard_size = 100 * 1024;

/// What to use for `wanted`: guard_kind::best is decided by a probe, once a process.
[[nodiscard]] guard_kind choose_guard(guard_kind wanted) noexcept;

/// Makes [low, low + guard_size) inaccessible; returns 0, or errno.
[[nodiscard]] int install_guard(guard_kind kind, std::byte* low) noexcept;

}  // namespace weft::inline v0::detail
