// swap_x86_64.S - a switch that is the last thing a function does (see swap_and_return() in
// context/switch.hpp).
//
// The function that ends in it has no frame: on top of the stack is the address of whoever called
// that function, and above it what the callee has to keep.
//
//      context             the stack it describes
//      +---------------+   :                      :  high addresses
//    0 | rsp           |   | frame of the caller  |
//    8 | rbp           |   | address in the caller|
//   16 | address of 1: |   | rbx, r12 ... r15     |
//      +---------------+   +----------------------+  <- rsp
//
// On arrival rdi points to the context that was left, or is zero after a jump; that is returned.
// The last step is a jump and not a `ret`: the processor's stack of return addresses is the other
// side's (weft/context/call_switching.hpp). Nearly always the other side left by this very
// function: that is asked for, and so it goes on at 1 without a jump.
//
// SPDX-License-Identifier: Apache-2.0
#include <cet.h>

#include "context/frame_x86_64.inc"

    .text
    .globl  weft_v0_swap_and_return
    .type   weft_v0_swap_and_return, @function
    .p2align 6
weft_v0_swap_and_return:
    .cfi_startproc
    _CET_ENDBR
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
    movq    %rdi, %rax
    back    r15
    back    r14
    back    r13
    back    r12
    back    rbx
    popq    %rcx
    .cfi_adjust_cfa_offset -8
    .cfi_register rip, rcx
    notrack jmpq *%rcx  // as a `ret`: what is returned to has no landing pad
    .cfi_restore_state
    .cfi_undefined rip
2:  jmpq    *16(%rsi)
    .cfi_endproc
    .size   weft_v0_swap_and_return, .-weft_v0_swap_and_return
    .section .note.GNU-stack, "", @progbits
