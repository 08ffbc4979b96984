// swap_by_jump_x86_64.S - a switch that is jumped to (see weft/context/swap_by_jump.hpp).
//
// It is no function: nobody calls it. rax has the address at which the one who leaves goes on, and
// what lies below that one's stack pointer is his for 128 bytes more, the red zone. So that is
// stepped over, and then the stack gets what a call, and a callee, would have put there:
//
//      context             the stack it describes
//      +---------------+   :                      :  high addresses
//    0 | rsp           |   | frame of who leaves  |
//    8 | rbp           |   +----------------------+  <- rsp of who leaves
//   16 | address of 1: |   | 128 bytes red zone   |
//      +---------------+   | where he goes on     |
//                          | rbx, r12 ... r15     |
//                          +----------------------+  <- rsp
//
// On arrival rdi points to the context that was left, or is zero after a jump; it stays there.
// Nearly always the other side left by this very place: that is asked for, and so it goes on at 1
// without a jump.
//
// SPDX-License-Identifier: Apache-2.0
#include <cet.h>

#include "context/frame_x86_64.inc"

    .text
    .globl  weft_v0_swap_by_jump
    .type   weft_v0_swap_by_jump, @function
    .p2align 6
weft_v0_swap_by_jump:
    .cfi_startproc
    .cfi_def_cfa rsp, 0
    .cfi_register rip, rax
    _CET_ENDBR
    leaq    -128(%rsp), %rsp
    .cfi_adjust_cfa_offset 128
    pushq   %rax
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset rip, 0
    keep    rbx
    keep    r12
    keep    r13
    keep    r14
    keep    r15
    leaq    1f(%rip), %rax
    movq    %rsp, 0(%rdi)
    movq    %rbp, 8(%rdi)
    movq    %rax, 16(%rdi)
    .cfi_remember_state
    .cfi_undefined rip
    movq    0(%rsi), %rsp
    movq    8(%rsi), %rbp
    cmpq    %rax, 16(%rsi)
    jne     2f
    .cfi_restore_state
    .cfi_remember_state
1:  _CET_ENDBR
    back    r15
    back    r14
    back    r13
    back    r12
    back    rbx
    popq    %rcx
    .cfi_adjust_cfa_offset -8
    .cfi_register rip, rcx
    leaq    128(%rsp), %rsp
    .cfi_adjust_cfa_offset -128
    notrack jmpq *%rcx  // as a `ret`: where he goes on is no landing pad
    .cfi_restore_state
    .cfi_undefined rip
2:  jmpq    *16(%rsi)
    .cfi_endproc
    .size   weft_v0_swap_by_jump, .-weft_v0_swap_by_jump
    .section .note.GNU-stack, "", @progbits
