// context_abort.cpp - aborts deep inside a context, for a debugger to look at.
//
//     context_abort native|portable
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/context/context.hpp>

#include <cstdlib>
#include <string_view>
#include <vector>

static volatile bool perhaps = true;  // the compiler does not know that this always aborts

// Names that a debugger shows, and a test looks for.
extern "C" {

// Each call is followed by something, for a call at the end would leave no frame.
[[gnu::noinline]] void weft_test_deep_inside(int depth) {
    asm volatile("" : "+r"(depth));  // no copy of this function, without its name, for some depth
    if (depth != 0)
        weft_test_deep_inside(depth - 1);
    else if (perhaps)
        std::abort();
    asm volatile("" : : : "memory");
}

[[gnu::noinline]] void weft_test_body(void*) {
    weft_test_deep_inside(3);
    asm volatile("" : : : "memory");
}

}  // extern "C"

template <class Context>
static void run() {
    std::vector<std::byte> stack(std::size_t{256} * 1024);
    Context here;
    Context there = Context::make(stack, &weft_test_body, nullptr);
    Context::swap(here, there);
}

int main(int argc, char** argv) {
    if (argc == 2 && std::string_view(argv[1]) == "portable") {
        run<weft::portable_context>();
    } else {
        run<weft::context>();
    }
}
