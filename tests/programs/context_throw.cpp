// context_throw.cpp - throws an exception inside a context, where nobody catches it.
//
//     context_throw native|portable
//
// The handler of std::terminate says whether the stack is still as it was at the throw: "terminate"
// and the functions on it that have names, each on a line. A destructor that ran says "unwound".
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/context/context.hpp>

#include <dlfcn.h>
#include <execinfo.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string_view>
#include <vector>

namespace {

struct guard {
    ~guard() { std::puts("unwound"); }
};

[[noreturn]] void report_and_abort() {
    void* addresses[64];
    const int count = ::backtrace(addresses, 64);
    std::puts(std::current_exception() != nullptr ? "terminate" : "terminate without exception");
    for (int i = 0; i < count; ++i) {
        Dl_info info{};
        const bool known = ::dladdr(static_cast<char*>(addresses[i]) - 1, &info) != 0;
        if (known && info.dli_sname != nullptr) std::puts(info.dli_sname);
    }
    std::printf("end after %s\n", count < 64 ? "fewer than 64 frames" : "too many frames");
    std::fflush(stdout);
    std::abort();
}

}  // namespace

extern "C" {

[[gnu::noinline]] void weft_test_thrower(int depth) {
    const guard in_each_frame;
    asm volatile("" : "+r"(depth));  // no copy of this function, without its name, for some depth
    if (depth == 0) throw std::runtime_error("nobody catches this");
    weft_test_thrower(depth - 1);
}

[[gnu::noinline]] void weft_test_body(void*) {
    const guard here_too;
    weft_test_thrower(3);
}

}  // extern "C"

template <class Context>
static void run() {
    std::vector<std::byte> stack(std::size_t{256} * 1024);
    Context here;
    Context there = Context::make(stack, &weft_test_body, nullptr);
    try {
        Context::swap(here, there);
    } catch (...) { std::puts("caught on another stack"); }
}

int main(int argc, char** argv) {
    std::set_terminate(&report_and_abort);
    if (argc == 2 && std::string_view(argv[1]) == "portable") {
        run<weft::portable_context>();
    } else {
        run<weft::context>();
    }
}
