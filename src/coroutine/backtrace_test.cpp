// backtrace_test.cpp - backtrace() inside a body shows the body's functions, and ends at its entry.
//
// Whoever resumed it is not among them, however it was entered. What other walkers see of a context
// is in src/context/backtrace_test.cpp.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/coroutine/coroutine.hpp>

#include <algorithm>
#include <vector>

#include "backends.hpp"
#include "backtrace_support.hpp"

using namespace weft_test;
using weft::this_coroutine::yield;

namespace {

// Called by its address, or g++ -O3 would inline it into itself, and have a copy for some depth.
void descend(std::vector<void*>& functions, int depth);
void (*const volatile go_down)(std::vector<void*>&, int) = &descend;

// A call at the end of a function would leave no frame of it.
[[gnu::noinline]] void descend(std::vector<void*>& functions, int depth) {
    if (depth == 0)
        functions = functions_on_the_stack();
    else
        go_down(functions, depth - 1);
    asm volatile("" : : : "memory");
}

template <class Coroutine>
[[gnu::noinline]] void resume(Coroutine& c) {
    c.resume();
    asm volatile("" : : : "memory");
}

// Between the body and its entry are a few functions of ours, below a thread's two of the system's.
template <class Coroutine>
void check_functions(const std::vector<void*>& functions) {
    CHECK(std::ranges::count(functions, reinterpret_cast<void*>(&descend)) == 6);
    CHECK(functions.size() < 6 + 20);
    CHECK(std::ranges::count(functions, reinterpret_cast<void*>(&resume<Coroutine>)) == 0);
}

}  // namespace

BACKEND_TEST("backtrace: ends at the entry of a body that never yields") {
    std::vector<void*> functions;
    Coroutine c(options(), [&] { go_down(functions, 5); });
    resume(c);
    check_functions<Coroutine>(functions);
}

BACKEND_TEST("backtrace: ends at the entry of a body that has yielded") {
    std::vector<void*> functions;
    const auto body = [&] {
        for (int i = 0; i < 3; ++i) {
            go_down(functions, 5);
            yield();
        }
    };
    Coroutine one(options(), body);
    Coroutine other(options(), body);
    for (Coroutine* c : {&one, &one, &other, &one, &other}) {
        functions.clear();
        resume(*c);
        check_functions<Coroutine>(functions);
    }
}

BACKEND_TEST("backtrace: of a body that another resumes shows nothing of that other") {
    std::vector<void*> functions;
    Coroutine inner(options(), [&] { go_down(functions, 5); });
    Coroutine outer(options(), [&] { resume(inner); });
    outer.resume();
    check_functions<Coroutine>(functions);
}
