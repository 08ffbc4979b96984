// swap_by_jump.cpp - see swap_by_jump.hpp: where it is a call.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/context/swap_by_jump.hpp>

#include "context/switch.hpp"

#if !(WEFT_NATIVE_SWITCH && defined(__x86_64__) && !WEFT_ASAN && !WEFT_TSAN)

namespace weft::inline v0 {

[[gnu::noinline]] const void* detail::swap_by_jump(context& from, context& to) noexcept {
    return swap_registers(from, to).left;
}

}  // namespace weft::inline v0

#endif
