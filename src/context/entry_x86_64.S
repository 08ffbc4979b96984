// entry_x86_64.S - the first instructions of a new context (see switch_x86_64.hpp).
//
// Arrives with rsp at {entry, argument}. The return address is marked undefined and the frame
// pointer is zero: debuggers, profilers and the unwinder of an exception end their walk here.
//
// SPDX-License-Identifier: Apache-2.0
#include <cet.h>

    .text
    .globl  weft_v0_context_entry
    .hidden weft_v0_context_entry
    .type   weft_v0_context_entry, @function
    .p2align 4
weft_v0_context_entry:
    .cfi_startproc
    .cfi_undefined rip
    _CET_ENDBR
    popq    %rax
    popq    %rdi
    xorl    %ebp, %ebp
    call    *%rax
    ud2
    .cfi_endproc
    .size   weft_v0_context_entry, .-weft_v0_context_entry
    .section .note.GNU-stack, "", @progbits
