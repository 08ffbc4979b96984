// weft_two.cpp - weft's channels between fibers of a pool with two workers.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/exec/pool.hpp>

#include "cases/channel/weft_channel.hpp"

int main(int argc, char** argv) {
    using namespace bench::channels;
    const bench::settings how = bench::read_arguments(argc, argv);
    measure_stream(how, "weft, two workers, stream", 4'000'000, [](game& g) {
        weft::pool pool({.workers = 2});
        play_stream(g, pool, [&] { pool.drain(); });
    });
}
