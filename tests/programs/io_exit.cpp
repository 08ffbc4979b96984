// io_exit.cpp - a program that ends while the side pool has threads.
//
//     io_exit idle       they are idle
//     io_exit running    one is in a call that never ends
//     io_exit forked     a child that was forked off calls exit, and has none of them
//     io_exit inside     exit is called by one of them
//
// SPDX-License-Identifier: Apache-2.0
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <semaphore>
#include <string_view>

#include <weft/weft.hpp>

#include "program_support.hpp"

using namespace weft;
using weft_test::require;

// To look for leaks at its end a forked child would take the locks of ASan's allocator, of which
// another thread may have held one when it was forked off.
extern "C" const char* __asan_default_options() { return "detect_leaks=0"; }

int main(int, char** argv) {
    const std::string_view how = argv[1];
    static pool* const p = new pool({.workers = 2});  // lives to the end, as its fibers do
    static std::counting_semaphore<8> begun{0};
    for (int i = 0; i < 4; ++i) go(*p, [] { io::blocking([] { begun.release(); }); });
    for (int i = 0; i < 4; ++i) begun.acquire();
    p->drain();
    if (how == "running") {
        go(*p, [] {
            io::blocking([] {
                begun.release();
                for (;;) ::pause();
            });
        });
        begun.acquire();
    }
    if (how == "inside") go(*p, [] { io::blocking([] { std::exit(0); }); });
    if (how == "inside")
        for (;;) ::pause();
    if (how == "forked") {
        const pid_t child = ::fork();
        if (child == 0) std::exit(3);
        int status = 0;
        require(::waitpid(child, &status, 0) == child);
        require(WIFEXITED(status) && WEXITSTATUS(status) == 3);
    }
    std::exit(0);
}
