// coroutine_match.hpp - the match played by two coroutines of weft, on any back end.
//
// One coroutine resumes the other, which yields to it: a switch each. The program's own thread
// stands outside; with the thread back end it sleeps, and the two CPUs belong to the two sides.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <weft/coroutine/coroutine.hpp>

#include "cases/switch/workload.hpp"

namespace bench {

template <class Coroutine>
void play_coroutines(match& m) {
    Coroutine second([&m] {
        std::uint64_t count = 0;
        while (count < m.turns) {
            ++count;
            weft::this_coroutine::yield();
        }
        m.second = count;
    });
    Coroutine first([&m, &second] {
        std::uint64_t count = 0;
        m.begin();
        while (count < m.turns) {
            ++count;
            second.resume();
        }
        second.resume();  // so that it can end, too
        m.end();
        m.first = count;
    });
    first.resume();
    require(first.done() && second.done(), "both coroutines have ended");
}

/// Two coroutines that a third party resumes in turn: four switches for a turn of each.
template <class Coroutine>
void play_in_turn(match& m, const weft::coroutine_options& options = {}) {
    const auto side = [turns = m.turns](std::uint64_t& counted) {
        return [turns, &counted] {
            std::uint64_t count = 0;
            while (count < turns) {
                ++count;
                weft::this_coroutine::yield();
            }
            counted = count;
        };
    };
    Coroutine first(options, side(m.first));
    Coroutine second(options, side(m.second));
    m.begin();
    while (!second.done()) {
        first.resume();
        second.resume();
    }
    m.end();
    require(first.done(), "both coroutines have ended");
}

}  // namespace bench
