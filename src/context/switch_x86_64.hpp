// switch_x86_64.hpp - the switch on x86-64, System V ABI.
//
// Nothing is pushed on either stack, so the red zone of the leaving function is safe; what must
// survive is in its frame already, for the compiler is told that every register is gone:
//
//      context             the stack it describes
//      +---------------+   :                      :  high addresses
//    0 | rsp           |-->| frame of the caller  |
//    8 | rbp           |   | of the switch, with  |
//   16 | address of 1: |   | its spilled values   |
//      +---------------+   +----------------------+  <- rsp
//                          | 128 bytes red zone   |
//                          +----------------------+  <- lowest_used()
//
// A new context has in rsp the address of two words at the top of its stack, {entry, argument}, and
// its resume address is weft_v0_context_entry (entry_x86_64.S), which pops both and calls.
//
// On arrival rsi points to the context that goes on and rdi to the one that was left, as whoever
// switched had them; after a jump rdi is zero.
//
// rbp is saved by hand: g++ does not take it in a clobber list. The jump is a jump and not a `ret`,
// which the return stack would mispredict. Between the load of rsp and the jump the frame
// description of the function does not hold; it is marked so, and a profiler's signal that arrives
// there ends its walk.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <weft/context/native_context.hpp>

#if defined(__CET__) && (__CET__ & 1)
#define WEFT_LANDING "endbr64\n\t"
#else
#define WEFT_LANDING ""
#endif

#if defined(__AVX512F__)
#define WEFT_CLOBBER_AVX512                                                                       \
    , "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24", "xmm25",   \
        "xmm26", "xmm27", "xmm28", "xmm29", "xmm30", "xmm31", "k0", "k1", "k2", "k3", "k4", "k5", \
        "k6", "k7"
#else
#define WEFT_CLOBBER_AVX512
#endif

namespace weft::inline v0::detail {

inline constexpr std::size_t red_zone = 128;
/// At the high end of a stack, of a body that was left once: two words that were read when it
/// began, and an address that it returns to no more. An unwinder looks at that, and ends there; all
/// bodies on a stack have the same, or one that means the same.
inline constexpr std::size_t spent_at_start = 24;

[[gnu::always_inline]] inline registers_on_arrival transfer(
    native_context::registers& from, native_context::registers& to) noexcept {
    // Of this switch, and then of the one that comes here.
    native_context::registers* left = &from;
    native_context::registers* arriving = &to;
    asm volatile(
        "leaq 1f(%%rip), %%rax\n\t"
        "movq %%rsp, 0(%%rdi)\n\t"
        "movq %%rbp, 8(%%rdi)\n\t"
        "movq %%rax, 16(%%rdi)\n\t"
        ".cfi_remember_state\n\t"
        ".cfi_undefined rip\n\t"
        "movq 0(%%rsi), %%rsp\n\t"
        "movq 8(%%rsi), %%rbp\n\t"
        "jmpq *16(%%rsi)\n\t"
        ".cfi_restore_state\n"
        "1:\n\t" WEFT_LANDING
        : "+D"(left), "+S"(arriving)
        :
        : "rax", "rbx", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15",  //
          "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10",
          "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "st", "st(1)", "st(2)", "st(3)", "st(4)",
          "st(5)", "st(6)", "st(7)", "memory", "cc" WEFT_CLOBBER_AVX512);
    return {.mine = arriving, .left = left};
}

[[noreturn, gnu::always_inline]] inline void leap(native_context::registers& to) noexcept {
    asm volatile(
        ".cfi_remember_state\n\t"
        ".cfi_undefined rip\n\t"
        "movq 0(%%rsi), %%rsp\n\t"
        "movq 8(%%rsi), %%rbp\n\t"
        "jmpq *16(%%rsi)\n\t"
        ".cfi_restore_state"
        :
        : "S"(&to), "D"(nullptr)
        : "memory");
    __builtin_unreachable();
}

/// Saves the running computation in `from`, and calls entry(argument) at the high end of a stack.
/// Comes back when the entry returns, or when somebody goes on with `from` before that; then the
/// entry must not return any more.
[[gnu::always_inline]] inline void call_on(native_context::registers& from, void* high,
                                           context_entry entry, void* argument) noexcept {
    native_context::registers* saved = &from;
    asm volatile(
        "leaq 1f(%%rip), %%r8\n\t"
        "movq %%rsp, 0(%%rcx)\n\t"
        "movq %%rbp, 8(%%rcx)\n\t"
        "movq %%r8, 16(%%rcx)\n\t"
        ".cfi_remember_state\n\t"
        ".cfi_undefined rip\n\t"
        "movq %%rdx, %%rsp\n\t"
        "pushq %%rcx\n\t"
        "pushq $0\n\t"  // for the alignment
        "xorl %%ebp, %%ebp\n\t"
        "xorl %%r12d, %%r12d\n\t"  // what nobody uses stays zero, and need not be kept
        "xorl %%r13d, %%r13d\n\t"  // (fiber/leave_swapped_x86_64.S)
        "xorl %%r14d, %%r14d\n\t"
        "xorl %%r15d, %%r15d\n\t"
        "call *%%rax\n\t"
        "movq 8(%%rsp), %%rcx\n\t"
        "movq 0(%%rcx), %%rsp\n\t"
        "movq 8(%%rcx), %%rbp\n\t"
        ".cfi_restore_state\n"
        "1:\n\t" WEFT_LANDING
        : "+c"(saved), "+d"(high), "+a"(entry), "+D"(argument)
        :
        : "rbx", "rsi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15",  //
          "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10",
          "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "st", "st(1)", "st(2)", "st(3)", "st(4)",
          "st(5)", "st(6)", "st(7)", "memory", "cc" WEFT_CLOBBER_AVX512);
}

[[nodiscard]] inline std::uint64_t read_fp_control() noexcept {
    std::uint32_t mxcsr;
    std::uint16_t x87;
    asm volatile("stmxcsr %0\n\tfnstcw %1" : "=m"(mxcsr), "=m"(x87));
    return mxcsr | std::uint64_t{x87} << 32;
}

inline void write_fp_control(std::uint64_t words) noexcept {
    const auto mxcsr = static_cast<std::uint32_t>(words);
    const auto x87 = static_cast<std::uint16_t>(words >> 32);
    asm volatile("ldmxcsr %0\n\tfldcw %1" : : "m"(mxcsr), "m"(x87));
}

/// Whether the processor keeps a shadow stack for this thread. The instruction does nothing where
/// there is none, and leaves the register as it was.
[[nodiscard]] inline bool shadow_stack_is_live() noexcept {
    std::uint64_t pointer = 0;
    asm volatile(".byte 0xf3, 0x48, 0x0f, 0x1e, 0xc8" : "+a"(pointer));  // rdsspq %rax
    return pointer != 0;
}

}  // namespace weft::inline v0::detail
