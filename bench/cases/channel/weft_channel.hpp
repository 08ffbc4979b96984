// weft_channel.hpp - the two games over weft's channels, on whatever executor.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <weft/exec/executor.hpp>
#include <weft/fiber/go.hpp>
#include <weft/sync/channel.hpp>

#include "cases/channel/workload.hpp"

namespace bench::channels {

/// Two fibers; join() returns when both have ended.
template <class Join>
void play_ping_pong(game& g, weft::executor& where, Join join) {
    weft::channel<std::uint64_t> there;
    weft::channel<std::uint64_t> back;
    weft::go(where, [&] {
        g.clock.start();
        std::uint64_t ball = 0;
        while (ball < g.items) {
            require(there.send(ball + 1).has_value(), "there");
            ball = back.receive().value();
        }
        g.answer = ball;
        g.clock.stop();
        there.close();
    });
    weft::go(where, [&] {
        while (const auto ball = there.receive()) require(back.send(*ball + 1).has_value(), "back");
    });
    join();
}

template <class Join>
void play_stream(game& g, weft::executor& where, Join join) {
    weft::channel<std::uint64_t> items(capacity);
    weft::go(where, [&] {
        g.clock.start();
        for (std::uint64_t i = 1; i <= g.items; ++i) require(items.send(i).has_value(), "send");
        items.close();
    });
    weft::go(where, [&] {
        std::uint64_t sum = 0;
        while (const auto item = items.receive()) sum += *item;
        g.answer = sum;
        g.clock.stop();
    });
    join();
}

}  // namespace bench::channels
