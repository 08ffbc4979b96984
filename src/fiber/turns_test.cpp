// turns_test.cpp - fibers that only yield: each has its turn, however many there are.
//
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include <weft/exec/pool.hpp>

#include "loops.hpp"

using namespace weft;

// Every so many dispatches the loop looks around: that must not cost anybody its turn. With 32 or
// 61 fibers it would be the same one's each time.
MATRIX_TEST("turns: however many yield, each has its turn, in order") {
    for (std::size_t count : {1U, 2U, 3U, 30U, 31U, 32U, 60U, 61U, 62U, 64U}) {
        std::vector<std::size_t> turns;
        for (std::size_t i = 0; i < count; ++i)
            spawn([&turns, i] {
                for (int n = 0; n < 70; ++n) {
                    turns.push_back(i);
                    yield();
                }
            });
        run();
        REQUIRE(turns.size() == 70 * count);
        for (std::size_t i = 0; i < turns.size(); ++i) REQUIRE(turns[i] == i % count);
    }
}

WEFT_TEST("turns: however many yield on a pool of one worker, each has its turn") {
    for (const stack_kind kind : {stack_kind::own, stack_kind::swapped})
        for (std::size_t count = 55; count <= 65; ++count) {
            pool p({.workers = 1});
            std::vector<long> turns(count);
            std::size_t reached = 0;
            go(p, [&] {  // from inside, so that none begins before all are there
                for (std::size_t i = 0; i < count; ++i)
                    go({.kind = kind}, [&, i] {
                        for (; reached < count && turns[i] < 1000; yield())
                            if (++turns[i] == 20) ++reached;
                    });
            });
            p.drain();
            CHECK(*std::ranges::max_element(turns) < 60);
        }
}
