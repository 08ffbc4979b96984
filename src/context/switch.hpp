// switch.hpp - the switch of native_context, inlined into weft's own functions.
//
// Never into a user's: in a frame that is realigned and also holds an alloca, clang addresses the
// locals through rbx, and an asm that clobbers it would lose them. Users call
// native_context::swap().
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <type_traits>

#include <weft/context/context.hpp>

#if WEFT_NATIVE_SWITCH

#if defined(__x86_64__)
#include "context/switch_x86_64.hpp"
#else
#include "context/switch_aarch64.hpp"
#endif

#include "context/annotate.hpp"
#include "context/carry.hpp"

namespace weft::inline v0::detail {

// The registers are a context's first member, so their address is its own.
static_assert(std::is_standard_layout_v<native_context> &&
              offsetof(native_context, registers_) == 0);

/// native_context::swap(), inlined; says who goes on here, and who left. Both are in registers on
/// arrival, while whatever the caller kept lies in its frame: a load behind a load of the stack
/// pointer.
[[gnu::always_inline]] inline arrival<native_context> swap_here(native_context& from,
                                                                native_context& to) noexcept {
    from.state_.flags = 0;  // whatever it held was taken out, or is given up here
    if (must_carry(to.state_)) [[unlikely]]
        carry(from.state_, to.state_);
    void* fake_stack = nullptr;
    leaving(from.record_, to.record_, fake_stack);
    const registers_on_arrival at = transfer(from.registers_, to.registers_);
    arrived(fake_stack);
    return {*reinterpret_cast<native_context*>(at.mine),
            reinterpret_cast<native_context*>(at.left)};
}

/// native_context::jump(), inlined.
[[noreturn, gnu::always_inline]] inline void jump_from_here(native_context& to) noexcept {
    if (must_carry(to.state_)) [[unlikely]]
        carry_from_finished(to.state_);
    leaving_for_good(to.record_);
    leap(to.registers_);
}

}  // namespace weft::inline v0::detail

#endif

namespace weft::inline v0::detail {

[[gnu::always_inline]] inline arrival<portable_context> swap_here(portable_context& from,
                                                                  portable_context& to) noexcept {
    return portable_context::swap_function(from, to);
}

[[noreturn, gnu::always_inline]] inline void jump_from_here(portable_context& to) noexcept {
    portable_context::jump(to);
}

}  // namespace weft::inline v0::detail
