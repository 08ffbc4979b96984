// ucontext.cpp - weft's coroutines on the ucontext back end, and swapcontext by itself.
//
// SPDX-License-Identifier: Apache-2.0
#include <ucontext.h>

#include <vector>

#include "cases/switch/coroutine_match.hpp"

namespace {

struct sides {
    ucontext_t first;
    ucontext_t second;
    bench::match* match;
};

sides* playing = nullptr;  // makecontext passes ints only

void second_side() {
    sides& both = *playing;
    std::uint64_t count = 0;
    while (count < both.match->turns) {
        ++count;
        ::swapcontext(&both.second, &both.first);
    }
    both.match->second = count;  // uc_link leads back to the first
}

void play_bare(bench::match& m) {
    std::vector<std::byte> stack(64 * 1024);
    sides both{};
    both.match = &m;
    playing = &both;
    bench::require(::getcontext(&both.second) == 0, "getcontext");
    both.second.uc_stack.ss_sp = stack.data();
    both.second.uc_stack.ss_size = stack.size();
    both.second.uc_link = &both.first;
    ::makecontext(&both.second, second_side, 0);
    std::uint64_t count = 0;
    m.begin();
    while (count < m.turns) {
        ++count;
        ::swapcontext(&both.first, &both.second);
    }
    ::swapcontext(&both.first, &both.second);
    m.end();
    m.first = count;
}

}  // namespace

int main(int argc, char** argv) {
    const bench::settings how = bench::read_arguments(argc, argv);
    bench::play_row(how, "weft ucontext_coroutine, resume and yield", 200'000,
                    bench::play_coroutines<weft::ucontext_coroutine>);
    bench::play_row(how, "swapcontext", 200'000, play_bare);
}
