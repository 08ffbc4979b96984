// leave_swapped_x86_64.S - a swapped fiber leaves, with as few bytes on its stack as can be (see
// leave_swapped() in leaving.hpp).
//
// What lies on the stack is kept while the fiber is parked, so nothing does but what its caller
// expects to find again. A function that ends in a jump here has no frame. If that one was called
// through weft_v0_call_waiting, neither has this: all there is to do is to go back to its caller,
// so we do that in its stead. (In builds that are not optimised there is a frame between, and it
// stays.)
//
//      context             the stack it describes
//      +---------------+   :                      :  high addresses
//    0 | rsp           |   | frame of who waits   |
//    8 | rbp           |   | address in who waits |
//   16 | address of 1: |   | rbx                  |
//      +---------------+   | r12 ... r15          |  if one of them is not zero
//                          +----------------------+  <- rsp
//
// The four begin as zero (call_on() in context/switch_x86_64.hpp), and small functions never use
// them: so they are looked at, and where the fiber goes on says which of the two frames it has.
//
// On arrival the one that left is seen to, by a call; what that returns is returned. The last step
// is a jump and not a `ret`: the call that it would match was another's (docs/switch.md).
//
// SPDX-License-Identifier: Apache-2.0
#include <cet.h>


// A register that a callee has to keep goes to the stack and comes back, and unwinders know it.
    .macro  keep register
    pushq   %\register
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset \register, 0
    .endm
    .macro  back register
    popq    %\register
    .cfi_adjust_cfa_offset -8
    .cfi_restore \register
    .endm

    .macro  leave_and_arrive
    leaq    1f(%rip), %rax
    movq    %rsp, 0(%rdi)
    movq    %rbp, 8(%rdi)
    movq    %rax, 16(%rdi)
    .cfi_remember_state
    .cfi_undefined rip
    movq    0(%rsi), %rsp
    movq    8(%rsi), %rbp
    jmpq    *16(%rsi)
    .cfi_restore_state
1:  _CET_ENDBR
    .endm
    .macro  jump_back
    back    rbx
    popq    %rcx
    .cfi_adjust_cfa_offset -8
    .cfi_register rip, rcx
    notrack jmpq *%rcx  // as a `ret`: what is returned to has no landing pad
    .endm

    .text
    .globl  weft_v0_leave_swapped
    .hidden weft_v0_leave_swapped
    .hidden weft_v0_arrive_swapped
    .hidden weft_v0_call_waiting_returns
    .type   weft_v0_leave_swapped, @function
    .p2align 6
weft_v0_leave_swapped:
    .cfi_startproc
    _CET_ENDBR
    leaq    weft_v0_call_waiting_returns(%rip), %rax
    cmpq    %rax, (%rsp)
    jne     2f
    addq    $16, %rsp               // the next word is an address to return to, too
2:  keep    rbx
    movq    %r12, %rax
    orq     %r13, %rax
    orq     %r14, %rax
    orq     %r15, %rax
    jnz     3f
    .cfi_remember_state
    leave_and_arrive
    xorl    %r12d, %r12d
    xorl    %r13d, %r13d
    xorl    %r14d, %r14d
    xorl    %r15d, %r15d
    call    weft_v0_arrive_swapped     // aligned: the address and one register, or five
    jump_back
    .cfi_restore_state
3:  keep    r12
    keep    r13
    keep    r14
    keep    r15
    leave_and_arrive
    call    weft_v0_arrive_swapped
    back    r15
    back    r14
    back    r13
    back    r12
    jump_back
    .cfi_endproc
    .size   weft_v0_leave_swapped, .-weft_v0_leave_swapped
    .section .note.GNU-stack, "", @progbits
