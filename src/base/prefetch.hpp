// prefetch.hpp - a hint to the processor that a cache line will be written soon.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <weft/base/version.hpp>

namespace weft::inline v0::detail {

/// Fetches the line to be written, not only to be read: one that another processor has is taken
/// from it at once, where a load, and then a store, would ask for it twice. Without a flag the
/// compilers fetch for reading on x86-64; a processor that does not know the instruction ignores
/// it.
inline void prefetch_for_write(const void* address) noexcept {
#if defined(__x86_64__)
    asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(address)));
#else
    __builtin_prefetch(address, 1, 3);
#endif
}

}  // namespace weft::inline v0::detail
