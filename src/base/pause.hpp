// pause.hpp - a hint to the processor inside a loop that waits for another thread.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <weft/base/version.hpp>

namespace weft::inline v0::detail {

inline void pause() noexcept {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

}  // namespace weft::inline v0::detail
