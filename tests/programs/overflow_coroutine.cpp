// overflow_coroutine.cpp - overflows the stack of a coroutine called 'parser'.
//
//     overflow_coroutine own|ucontext|thread|swapped|elsewhere|inner|outer WAY
//
// The first word is the back end, or where a coroutine of the default one runs: in another thread,
// inside another coroutine, outside of one that yielded. WAY is recursion, frame (a large one),
// alloca, skip (a touch of memory far below, with nothing between), end (the same, as far below
// the end of the stack as a frame of 96 KiB reaches there), or null (no overflow, but a null
// pointer). Before that the body says "body at ADDRESS", an address on its stack. Stacks of others
// lie on both sides of its own.
//
// SPDX-License-Identifier: Apache-2.0
#include <alloca.h>
#include <pthread.h>

#include <cstdio>
#include <string_view>
#include <thread>

#include <weft/base/thread_block.hpp>
#include <weft/coroutine/coroutine.hpp>
#include <weft/coroutine/shared_stack.hpp>
#include <weft/stack/stack_depot.hpp>

#include "program_support.hpp"

namespace {

constexpr std::size_t kibibyte = 1024;

std::string_view way;

template <std::size_t Size>
[[gnu::noinline]] void take_large_frame() {
    volatile char frame[Size];
    asm volatile("" : : "r"(frame) : "memory");  // all of it may be used
    frame[0] = 1;
}

// A frame of 96 KiB where stacks have 64; where they are larger, so is it.
void take_frame_for(std::size_t stack_size) {
    if (stack_size <= 64 * kibibyte)
        take_large_frame<96 * kibibyte>();
    else if (stack_size <= 128 * kibibyte)
        take_large_frame<160 * kibibyte>();
    else
        take_large_frame<288 * kibibyte>();
}

[[gnu::noinline]] void take_alloca(std::size_t size) {
    auto* const memory = static_cast<volatile char*>(alloca(size));
    memory[0] = 1;
}

// Of the stack that this runs on: a thread's, or one of the depot's.
std::size_t size_of_stack(const char* here) {
    pthread_attr_t attributes;
    void* low = nullptr;
    std::size_t size = 0;
    weft_test::require(::pthread_getattr_np(::pthread_self(), &attributes) == 0);
    weft_test::require(::pthread_attr_getstack(&attributes, &low, &size) == 0);
    ::pthread_attr_destroy(&attributes);
    const bool is_on_it = here >= low && here < static_cast<char*>(low) + size;
    return is_on_it ? size : weft::stack_depot::size_classes()[1];
}

void run_out_of_stack() {
    weft_test::say_where();
    auto* const here = static_cast<char*>(__builtin_frame_address(0));
    const std::size_t size = size_of_stack(here);
    if (way == "recursion") weft_test::recurse();
    if (way == "frame") take_frame_for(size);
    if (way == "alloca") take_alloca(size + 32 * kibibyte);
    if (way == "skip") *static_cast<volatile char*>(here - size - 32 * kibibyte) = 1;
    if (way == "end") {
        const weft::detail::activity& running =
            *weft::detail::innermost_activity(weft::detail::this_thread_block());
        *reinterpret_cast<volatile char*>(running.stack_low - 96 * kibibyte) = 1;
    }
    if (way == "null") {
        volatile char* nothing = nullptr;
        asm volatile("" : "+r"(nothing));  // what is null is not known
        *nothing = 1;
    }
}

template <class Coroutine>
void run(weft::coroutine_options options = {}) {
    const auto yield = [] { weft::this_coroutine::yield(); };
    options.name = "neighbour";
    Coroutine first(options, yield);
    options.name = "parser";
    Coroutine parser(options, run_out_of_stack);
    options.name = "neighbour";
    Coroutine last(options, yield);
    first.resume();
    last.resume();
    parser.resume();
}

void run_outside_of_one_that_yielded() {
    weft::coroutine parser({.name = "parser"}, [] {
        weft::coroutine other({.name = "other"}, [] { weft::this_coroutine::yield(); });
        other.resume();
        run_out_of_stack();
    });
    parser.resume();
}

}  // namespace

int main(int argc, char** argv) {
    weft_test::require(argc == 3);
    weft_test::dump_no_core();
    const std::string_view where = argv[1];
    way = argv[2];
    if (where == "own") run<weft::coroutine>();
    if (where == "ucontext") run<weft::ucontext_coroutine>();
    if (where == "thread") run<weft::thread_coroutine>();
    if (where == "swapped") {
        const weft::coroutine neighbour([] {});
        weft::shared_stack shared;
        run<weft::swapped_coroutine>({.shared = &shared});
    }
    if (where == "elsewhere") std::thread([] { run<weft::coroutine>(); }).join();
    if (where == "inner") {
        weft::coroutine other({.name = "other"}, [] { run<weft::coroutine>(); });
        other.resume();
    }
    if (where == "outer") run_outside_of_one_that_yielded();
    std::puts("went on");
}
