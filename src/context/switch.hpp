// switch.hpp - the switch of native_context, inlined into weft's own functions.
//
// Never into a user's: in a frame that is realigned and also holds an alloca, clang addresses the
// locals through rbx, and an asm that clobbers it would lose them. Users call
// native_context::swap().
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

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

/// native_context::swap(), inlined.
[[gnu::always_inline]] inline void swap_here(native_context& from, native_context& to) noexcept {
    from.state_.flags = 0;  // whatever it held was taken out, or is given up here
    if (must_carry(to.state_)) [[unlikely]]
        carry(from.state_, to.state_);
    void* fake_stack = nullptr;
    leaving(from.record_, to.record_, fake_stack);
    transfer(from.registers_, to.registers_);
    arrived(fake_stack);
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

[[gnu::always_inline]] inline void swap_here(portable_context& from,
                                             portable_context& to) noexcept {
    portable_context::swap(from, to);
}

[[noreturn, gnu::always_inline]] inline void jump_from_here(portable_context& to) noexcept {
    portable_context::jump(to);
}

}  // namespace weft::inline v0::detail
