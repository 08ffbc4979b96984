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
// newer processor than its file, by an attribute. What such a function has in registers that are
// new to the file, and that no callee need keep, it puts away for every call that it sees. So right
// before the switch stands such a call, of something that has to be asked anyway; and whether there
// is a switch to make is asked by the `asm` itself, so that no branch stands between the two, where
// g++ would take back what it put away. clang takes the names of all registers there are.
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

// Between the load of rsp and the arrival, the description of the frame does not hold: a profiler's
// signal that comes there ends its walk.
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
    "testq %%rsi, %%rsi\n\t"    \
    "jz 2f\n\t"                 \
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
    "1:\n\t" WEFT_FOUND_IN_FRAME WEFT_LANDING_IN_FRAME "movq 24(%%rsi), %%rbx\n\t"

namespace weft::inline v0 {
namespace detail {

/// A context with room for all the registers that a wait keeps.
struct framed_context : native_context {
    framed_context() noexcept = default;
    explicit framed_context(native_context made) noexcept : native_context(std::move(made)) {}

    void* kept[2];
};

/// Where a switch in a frame came back to.
struct return_to_frame {
    const void* left;  // who left for it in turn; nullptr: one that jumped
    const void* mine;  // the context that was left; nullptr: there was no switch to make
};

/// Saves the running computation in `from` and goes on with `to`, however that was left; if that
/// is nullptr it does nothing. Exceptions in flight stay with the thread. `to` comes straight from
/// a call, WEFT_CALL_BEFORE_SWITCH, with nothing in between.
[[gnu::always_inline]] inline return_to_frame swap_in_frame(framed_context* from,
                                                            native_context* to) noexcept {
    void* left = from;  // of this switch, and then of the one that comes here
    void* arriving = to;
    asm volatile(WEFT_LEAVE_FRAME
                 "movq %%r12, 32(%%rdi)\n\t"
                 "movq %%r13, 40(%%rdi)\n\t" WEFT_GO_TO_OTHER_FRAME
                 "movq 32(%%rsi), %%r12\n\t"
                 "movq 40(%%rsi), %%r13\n"
                 "2:"
                 : "+D"(left), "+S"(arriving)
                 :
                 : WEFT_CLOBBER_IN_FRAME);
    return {left, arriving};
}

/// The same for a context that has room for rbx alone.
[[gnu::always_inline]] inline return_to_frame swap_in_frame(native_context* from,
                                                            native_context* to) noexcept {
    void* left = from;
    void* arriving = to;
    asm volatile(WEFT_LEAVE_FRAME WEFT_GO_TO_OTHER_FRAME "2:"
                 : "+D"(left), "+S"(arriving)
                 :
                 : "r12", "r13", WEFT_CLOBBER_IN_FRAME);
    return {left, arriving};
}

/// `to`, if whoever switches has registers to keep and nothing else; or nullptr.
[[nodiscard, WEFT_CALL_BEFORE_SWITCH]] native_context* with_registers_alone(
    native_context& to) noexcept;

}  // namespace detail

[[gnu::always_inline]] inline void native_context::swap(native_context& from,
                                                        native_context& to) noexcept {
#if defined(__clang__)
    native_context* const there = detail::exceptions_of_this_thread()->any() ? nullptr : &to;
#else
    native_context* const there = detail::with_registers_alone(to);
#endif
    if (detail::swap_in_frame(&from, there).mine == nullptr) [[unlikely]]
        detail::call_switching(&swap_function, &from, &to);
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

/// As above.
struct return_to_frame {
    const void* left;
    const void* mine;
};

/// The same, by a call.
return_to_frame swap_in_frame(context* from, context* to) noexcept;

}  // namespace weft::inline v0::detail

#endif
