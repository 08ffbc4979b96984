// turns_test.cpp - fibers that only yield: each has its turn, however many there are.
//
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include <weft/exec/pool.hpp>

#include "loops.hpp"

using namespace weft;
using namespace std::chrono_literals;

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

// One that yields takes the last place and gives the first away in one step, if both are alike.
LOOP_TEST("turns: of fibers of several kinds that yield, each has its turn, in order") {
    using enum stack_kind;
    constexpr stack_kind kinds[] = {own, own, swapped, own, ucontext, own, own};
    std::vector<std::size_t> turns;
    for (std::size_t i = 0; i < std::size(kinds); ++i)
        go(s, {.kind = kinds[i]}, [&turns, i] {
            for (int n = 0; n < 70; ++n) {
                turns.push_back(i);
                yield();
            }
        });
    run();
    REQUIRE(turns.size() == 70 * std::size(kinds));
    for (std::size_t i = 0; i < turns.size(); ++i) REQUIRE(turns[i] == i % std::size(kinds));
}

LOOP_TEST("turns: one that yields lets the one in the slot run first, and then the queue") {
    loop slotted({.external_wakes = false, .wake_slot = true});
    std::string turns;
    fiber_handle woken;
    go(slotted, [&] {
        woken = this_fiber::handle();
        for (int n = 0; n < 3; ++n) {
            park();
            turns += 'b';
        }
    });
    go(slotted, [&] {
        for (int n = 0; n < 3; ++n) {
            unpark(woken);
            turns += 'a';
            yield();
        }
    });
    go(slotted, [&] {
        for (int n = 0; n < 3; ++n) {
            turns += 'c';
            yield();
        }
    });
    CHECK(!slotted.run());
    CHECK(turns == "abcabcabc");
}

// The queue changes its ways with its length: order, and nobody lost, over all lengths.
LOOP_TEST("turns: a queue that grows long and short again keeps its order") {
    std::vector<std::size_t> turns;
    std::size_t next = 0;
    const auto turn = [&turns](std::size_t i) { return [&turns, i] { turns.push_back(i); }; };
    for (const std::size_t length :
         {9U, 255U, 256U, 511U, 512U, 513U, 700U, 1535U, 1536U, 1537U, 2500U, 300U, 600U}) {
        while (next - turns.size() < length) spawn(turn(next++));
        while (next - turns.size() > length / 3) {
            REQUIRE(s.step());
            if (next % 7 == 0) spawn(turn(next++));
        }
    }
    run();
    REQUIRE(turns.size() == next);
    for (std::size_t i = 0; i < turns.size(); ++i) REQUIRE(turns[i] == i);
}

namespace {

// Two wake each other through the slot, each turn takes `each` by the clock, and as many others as
// told do nothing but yield. How many turns the two have from one round of those to the next.
long turns_in_a_row(std::size_t others, std::chrono::nanoseconds each) {
    manual_clock clock;
    loop slotted({.external_wakes = false, .wake_slot = true, .clock = &clock});
    long turns = 0;
    std::vector<long> rounds;  // the turns when each of them began
    const auto is_over = [&] { return rounds.size() == 4 || turns == 10'000; };
    fiber_handle pair[2];
    for (std::size_t i = 0; i < 2; ++i)
        go(slotted, [&, i] {
            pair[i] = this_fiber::handle();
            yield();
            if (i == 0) unpark(pair[1]);
            while (!is_over()) {
                park();
                ++turns;
                clock.advance(each);
                unpark(pair[1 - i]);
            }
        });
    for (std::size_t i = 0; i < others; ++i)
        go(slotted, [&, i] {
            for (; !is_over(); yield())
                if (i == 0) rounds.push_back(turns);
        });
    CHECK(!slotted.run());
    return rounds.size() == 4 ? rounds[3] - rounds[2] : turns;
}

}  // namespace

LOOP_TEST("turns: with few ready, wakes go through the slot 64 times in a row") {
    CHECK(turns_in_a_row(1, 0ns) == 65);
    CHECK(turns_in_a_row(100, 0ns) == 65);
    CHECK(turns_in_a_row(100, 10us) == 65);
}

LOOP_TEST("turns: with many ready, wakes go through the slot 512 times in a row, or for 50 us") {
    CHECK(turns_in_a_row(2000, 0ns) == 513);
    CHECK(turns_in_a_row(2000, 200ns) == 4 * 64 + 1);
    CHECK(turns_in_a_row(2000, 10us) == 65);
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
