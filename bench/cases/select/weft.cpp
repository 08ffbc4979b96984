// weft.cpp - weft's select, on a loop that nobody else wakes, and on a pool with one worker.
//
// SPDX-License-Identifier: Apache-2.0
#include <array>

#include <weft/exec/loop.hpp>
#include <weft/exec/pool.hpp>
#include <weft/fiber/go.hpp>
#include <weft/sync/select.hpp>

#include "cases/select/workload.hpp"

namespace {

using namespace bench::selects;

template <class Join>
void play(game& g, weft::executor& where, Join join) {
    std::array<weft::channel<std::uint64_t>, senders> channels;
    weft::go(where, [&] {
        g.clock.start();
        const auto add = [&](const auto& item) { g.sum += *item; };
        for (std::uint64_t n = senders * g.items; n != 0; --n)
            bench::require(weft::select(on_receive(channels[0], add), on_receive(channels[1], add),
                                        on_receive(channels[2], add), on_receive(channels[3], add))
                               .has_value(),
                           "select");
        g.clock.stop();
    });
    for (auto& channel : channels)
        weft::go(where, [&] {
            for (std::uint64_t i = 1; i <= g.items; ++i)
                bench::require(channel.send(i).has_value(), "send");
        });
    join();
}

}  // namespace

int main(int argc, char** argv) {
    const bench::settings how = bench::read_arguments(argc, argv);
    measure(how, "weft, loop", 500'000, [](game& g) {
        weft::loop loop({.external_wakes = false});
        play(g, loop, [&] { loop.run(); });
    });
    measure(how, "weft, one worker", 500'000, [](game& g) {
        weft::pool pool({.workers = 1});
        play(g, pool, [&] { pool.drain(); });
    });
}
