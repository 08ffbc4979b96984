// call_x86_64.S - calling a function that switches (see weft/context/call_switching.hpp).
//
// SPDX-License-Identifier: Apache-2.0
#include <cet.h>

    .text
    .globl  weft_call_switching
    .type   weft_call_switching, @function
    .p2align 4
// rdi, rsi: arguments of the function in rdx
weft_call_switching:
    .cfi_startproc
    _CET_ENDBR
    subq    $8, %rsp
    .cfi_adjust_cfa_offset 8
    call    *%rdx
    addq    $8, %rsp
    .cfi_adjust_cfa_offset -8
    popq    %rcx
    .cfi_adjust_cfa_offset -8
    .cfi_register rip, rcx
    jmpq    *%rcx
    .cfi_endproc
    .size   weft_call_switching, .-weft_call_switching

    .globl  weft_call_waiting
    .type   weft_call_waiting, @function
    .p2align 4
// rdi, rsi, rdx, rcx: arguments of the function in r8, whose result stays in rax
weft_call_waiting:
    .cfi_startproc
    _CET_ENDBR
    subq    $8, %rsp
    .cfi_adjust_cfa_offset 8
    call    *%r8
    addq    $8, %rsp
    .cfi_adjust_cfa_offset -8
    popq    %rcx
    .cfi_adjust_cfa_offset -8
    .cfi_register rip, rcx
    jmpq    *%rcx
    .cfi_endproc
    .size   weft_call_waiting, .-weft_call_waiting
    .section .note.GNU-stack, "", @progbits
