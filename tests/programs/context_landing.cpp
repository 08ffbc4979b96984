// context_landing.cpp - contexts in code whose every indirect branch must meet a landing pad.
//
// aarch64 only. The program has its own code checked so (PROT_BTI), which the dynamic linker does
// only if all of a program, the C library's first object included, was built for it. Says
// "unchecked" where nobody checks, and "right" if all switches and a throw went well.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/context/context.hpp>

#include <cstdio>

#if defined(__aarch64__)

#include <link.h>
#include <sys/mman.h>

#include <csetjmp>
#include <csignal>
#include <cstdint>
#include <cstdlib>

namespace {

constexpr int checked_branches = 0x10;  // PROT_BTI

int check_own_code(dl_phdr_info* object, std::size_t, void*) {
    constexpr std::uintptr_t page = 4096;
    for (int i = 0; i < object->dlpi_phnum; ++i) {
        const auto& segment = object->dlpi_phdr[i];
        if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0) continue;
        const std::uintptr_t low = (object->dlpi_addr + segment.p_vaddr) / page * page;
        const std::uintptr_t high = object->dlpi_addr + segment.p_vaddr + segment.p_memsz;
        if (::mprotect(reinterpret_cast<void*>(low), high - low,
                       PROT_READ | PROT_EXEC | checked_branches) != 0)
            return 2;
    }
    return 1;  // the program itself comes first
}

std::jmp_buf before_the_branch;

// To an instruction that is no landing pad.
bool bad_branch_is_noticed() {
    std::signal(SIGILL, [](int) { std::longjmp(before_the_branch, 1); });
    if (setjmp(before_the_branch) != 0) return true;
    asm volatile("adr x9, 1f\n\tbr x9\n\t1: nop" : : : "x9");
    return false;
}

weft::context outside;
weft::context inside;
int turns = 0;

void take_turns(void*) {
    for (;;) {
        try {
            throw ++turns;
        } catch (int) { weft::context::swap(inside, outside); }
    }
}

}  // namespace

int main() {
    const bool checked =
        ::dl_iterate_phdr(&check_own_code, nullptr) == 1 && bad_branch_is_noticed();
    std::signal(SIGILL, SIG_DFL);
    alignas(16) static std::byte memory[256 * 1024];
    inside = weft::context::make(memory, &take_turns, nullptr);
    for (int i = 0; i < 100; ++i) weft::context::swap(outside, inside);
    std::puts(turns != 100 ? "wrong" : checked ? "right" : "unchecked");
    std::fflush(stdout);
    std::_Exit(turns == 100 ? 0 : 1);  // what runs at the end is the C library's, without pads
}

#else

int main() { std::puts("unchecked"); }

#endif
