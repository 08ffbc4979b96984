// coroutine_bench.cpp - what resume and yield cost on each back end, and a body that never yields.
//
// An iteration of a switch goes there and back: items_per_second counts switches.
//
// SPDX-License-Identifier: Apache-2.0
#include <benchmark/benchmark.h>

#include <cstdint>

#include <weft/coroutine/coroutine.hpp>
#include <weft/coroutine/generator.hpp>
#include <weft/coroutine/shared_stack.hpp>

namespace {

using weft::coroutine_options;

void yield_forever() {
    for (;;) weft::this_coroutine::yield();
}

template <class Coroutine>
void resume_and_yield(benchmark::State& state) {
    weft::shared_stack shared;  // for the swapped ones; the others have no use for it
    Coroutine c({.shared = &shared}, yield_forever);
    c.resume();
    for (auto _ : state) c.resume();
    state.SetItemsProcessed(2 * state.iterations());
}

// Two that share a stack: each resume copies one out and the other in.
void resume_and_yield_copied(benchmark::State& state) {
    weft::shared_stack shared;
    weft::swapped_coroutine first({.shared = &shared}, yield_forever);
    weft::swapped_coroutine second({.shared = &shared}, yield_forever);
    for (auto _ : state) {
        first.resume();
        second.resume();
    }
    state.SetItemsProcessed(4 * state.iterations());
}

void generate(benchmark::State& state) {
    weft::generator<std::uint64_t> numbers([](auto& yield) {
        for (std::uint64_t i = 0;; ++i) yield(i);
    });
    auto next = numbers.begin();
    for (auto _ : state) {
        benchmark::DoNotOptimize(*next);
        ++next;
    }
    state.SetItemsProcessed(2 * state.iterations());
}

[[gnu::noinline]] void work() { benchmark::ClobberMemory(); }

void indirect_call(benchmark::State& state) {
    void (*f)() = work;
    benchmark::DoNotOptimize(f);
    for (auto _ : state) f();
}

// Made, run to its end in one go, and destroyed.
template <class Coroutine>
void never_yields(benchmark::State& state) {
    weft::shared_stack shared;
    void (*f)() = work;
    benchmark::DoNotOptimize(f);
    for (auto _ : state) {
        Coroutine c({.shared = &shared}, f);
        c.resume();
    }
}

BENCHMARK(resume_and_yield<weft::coroutine>)->Name("resume and yield, own");
BENCHMARK(resume_and_yield<weft::ucontext_coroutine>)->Name("resume and yield, ucontext");
BENCHMARK(resume_and_yield<weft::thread_coroutine>)
    ->Name("resume and yield, thread")
    ->UseRealTime();
BENCHMARK(resume_and_yield<weft::swapped_coroutine>)->Name("resume and yield, swapped in place");
BENCHMARK(resume_and_yield_copied)->Name("resume and yield, swapped and copied");
BENCHMARK(generate)->Name("generator");
BENCHMARK(indirect_call)->Name("never yields, an indirect call");
BENCHMARK(never_yields<weft::swapped_coroutine>)->Name("never yields, swapped");
BENCHMARK(never_yields<weft::coroutine>)->Name("never yields, own");

}  // namespace
