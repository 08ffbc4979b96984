// stack_bench.cpp - what it costs to take a stack and give it back, warm and new.
//
// SPDX-License-Identifier: Apache-2.0
#include <benchmark/benchmark.h>

#include <vector>

#include <weft/stack/stack_cache.hpp>
#include <weft/stack/stack_depot.hpp>

namespace {

void take_and_give_back(benchmark::State& state, weft::stack_source& source) {
    const std::size_t size = weft::default_stack_size();
    source.give_back(source.take(size));
    for (auto _ : state) {
        weft::stack taken = source.take(size);
        benchmark::DoNotOptimize(taken);
        source.give_back(taken);
    }
}

void cached(benchmark::State& state) {
    weft::stack_cache cache;
    take_and_give_back(state, cache);
}

void from_the_depot(benchmark::State& state) { take_and_give_back(state, weft::shared_stacks()); }

// Each is cut from the reservation and gets its guard; the iterations are bounded, for all are live
// until the end.
void new_one(benchmark::State& state) {
    weft::stack_depot depot;
    std::vector<weft::stack> taken;
    taken.reserve(static_cast<std::size_t>(state.max_iterations));
    for (auto _ : state) taken.push_back(depot.take(weft::default_stack_size()));
    for (const weft::stack& s : taken) depot.give_back(s);
}

BENCHMARK(cached)->Name("take and give back, cached");
BENCHMARK(from_the_depot)->Name("take and give back, depot")->Threads(1)->Threads(2);
BENCHMARK(new_one)->Name("take, new")->Iterations(10'000);

}  // namespace
