// program_support.hpp - what the programs of tests/programs need besides weft.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <source_location>
#include <span>
#include <string_view>

namespace weft_test {

/// Ends the program with status 1 and names the line, unless the condition holds.
inline void require(bool condition,
                    std::source_location where = std::source_location::current()) noexcept {
    if (condition) return;
    std::fprintf(stderr, "%s:%u: does not hold\n", where.file_name(), where.line());
    std::fflush(nullptr);
    std::_Exit(1);
}

struct program_case {
    std::string_view name;
    void (*run)();
};

/// Runs the case that the one argument of the program names, and says `after` when it came back.
inline int run_case(int argc, char** argv, std::span<const program_case> cases, const char* after) {
    require(argc == 2);
    const std::string_view wanted = argv[1];
    for (const program_case& one : cases) {
        if (one.name != wanted) continue;
        one.run();
        std::puts(after);
        return 0;
    }
    require(false);
    return 1;
}

/// For a program that is meant to die: leaves no core file behind.
inline void dump_no_core() noexcept {
    const rlimit none{0, 0};
    ::setrlimit(RLIMIT_CORE, &none);
}

inline volatile bool perhaps = true;  // the compiler does not know that it stays so

/// Calls itself until there is no stack left.
[[gnu::noinline]] inline int recurse(int depth = 0) {
    volatile char frame[200];
    asm volatile("" : : "r"(frame) : "memory");  // all of it may be used
    frame[0] = static_cast<char>(depth);
    if (perhaps) depth = recurse(depth + 1);
    return depth + frame[0];
}

/// Says "body at ADDRESS", which is the caller's frame.
[[gnu::always_inline]] inline void say_where() {
    std::printf("body at %p\n", __builtin_frame_address(0));
    std::fflush(stdout);
}

}  // namespace weft_test
