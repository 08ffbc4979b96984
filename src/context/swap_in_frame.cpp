// swap_in_frame.cpp - see swap_in_frame.hpp: where it is a call.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/context/swap_in_frame.hpp>

#include "context/switch.hpp"

#if !WEFT_SWITCH_IN_FRAME

namespace weft::inline v0 {

[[gnu::noinline]] const void* detail::swap_in_frame(context& from, context& to) noexcept {
    return swap_registers(from, to).left;
}

}  // namespace weft::inline v0

#endif
