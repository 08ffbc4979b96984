// call_x86_64.S - calling a function that switches (see weft/context/call_switching.hpp).
//
// SPDX-License-Identifier: Apache-2.0
#include <cet.h>

// The arguments of the function stay in their registers, and its result in rax. Where it returns to
// has a name: one that leaves for long may look whether it was called from here, and drop the two
// words that this frame has (fiber/leave_swapped_x86_64.S).
    .macro  call_and_jump_back name, function
    .globl  \name
    .type   \name, @function
    .p2align 6
\name:
    .cfi_startproc
    _CET_ENDBR
    subq    $8, %rsp
    .cfi_adjust_cfa_offset 8
    call    *\function
    .globl  \name\()_returns
    .hidden \name\()_returns
\name\()_returns:
    addq    $8, %rsp
    .cfi_adjust_cfa_offset -8
    popq    %rcx
    .cfi_adjust_cfa_offset -8
    .cfi_register rip, rcx
    notrack jmpq *%rcx  // as a `ret`: what is returned to has no landing pad
    .cfi_endproc
    .size   \name, .-\name
    .endm

    .text
    call_and_jump_back weft_v0_call_switching, %rdx
    call_and_jump_back weft_v0_call_waiting, %r8
    .section .note.GNU-stack, "", @progbits
