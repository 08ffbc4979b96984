// region.hpp - which addresses belong to stacks of a depot, for the overflow handler to ask.
//
// A signal handler can take no lock, so the regions stand in a list that only ever grows at its
// head. A region whose memory is gone is marked free (size 0) and used again; nodes are never
// deleted. Those who add and remove have a lock, and a list of the free ones.
//
//   adder                                      handler
//   fill the node, then size (release)         walk from head (acquire), next is fixed once linked
//   link: head = node (release)                size (acquire) != 0: base, stride are valid
//
// A handler that reads a node while another thread reuses it may see a mix; it then describes a
// fault wrongly in a program that is about to die. It never follows a bad pointer.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>

#include <weft/stack/stack.hpp>

namespace weft::inline v0::detail {

struct region {
    std::atomic<std::byte*> base = nullptr;
    std::atomic<std::size_t> size = 0;    // 0: free
    std::atomic<std::size_t> stride = 0;  // guard and stack of one slot
    region* next = nullptr;               // fixed once linked
    region* next_free = nullptr;          // of those who add and remove
};

/// Registers memory cut into slots, each a guard below a stack. Fails: std::bad_alloc.
region* add_region(std::byte* base, std::size_t size, std::size_t stride);
void remove_region(region* gone) noexcept;

/// Whether a depot has this memory. Async-signal-safe.
[[nodiscard]] bool is_in_region(const std::byte* address) noexcept;

/// The stack whose guard holds the address, or an empty one. Async-signal-safe.
[[nodiscard]] stack stack_guarded_at(const std::byte* address) noexcept;

}  // namespace weft::inline v0::detail
