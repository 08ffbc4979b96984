// overflow_fiber.cpp - overflows the stack of a fiber called 'parser'.
//
//     overflow_fiber own|ucontext|thread|swapped|pool|switched|inherited
//
// The word is the kind of the fiber, which runs on a loop, or how one of the default kind comes to
// run: on a worker of a pool, by a switch straight from another that yielded, on the stack of
// others that have ended. Before it overflows it says "body at ADDRESS", an address on its stack.
//
// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <string_view>

#include <weft/exec/loop.hpp>
#include <weft/exec/pool.hpp>
#include <weft/fiber/go.hpp>
#include <weft/fiber/this_fiber.hpp>

#include "program_support.hpp"

using weft::stack_kind;

namespace {

void run_out_of_stack() {
    weft_test::say_where();
    weft_test::recurse();
}

void run_on_loop(stack_kind kind) {
    weft::loop loop;
    weft::go(loop, {.name = "parser", .kind = kind}, run_out_of_stack);
    loop.run();
}

void run_on_pool() {
    weft::pool pool({.workers = 2});
    weft::go(pool, {.name = "parser"}, run_out_of_stack);
    pool.drain();
}

// Both have begun when the other one yields for the second time.
void run_after_a_switch() {
    weft::loop loop;
    weft::go(loop, {.name = "parser"}, [] {
        weft::yield();
        run_out_of_stack();
    });
    weft::go(loop, {.name = "other"}, [] {
        for (int i = 0; i < 3; ++i) weft::yield();
    });
    loop.run();
}

// One after the other goes on where the last has ended.
void run_on_inherited_stack() {
    weft::loop loop;
    for (int i = 0; i < 5; ++i) weft::go(loop, {.name = "other"}, [] {});
    weft::go(loop, {.name = "parser"}, run_out_of_stack);
    loop.run();
}

}  // namespace

int main(int argc, char** argv) {
    weft_test::require(argc == 2);
    weft_test::dump_no_core();
    const std::string_view where = argv[1];
    if (where == "own") run_on_loop(stack_kind::own);
    if (where == "ucontext") run_on_loop(stack_kind::ucontext);
    if (where == "thread") run_on_loop(stack_kind::thread);
    if (where == "swapped") run_on_loop(stack_kind::swapped);
    if (where == "pool") run_on_pool();
    if (where == "switched") run_after_a_switch();
    if (where == "inherited") run_on_inherited_stack();
    std::puts("went on");
}
