// entry_aarch64.S - the first instructions of a new context (see switch_aarch64.hpp).
//
// Arrives with sp at {entry, argument}. The return address is marked undefined and the frame
// pointer is zero: debuggers, profilers and the unwinder of an exception end their walk here.
//
// SPDX-License-Identifier: Apache-2.0

    .text
    .globl  weft_v0_context_entry
    .hidden weft_v0_context_entry
    .type   weft_v0_context_entry, %function
    .p2align 4
weft_v0_context_entry:
    .cfi_startproc
    .cfi_undefined x30
    hint    #34                     // bti c
    ldp     x9, x0, [sp], #16
    mov     x29, xzr
    mov     x30, xzr
    blr     x9
    brk     #0
    .cfi_endproc
    .size   weft_v0_context_entry, .-weft_v0_context_entry
    .section .note.GNU-stack, "", %progbits

// What a compiler says of each object: every indirect branch into it meets a landing pad (BTI), and
// the return address is signed where it is stored (PAC; here it never is).
#if defined(__ARM_FEATURE_BTI_DEFAULT)
    .section .note.gnu.property, "a"
    .p2align 3
    .word   4, 16, 5                // of the name, of the description, NT_GNU_PROPERTY_TYPE_0
    .asciz  "GNU"
    .word   0xc0000000, 4, 3, 0     // GNU_PROPERTY_AARCH64_FEATURE_1_AND: BTI and PAC; padding
#endif
