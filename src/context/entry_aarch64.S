// entry_aarch64.S - the first instructions of a new context (see switch_aarch64.hpp).
//
// Arrives with sp at {entry, argument}. The return address is marked undefined and the frame
// pointer is zero: debuggers, profilers and the unwinder of an exception end their walk here.
//
// SPDX-License-Identifier: Apache-2.0

    .text
    .globl  weft_context_entry
    .hidden weft_context_entry
    .type   weft_context_entry, %function
    .p2align 4
weft_context_entry:
    .cfi_startproc
    .cfi_undefined x30
    hint    #34                     // bti c
    ldp     x9, x0, [sp], #16
    mov     x29, xzr
    mov     x30, xzr
    blr     x9
    brk     #0
    .cfi_endproc
    .size   weft_context_entry, .-weft_context_entry
    .section .note.GNU-stack, "", %progbits
