// swapped_failures.cpp - swapped fibers, and no memory to copy one of them out for another.
//
//     swapped_failures CASE
//
// The program has its own operator new, which fails from some point on. By then more fibers wait
// than their worker has shared stacks, so whoever goes on needs the bytes of another to be copied.
// It is meant to die, with a line that says of what; TSan has an operator new of its own, so there
// it says "not here".
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/weft.hpp>

#include <cstdio>
#include <cstdlib>
#include <new>

#include "program_support.hpp"

#if !WEFT_TSAN

namespace {
thread_local bool is_empty = false;  // of the worker alone
}

void* operator new(std::size_t size) {
    if (!is_empty)
        if (void* memory = std::malloc(size)) return memory;
    throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace {

using namespace weft;

constexpr int several = 40;  // more than a worker has shared stacks

// All on one thread, also those who are started.
void crowd() {
    for (int i = 0; i < several; ++i)
        go({.name = "one of many", .kind = stack_kind::swapped}, [i] {
            yield();
            if (i == 0) is_empty = true;
            for (int n = 0; n < 3; ++n) yield();
        });
}

void on_a_loop() {
    loop s;
    go(s, &crowd);
    s.run();
}

void on_a_pool() {
    pool p({.workers = 1});
    go(p, &crowd);
    p.drain();
}

constexpr weft_test::program_case cases[] = {{"loop", &on_a_loop}, {"pool", &on_a_pool}};

}  // namespace

int main(int argc, char** argv) {
    weft_test::dump_no_core();
    return weft_test::run_case(argc, argv, cases, "nobody needed memory");
}

#else

int main() { std::puts("not here: TSan has its own operator new"); }

#endif
