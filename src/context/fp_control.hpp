// fp_control.hpp - reading and writing the floating-point control words, where weft has the means.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "context/switch.hpp"

#if !WEFT_NATIVE_SWITCH

namespace weft::inline v0::detail {

// swapcontext keeps the control words of every context; there is nothing to do beside it.
[[nodiscard]] inline std::uint64_t read_fp_control() noexcept { return 0; }
inline void write_fp_control(std::uint64_t) noexcept {}

}  // namespace weft::inline v0::detail

#endif
