// weft.cpp - weft's channels on one processor: on a loop that nobody else wakes, and on a pool.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/exec/loop.hpp>
#include <weft/exec/pool.hpp>

#include "cases/channel/weft_channel.hpp"

namespace {

using namespace bench::channels;

template <class Play>
auto on_loop(Play play) {
    return [play](game& g) {
        weft::loop loop({.external_wakes = false});
        play(g, loop, [&] { loop.run(); });
    };
}

template <class Play>
auto on_pool(Play play) {
    return [play](game& g) {
        weft::pool pool({.workers = 1});
        play(g, pool, [&] { pool.drain(); });
    };
}

}  // namespace

int main(int argc, char** argv) {
    const bench::settings how = bench::read_arguments(argc, argv);
    const auto ping_pong = [](auto&&... each) { play_ping_pong(each...); };
    const auto stream = [](auto&&... each) { play_stream(each...); };
    measure_ping_pong(how, "weft, loop, ping-pong", 2'000'000, on_loop(ping_pong));
    measure_ping_pong(how, "weft, one worker, ping-pong", 2'000'000, on_pool(ping_pong));
    measure_stream(how, "weft, loop, stream", 4'000'000, on_loop(stream));
    measure_stream(how, "weft, one worker, stream", 4'000'000, on_pool(stream));
}
