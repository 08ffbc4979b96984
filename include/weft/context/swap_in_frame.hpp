// swap_in_frame.hpp - the switch in a user's frame.
//
// A switch that is called and comes back by a jump leaves an address too many on the processor's
// own stack of return addresses; on some processors that costs as much as all the rest of it. So
// for x86-64 the whole switch stands in the frame of whoever waits: eight stores, a jump, five
// loads, and not a word on either stack. The compiler is told that most registers are gone, and
// puts away itself what it has there; a few that callees keep are kept here, so that a loop around
// a wait has its variables in registers (docs/decisions/0020):
//
//      framed_context      the stack it describes
//      +---------------+   :                      :  high addresses
//    0 | rsp           |-->| frame of who leaves, |
//    8 | rbp           |   | with what it spilled |
//   16 | address of 1: |   +----------------------+  <- rsp
//   24 | rbx           |   | 128 bytes red zone   |
//   32 | r12           |   +----------------------+
//   40 | r13           |
//      +---------------+
//
// rbx has to be among them: in a frame that is realigned and holds an alloca, too, clang finds
// everything through it.
//
// Right before it stands a call that the compiler sees, of whatever tells where to go. So what a
// function for a newer processor has in registers that are new to this file, and that no callee
// need keep, has been put away for that call.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include <weft/base/sanitizer.hpp>
#include <weft/context/context.hpp>

#if WEFT_NATIVE_SWITCH && defined(__x86_64__) && !WEFT_ASAN && !WEFT_TSAN
#define WEFT_SWITCH_IN_FRAME 1

#if defined(__AVX512F__)
#define WEFT_CLOBBER_AVX512_IN_FRAME                                                              \
    , "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24", "xmm25",   \
        "xmm26", "xmm27", "xmm28", "xmm29", "xmm30", "xmm31", "k0", "k1", "k2", "k3", "k4", "k5", \
        "k6", "k7"
#else
#define WEFT_CLOBBER_AVX512_IN_FRAME
#endif
#if defined(__APX_F__)
#define WEFT_CLOBBER_APX_IN_FRAME                                                                \
    , "r16", "r17", "r18", "r19", "r20", "r21", "r22", "r23", "r24", "r25", "r26", "r27", "r28", \
        "r29", "r30", "r31"
#else
#define WEFT_CLOBBER_APX_IN_FRAME
#endif

#if defined(__CET__) && (__CET__ & 1)
#define WEFT_LANDING_IN_FRAME "endbr64\n\t"
#else
#define WEFT_LANDING_IN_FRAME ""
#endif

// Between the load of rsp and the last of what comes back, the description of the frame does not
// hold: a profiler's signal that arrives there ends its walk.
#if defined(__GCC_HAVE_DWARF2_CFI_ASM)
#define WEFT_LOST_IN_FRAME ".cfi_remember_state\n\t.cfi_undefined rip\n\t"
#define WEFT_FOUND_IN_FRAME ".cfi_restore_state\n\t"
#else
#define WEFT_LOST_IN_FRAME ""
#define WEFT_FOUND_IN_FRAME ""
#endif

namespace weft::inline v0::detail {

/// A context with room for the registers that come back by themselves.
struct framed_context : native_context {
    framed_context() noexcept = default;
    explicit framed_context(native_context made) noexcept : native_context(std::move(made)) {}

    void* kept[3];
};

/// Saves the running computation in `from` and goes on with `to`, however that was left. Says who
/// left for it in turn; nullptr: one that jumped. Exceptions in flight stay with the thread.
[[nodiscard, gnu::always_inline]] inline const void* swap_in_frame(framed_context& from,
                                                                   native_context& to) noexcept {
    void* left = &from;  // of this switch, and then of the one that comes here
    void* arriving = &to;
    asm volatile(
        "leaq 1f(%%rip), %%rax\n\t"
        "movq %%rsp, 0(%%rdi)\n\t"
        "movq %%rbp, 8(%%rdi)\n\t"
        "movq %%rax, 16(%%rdi)\n\t"
        "movq %%rbx, 24(%%rdi)\n\t"
        "movq %%r12, 32(%%rdi)\n\t"
        "movq %%r13, 40(%%rdi)\n\t" WEFT_LOST_IN_FRAME
        "movq 0(%%rsi), %%rsp\n\t"
        "movq 8(%%rsi), %%rbp\n\t"
        "jmpq *16(%%rsi)\n"
        "1:\n\t" WEFT_LANDING_IN_FRAME
        "movq 24(%%rsi), %%rbx\n\t"
        "movq 32(%%rsi), %%r12\n\t"
        "movq 40(%%rsi), %%r13\n\t" WEFT_FOUND_IN_FRAME
        : "+D"(left), "+S"(arriving)
        :
        : "rax", "rcx", "rdx", "r8", "r9", "r10", "r11", "r14", "r15",  //
          "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10",
          "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "st", "st(1)", "st(2)", "st(3)", "st(4)",
          "st(5)", "st(6)", "st(7)", "memory",
          "cc" WEFT_CLOBBER_AVX512_IN_FRAME WEFT_CLOBBER_APX_IN_FRAME);
    return left;
}

}  // namespace weft::inline v0::detail

#undef WEFT_CLOBBER_AVX512_IN_FRAME
#undef WEFT_CLOBBER_APX_IN_FRAME
#undef WEFT_LANDING_IN_FRAME
#undef WEFT_LOST_IN_FRAME
#undef WEFT_FOUND_IN_FRAME

#else
#define WEFT_SWITCH_IN_FRAME 0

namespace weft::inline v0::detail {

using framed_context = context;

/// The same, by a call.
[[nodiscard]] const void* swap_in_frame(context& from, context& to) noexcept;

}  // namespace weft::inline v0::detail

#endif
