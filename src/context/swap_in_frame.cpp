// swap_in_frame.cpp - see swap_in_frame.hpp: where it is a call.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/context/swap_in_frame.hpp>

#include "context/switch.hpp"

#if !WEFT_SWITCH_IN_FRAME

namespace weft::inline v0 {

[[gnu::noinline]] detail::return_to_frame detail::swap_in_frame(context* from,
                                                                context* to) noexcept {
    if (to == nullptr) return {from, nullptr};
    const arrival at = swap_registers(*from, *to);
    return {at.left, &at.mine};
}

}  // namespace weft::inline v0

#endif
