// context_bench.cpp - what make and swap cost, by the native switch and by ucontext.
//
// An iteration of a switch goes there and back: items_per_second counts switches.
//
// SPDX-License-Identifier: Apache-2.0
#include <benchmark/benchmark.h>

#include <vector>

#include <weft/context/context.hpp>

#include "context/switch.hpp"

namespace {

using weft::context;
using weft::portable_context;

struct inlined {
    template <class Context>
    [[gnu::always_inline]] static void swap(Context& from, Context& to) {
        weft::detail::swap_here(from, to);
    }
};

struct called {
    template <class Context>
    [[gnu::always_inline]] static void swap(Context& from, Context& to) {
        Context::swap(from, to);
    }
};

template <class Context>
struct sides {
    Context here;
    Context there;
};

// It never ends: its stack is dropped while it is suspended, and holds nothing to destroy.
template <class Context, class Switch>
[[gnu::noinline]] void go_back_forever(void* argument) {
    auto& both = *static_cast<sides<Context>*>(argument);
    for (;;) Switch::swap(both.there, both.here);
}

template <class Context, class Switch>
void swap(benchmark::State& state) {
    std::vector<std::byte> stack(64 * 1024);
    sides<Context> both;
    both.there = Context::make(stack, go_back_forever<Context, Switch>, &both);
    for (auto _ : state) Switch::swap(both.here, both.there);
    state.SetItemsProcessed(2 * state.iterations());
}

void never_entered(void*) {}

template <class Context>
void make(benchmark::State& state) {
    std::vector<std::byte> stack(64 * 1024);
    for (auto _ : state) {
        Context made = Context::make(stack, never_entered, nullptr);
        benchmark::DoNotOptimize(made);
    }
}

BENCHMARK(swap<context, inlined>)->Name("swap, inlined");
BENCHMARK(swap<context, called>)->Name("swap");
BENCHMARK(make<context>)->Name("make");
BENCHMARK(swap<portable_context, called>)->Name("swap, ucontext");
BENCHMARK(make<portable_context>)->Name("make, ucontext");

}  // namespace
