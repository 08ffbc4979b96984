// overflow_context.cpp - overflows a stack of a depot, on which a context runs that has no name.
//
//     overflow_context alone|below|above
//
// Below and above: from inside a coroutine whose stack is the neighbour of the context's, which
// lies below or above it. The context says "body at ADDRESS", an address on its stack.
//
// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <string_view>
#include <utility>

#include <weft/context/context.hpp>
#include <weft/coroutine/coroutine.hpp>
#include <weft/stack/overflow.hpp>
#include <weft/stack/stack_depot.hpp>

#include "program_support.hpp"

namespace {

void body(void* outside) {
    weft_test::say_where();
    weft_test::recurse();
    weft::context::jump(*static_cast<weft::context*>(outside));
}

void run_context_on(const weft::stack& stack) {
    weft::context outside;
    weft::context inside =
        weft::context::make(stack.span(), body, &outside, {.tsan_fiber = stack.tsan_fiber});
    weft::context::swap(outside, inside);
}

}  // namespace

int main(int argc, char** argv) {
    weft_test::require(argc == 2);
    weft_test::dump_no_core();
    const std::string_view where = argv[1];
    weft::stack_depot depot;
    weft::stack one = depot.take(weft::default_stack_size());
    weft::stack two = depot.take(weft::default_stack_size());
    weft_test::require(one.low < two.low);
    if (where == "alone") {
        weft::detail::prepare_thread_for_overflow();
        run_context_on(one);
    }
    if (where == "above") std::swap(one, two);
    depot.give_back(two);
    weft::coroutine neighbour({.name = "neighbour", .stacks = &depot},
                              [&] { run_context_on(one); });
    neighbour.resume();
    std::puts("went on");
}
