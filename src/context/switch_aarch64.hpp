// switch_aarch64.hpp - the switch on aarch64, AAPCS64.
//
//      context             the stack it describes
//      +---------------+   :                      :  high addresses
//    0 | sp            |-->| frame of the caller  |
//    8 | x29           |   | of the switch, with  |
//   16 | address of 1: |   | its spilled values   |
//      +---------------+   +----------------------+  <- sp = lowest_used(); there is no red zone
//
// Every other register is clobbered, the callee-saved halves d8-d15 of the vector registers among
// them, so the compiler keeps what is live in its frame. x18 among them: the switch does not touch
// it, but on Linux it is a register like others, and the other side may use it. The way out is
// `ret`: a `br` would have to land on a BTI instruction.
//
// On arrival x1 points to the context that goes on and x0 to the one that was left, as whoever
// switched had them; after a jump x0 is zero.
//
// A new context has in sp the address of {entry, argument}; see entry_aarch64.S.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <weft/context/native_context.hpp>

#if defined(__ARM_FEATURE_SVE)
#define WEFT_CLOBBER_SVE                                                                      \
    , "p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7", "p8", "p9", "p10", "p11", "p12", "p13", \
        "p14", "p15"
#else
#define WEFT_CLOBBER_SVE
#endif

namespace weft::inline v0::detail {

inline constexpr std::size_t red_zone = 0;
/// At the high end of a stack, of a body that was left once: two words that were read when it
/// began.
inline constexpr std::size_t spent_at_start = 16;

[[gnu::always_inline]] inline registers_on_arrival transfer(
    native_context::registers& from, native_context::registers& to) noexcept {
    // Of this switch, and then of the one that comes here.
    register native_context::registers* left asm("x0") = &from;
    register native_context::registers* arriving asm("x1") = &to;
    asm volatile(
        "adr x9, 1f\n\t"
        "mov x10, sp\n\t"
        "stp x10, x29, [x0]\n\t"
        "str x9, [x0, #16]\n\t"
        ".cfi_remember_state\n\t"
        ".cfi_undefined x30\n\t"
        "ldp x10, x29, [x1]\n\t"
        "ldr x9, [x1, #16]\n\t"
        "mov sp, x10\n\t"
        "ret x9\n\t"
        ".cfi_restore_state\n"
        "1:"
        : "+r"(left), "+r"(arriving)
        :
        : "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15",
          "x16", "x17", "x18", "x19", "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28",
          "x30", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12",
          "v13", "v14", "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25",
          "v26", "v27", "v28", "v29", "v30", "v31", "memory", "cc" WEFT_CLOBBER_SVE);
    return {.mine = arriving, .left = left};
}

[[noreturn, gnu::always_inline]] inline void leap(native_context::registers& to) noexcept {
    register native_context::registers* left asm("x0") = nullptr;
    register native_context::registers* arriving asm("x1") = &to;
    asm volatile(
        ".cfi_remember_state\n\t"
        ".cfi_undefined x30\n\t"
        "ldp x10, x29, [x1]\n\t"
        "ldr x9, [x1, #16]\n\t"
        "mov sp, x10\n\t"
        "ret x9\n\t"
        ".cfi_restore_state"
        :
        : "r"(left), "r"(arriving)
        : "memory");
    __builtin_unreachable();
}

/// Saves the running computation in `from`, and calls entry(argument) at the high end of a stack.
/// Comes back when the entry returns, or when somebody goes on with `from` before that; then the
/// entry must not return any more.
[[gnu::always_inline]] inline void call_on(native_context::registers& from, void* high,
                                           context_entry entry, void* argument) noexcept {
    register void* given asm("x0") = argument;
    register native_context::registers* saved asm("x1") = &from;
    register void* top asm("x2") = high;
    register context_entry called asm("x3") = entry;
    asm volatile(
        "adr x9, 1f\n\t"
        "mov x10, sp\n\t"
        "stp x10, x29, [x1]\n\t"
        "str x9, [x1, #16]\n\t"
        ".cfi_remember_state\n\t"
        ".cfi_undefined x30\n\t"
        "mov sp, x2\n\t"
        "stp x1, xzr, [sp, #-16]!\n\t"
        "mov x29, xzr\n\t"
        "blr x3\n\t"
        "ldr x1, [sp]\n\t"
        "ldp x10, x29, [x1]\n\t"
        "mov sp, x10\n\t"
        ".cfi_restore_state\n"
        "1:"
        : "+r"(given), "+r"(saved), "+r"(top), "+r"(called)
        :
        : "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15", "x16",
          "x17", "x18", "x19", "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28", "x30",
          "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13",
          "v14", "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26",
          "v27", "v28", "v29", "v30", "v31", "memory", "cc" WEFT_CLOBBER_SVE);
}

[[nodiscard]] inline std::uint64_t read_fp_control() noexcept {
    std::uint64_t words;
    asm volatile("mrs %0, fpcr" : "=r"(words));
    return words;
}

inline void write_fp_control(std::uint64_t words) noexcept {
    asm volatile("msr fpcr, %0" : : "r"(words));
}

/// Guarded control stacks (GCS) are opt-in and newer than the C libraries that weft supports.
[[nodiscard]] inline bool shadow_stack_is_live() noexcept { return false; }

}  // namespace weft::inline v0::detail
