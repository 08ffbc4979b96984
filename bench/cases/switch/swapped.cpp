// swapped.cpp - coroutines that share one stack: left in place, and copied at every turn.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/coroutine/shared_stack.hpp>

#include "cases/switch/coroutine_match.hpp"

namespace {

// Nobody else uses the stack, so nothing is copied.
void play_in_place(bench::match& m) {
    weft::shared_stack shared;
    weft::swapped_coroutine second({.shared = &shared}, [&m] {
        std::uint64_t count = 0;
        while (count < m.turns) {
            ++count;
            weft::this_coroutine::yield();
        }
        m.second = count;
    });
    std::uint64_t count = 0;
    m.begin();
    while (count < m.turns) {
        ++count;
        second.resume();
    }
    second.resume();
    m.end();
    m.first = count;
    bench::require(shared.counters().in_place == m.turns && shared.counters().copies_out == 0,
                   "one swapped coroutine stays in place");
}

// Each has to make room for the other: a copy out and a copy in for every visit.
void play_copied(bench::match& m) {
    weft::shared_stack shared;
    bench::play_in_turn<weft::swapped_coroutine>(m, {.shared = &shared});
    bench::require(shared.counters().in_place == 0 && shared.counters().copies_in >= 2 * m.turns,
                   "two swapped coroutines are copied at every turn");
}

}  // namespace

int main(int argc, char** argv) {
    const bench::settings how = bench::read_arguments(argc, argv);
    bench::play_row(how, "weft swapped_coroutine, in place", 5'000'000, play_in_place);
    bench::play_row(how, "weft swapped_coroutines, two in turn (copied)", 500'000, play_copied, 4);
}
