// swap_in_frame.hpp - the switch in a user's frame.
//
// A switch that is called and comes back by a jump leaves an address too many on the processor's
// own stack of return addresses; on some processors that costs as much as all the rest of it. So
// for x86-64 the whole switch stands in the frame of whoever waits, or calls context::swap(): some
// stores, a jump, some loads, and not a word on either stack. The compiler is told that most
// registers are gone, and puts away itself what it has there (docs/decisions/0020). A wait of a
// fiber keeps two more, so that a loop around it has its variables in registers:
//
//      native_context      the stack it describes
//      +---------------+   :                      :  high addresses
//    0 | rsp           |-->| frame of who leaves, |
//    8 | rbp           |   | with what it spilled |
//   16 | address of 1: |   +----------------------+  <- rsp
//   24 | rbx           |   | 128 bytes red zone   |
//      +---------------+   +----------------------+
//   32 | r12           |
//   40 | r13           |   of a framed_context
//      +---------------+
//
// rbx has to be kept: in a frame that is realigned and holds an alloca, too, clang finds everything
// through it.
//
// g++ lets an `asm` name no register that the file is not compiled for, and a function may be for a
// newer processor than its file, by an attribute. So right before the switch stands a call that the
// compiler sees, of something that has to be asked anyway: what a function has in registers that
// are new to this file, and that no callee need keep, has been put away for that call. clang takes
// the names of all there are.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include <weft/base/thread_block.hpp>
#include <weft/context/context.hpp>

/// Of the function that is called before a switch. Opaque also to one who sees what is in it: that
/// one might keep something over the call that it finds untouched there, and the switch would not.
#if defined(__clang__)
#define WEFT_CALL_BEFORE_SWITCH gnu::noinline
#else
#define WEFT_CALL_BEFORE_SWITCH gnu::noipa
#endif

#if WEFT_SWITCH_IN_FRAME

#if defined(__clang__) || defined(__AVX512F__)
#define WEFT_CLOBBER_AVX512_IN_FRAME                                                              \
    , "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24", "xmm25",   \
        "xmm26", "xmm27", "xmm28", "xmm29", "xmm30", "xmm31", "k0", "k1", "k2", "k3", "k4", "k5", \
        "k6", "k7"
#else
#define WEFT_CLOBBER_AVX512_IN_FRAME
#endif
#if (defined(__clang__) && __clang_major__ >= 18) || defined(__APX_F__)
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

#define WEFT_CLOBBER_IN_FRAME                                                                    \
    "rax", "rcx", "rdx", "r8", "r9", "r10", "r11", "r14", "r15", "xmm0", "xmm1", "xmm2", "xmm3", \
        "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13",      \
        "xmm14", "xmm15", "st", "st(1)", "st(2)", "st(3)", "st(4)", "st(5)", "st(6)", "st(7)",   \
        "memory", "cc" WEFT_CLOBBER_AVX512_IN_FRAME WEFT_CLOBBER_APX_IN_FRAME

#define WEFT_LEAVE_FRAME        \
    "leaq 1f(%%rip), %%rax\n\t" \
    "movq %%rsp, 0(%%rdi)\n\t"  \
    "movq %%rbp, 8(%%rdi)\n\t"  \
    "movq %%rax, 16(%%rdi)\n\t" \
    "movq %%rbx, 24(%%rdi)\n\t"
#define WEFT_GO_TO_OTHER_FRAME \
    WEFT_LOST_IN_FRAME         \
    "movq 0(%%rsi), %%rsp\n\t" \
    "movq 8(%%rsi), %%rbp\n\t" \
    "jmpq *16(%%rsi)\n"        \
    "1:\n\t" WEFT_LANDING_IN_FRAME "movq 24(%%rsi), %%rbx\n\t"

namespace weft::inline v0 {
namespace detail {

/// A context with room for all the registers that a wait keeps.
struct framed_context : native_context {
    framed_context() noexcept = default;
    explicit framed_context(native_context made) noexcept : native_context(std::move(made)) {}

    void* kept[2];
};

/// Saves the running computation in `from` and goes on with `to`, however that was left. Says who
/// left for it in turn; nullptr: one that jumped. Exceptions in flight stay with the thread.
[[nodiscard, gnu::always_inline]] inline const void* swap_in_frame(framed_context& from,
                                                                   native_context& to) noexcept {
    void* left = &from;  // of this switch, and then of the one that comes here
    void* arriving = &to;
    asm volatile(WEFT_LEAVE_FRAME
                 "movq %%r12, 32(%%rdi)\n\t"
                 "movq %%r13, 40(%%rdi)\n\t" WEFT_GO_TO_OTHER_FRAME
                 "movq 32(%%rsi), %%r12\n\t"
                 "movq 40(%%rsi), %%r13\n\t" WEFT_FOUND_IN_FRAME
                 : "+D"(left), "+S"(arriving)
                 :
                 : WEFT_CLOBBER_IN_FRAME);
    return left;
}

/// The same for a context that has room for rbx alone.
[[nodiscard, gnu::always_inline]] inline const void* swap_in_frame(native_context& from,
                                                                   native_context& to) noexcept {
    void* left = &from;
    void* arriving = &to;
    asm volatile(WEFT_LEAVE_FRAME WEFT_GO_TO_OTHER_FRAME WEFT_FOUND_IN_FRAME
                 : "+D"(left), "+S"(arriving)
                 :
                 : "r12", "r13", WEFT_CLOBBER_IN_FRAME);
    return left;
}

/// Whether whoever switches has registers to keep, and nothing else.
[[nodiscard, WEFT_CALL_BEFORE_SWITCH]] bool has_registers_alone() noexcept;

}  // namespace detail

[[gnu::always_inline]] inline void native_context::swap(native_context& from,
                                                        native_context& to) noexcept {
#if defined(__clang__)
    if (detail::exceptions_of_this_thread()->any()) [[unlikely]]
#else
    if (!detail::has_registers_alone()) [[unlikely]]
#endif
        return detail::call_switching(&swap_function, &from, &to);
    static_cast<void>(detail::swap_in_frame(from, to));
}

}  // namespace weft::inline v0

#undef WEFT_GO_TO_OTHER_FRAME
#undef WEFT_LEAVE_FRAME
#undef WEFT_CLOBBER_IN_FRAME
#undef WEFT_CLOBBER_AVX512_IN_FRAME
#undef WEFT_CLOBBER_APX_IN_FRAME
#undef WEFT_LANDING_IN_FRAME
#undef WEFT_LOST_IN_FRAME
#undef WEFT_FOUND_IN_FRAME

#else

namespace weft::inline v0::detail {

using framed_context = context;

/// The same, by a call.
[[nodiscard]] const void* swap_in_frame(context& from, context& to) noexcept;

}  // namespace weft::inline v0::detail

#endif
