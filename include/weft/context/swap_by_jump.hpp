// swap_by_jump.hpp - the switch in a user's frame, as nearly as that can be had.
//
// A call that comes back by a jump leaves an address too many on the processor's own stack of
// return addresses; on some processors that costs as much as all the rest of a switch
// (docs/decisions/0019). So what is inlined into users' code jumps to the switch, with the address
// to come back to in a register, and nothing is ever returned from.
//
// The switch itself is not inlined: it would have to name every register there is. Of this jump the
// compiler is told what it knows of a call: that the registers which a callee need not keep are
// gone, and that memory may have changed.
//
// Right before it stands a call that the compiler sees, of whatever tells where to go. So the
// function is no leaf, and what it keeps in registers that are new to this file (and that no callee
// need keep either) has been put away for that call.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <weft/base/sanitizer.hpp>
#include <weft/context/context.hpp>

#if WEFT_NATIVE_SWITCH && defined(__x86_64__) && !WEFT_ASAN && !WEFT_TSAN

#if defined(__AVX512F__)
#define WEFT_CLOBBER_AVX512_OF_CALL                                                               \
    , "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24", "xmm25",   \
        "xmm26", "xmm27", "xmm28", "xmm29", "xmm30", "xmm31", "k0", "k1", "k2", "k3", "k4", "k5", \
        "k6", "k7"
#else
#define WEFT_CLOBBER_AVX512_OF_CALL
#endif

extern "C" void weft_v0_swap_by_jump();  // context/swap_by_jump_x86_64.S; not to be called

namespace weft::inline v0::detail {

// As with thread_block.hpp's: a reference that is seen, by a linker that looks for what is missing.
[[gnu::used]] inline void (*const linked_swap_by_jump)() = &::weft_v0_swap_by_jump;

/// Saves the running computation in `from` and goes on with `to`. Says who left for it in turn;
/// nullptr: one that jumped. Exceptions in flight stay with the thread.
[[nodiscard, gnu::always_inline]] inline const void* swap_by_jump(native_context& from,
                                                                  native_context& to) noexcept {
    void* left = &from;  // of this switch, and then of the one that comes here
    void* arriving = &to;
    asm volatile(
        "leaq 1f(%%rip), %%rax\n\t"
        "jmp weft_v0_swap_by_jump@PLT\n"
        "1:"
        : "+D"(left), "+S"(arriving)
        :
        : "rax", "rcx", "rdx", "r8", "r9", "r10", "r11",  //
          "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10",
          "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "st", "st(1)", "st(2)", "st(3)", "st(4)",
          "st(5)", "st(6)", "st(7)", "memory", "cc" WEFT_CLOBBER_AVX512_OF_CALL);
    return left;
}

}  // namespace weft::inline v0::detail

#undef WEFT_CLOBBER_AVX512_OF_CALL

#else

namespace weft::inline v0::detail {

/// The same, by a call.
[[nodiscard]] const void* swap_by_jump(context& from, context& to) noexcept;

}  // namespace weft::inline v0::detail

#endif
