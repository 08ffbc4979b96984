// never_yields.cpp - a body that runs to its end at once: what a coroutine adds to a call.
//
// Every row calls the same function through a pointer, and checks the sum that it leaves.
//
// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include <weft/coroutine/coroutine.hpp>
#include <weft/coroutine/shared_stack.hpp>

#include "support/row.hpp"

namespace {

constexpr std::size_t batch = 64;  // coroutines made at a time, where making them is not measured

[[gnu::noinline]] void work(std::uint64_t& sum) {
    ++sum;
    bench::keep(sum);
}

using function = void (*)(std::uint64_t&);

function chosen_at_run_time() {
    function f = work;
    bench::keep(f);
    return f;
}

void indirect_call(const bench::settings& how) {
    const std::uint64_t runs = how.count(50'000'000);
    const function f = chosen_at_run_time();
    std::uint64_t sum = 0;
    bench::stopwatch clock;
    clock.start();
    for (std::uint64_t i = 0; i < runs; ++i) f(sum);
    clock.stop();
    bench::require(sum == runs, "indirect call");
    bench::report({"indirect call", "ns"}, clock.nanoseconds() / static_cast<double>(runs));
}

// Only resume() is measured: from a coroutine that has not started to one that is done.
template <class Coroutine>
void run(const bench::settings& how, std::string_view row, const weft::coroutine_options& options) {
    const std::uint64_t batches = how.count(50'000);
    const function f = chosen_at_run_time();
    std::uint64_t sum = 0;
    bench::stopwatch clock;
    for (std::uint64_t b = 0; b < batches; ++b) {
        std::vector<Coroutine> made;
        made.reserve(batch);
        for (std::size_t i = 0; i < batch; ++i) made.emplace_back(options, [f, &sum] { f(sum); });
        clock.start();
        for (Coroutine& c : made) c.resume();
        clock.stop();
        for (const Coroutine& c : made) bench::require(c.done(), row);
    }
    bench::require(sum == batches * batch, row);
    bench::report({row, "ns"}, clock.nanoseconds() / static_cast<double>(batches * batch));
}

template <class Coroutine>
void make_run_destroy(const bench::settings& how, std::string_view row,
                      const weft::coroutine_options& options) {
    const std::uint64_t runs = how.count(2'000'000);
    const function f = chosen_at_run_time();
    std::uint64_t sum = 0;
    bench::stopwatch clock;
    clock.start();
    for (std::uint64_t i = 0; i < runs; ++i) {
        Coroutine c(options, [f, &sum] { f(sum); });
        c.resume();
    }
    clock.stop();
    bench::require(sum == runs, row);
    bench::report({row, "ns"}, clock.nanoseconds() / static_cast<double>(runs));
}

}  // namespace

int main(int argc, char** argv) {
    const bench::settings how = bench::read_arguments(argc, argv);
    weft::shared_stack shared;
    const weft::coroutine_options swapped{.shared = &shared};
    indirect_call(how);
    run<weft::swapped_coroutine>(how, "weft swapped_coroutine, run", swapped);
    run<weft::coroutine>(how, "weft coroutine, run", {});
    make_run_destroy<weft::swapped_coroutine>(how, "weft swapped_coroutine, made, run, destroyed",
                                              swapped);
    make_run_destroy<weft::coroutine>(how, "weft coroutine, made, run, destroyed", {});
    const weft::swap_counters& counted = shared.counters();
    bench::require(counted.parks == 0 && counted.copies_out == 0 && counted.buffers == 0,
                   "one that never yields is never parked, copied or given a buffer");
}
