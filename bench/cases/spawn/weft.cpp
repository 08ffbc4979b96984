// weft.cpp - a million fibers of weft that do next to nothing.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/exec/loop.hpp>
#include <weft/fiber/fiber.hpp>
#include <weft/fiber/go.hpp>

#include "cases/spawn/workload.hpp"

namespace {

using namespace bench::spawns;

// The one loop of the process, so that the second round finds what the first has left.
weft::loop& loop() {
    static weft::loop one({.external_wakes = false});
    return one;
}

auto in_batches(weft::stack_kind kind) {
    return [kind](task& r) {
        weft::go(loop(), [kind, &r] {
            for (std::uint64_t begun = 0; begun < r.fibers; begun += batch) {
                for (std::uint64_t i = 0; i < batch; ++i)
                    weft::go({.kind = kind}, [&r] { ++r.ran; });
                while (r.ran != begun + batch) weft::yield();
            }
        });
        loop().run();
    };
}

// With a handle each, which is joined.
void joined(task& r) {
    weft::go(loop(), [&r] {
        std::vector<weft::fiber> all(batch);
        for (std::uint64_t begun = 0; begun < r.fibers; begun += batch) {
            for (weft::fiber& each : all) each = weft::fiber([&r] { ++r.ran; });
            for (weft::fiber& each : all) each.join();
        }
    });
    loop().run();
}

auto at_once(weft::stack_kind kind) {
    return [kind](task& r) {
        for (std::uint64_t i = 0; i < r.fibers; ++i)
            weft::go(loop(), {.kind = kind}, [&r] { ++r.ran; });
        loop().run();
    };
}

}  // namespace

int main(int argc, char** argv) {
    const bench::settings how = bench::read_arguments(argc, argv);
    using enum weft::stack_kind;
    measure_batches(how, "weft, own stacks", in_batches(own));
    measure_batches(how, "weft, own stacks, joined", joined);
    measure_batches(how, "weft, swapped", in_batches(swapped));
    measure_batches(how, "weft, ucontext", in_batches(ucontext));
    measure_batches(how, "weft, thread", in_batches(thread), 20'000);
    measure_at_once(how, "weft, own stacks, a million at once", 700, at_once(own));
    measure_at_once(how, "weft, swapped, a million at once", 1'500, at_once(swapped));
}
