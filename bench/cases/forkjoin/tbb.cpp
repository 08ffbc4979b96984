// tbb.cpp - the case `forkjoin` with oneTBB's task_group. See workload.hpp.
//
// SPDX-License-Identifier: Apache-2.0
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/task_group.h>
#include <oneapi/tbb/version.h>

#include "cases/forkjoin/workload.hpp"

namespace {

using namespace bench::forkjoin;

std::uint64_t fib(unsigned n) {
    if (n < 2) return n;
    std::uint64_t a = 0;
    std::uint64_t b = 0;
    tbb::task_group g;
    g.run([&] { a = fib(n - 1); });
    g.run([&] { b = fib(n - 2); });
    g.wait();
    return a + b;
}

std::uint64_t tree(std::uint64_t first, std::uint64_t size) {
    if (size == 1) return first;
    std::uint64_t parts[10];
    tbb::task_group g;
    for (std::uint64_t i = 0; i < 10; ++i)
        g.run([&, i] { parts[i] = tree(first + i * (size / 10), size / 10); });
    g.wait();
    std::uint64_t sum = 0;
    for (const std::uint64_t part : parts) sum += part;
    return sum;
}

template <class F>
double milliseconds(tbb::task_arena& arena, std::uint64_t expected, F function) {
    bench::stopwatch clock;
    clock.start();
    const std::uint64_t result = arena.execute(function);
    clock.stop();
    bench::require(result == expected, "the sum of the tree");
    return clock.nanoseconds() / 1e6;
}

}  // namespace

int main(int argc, char** argv) {
    const bench::settings how = bench::read_arguments(argc, argv);
    const unsigned n = how.quick ? 10 : fib_of;
    const std::uint64_t size = how.quick ? 1000 : leaves;
    bench::about(std::string("oneTBB ") + TBB_VERSION_STRING);
    for (const unsigned count : {1U, 2U}) {
        const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, count);
        tbb::task_arena arena(static_cast<int>(count));
        const std::string at = workers(count);
        for (const bool counts : {false, true}) {
            const double took = milliseconds(arena, fib_alone(n), [&] { return fib(n); });
            if (counts) bench::report({"TBB, fib", "ms", at}, took);
        }
        for (const bool counts : {false, true}) {
            const double took =
                milliseconds(arena, size * (size - 1) / 2, [&] { return tree(0, size); });
            if (counts) bench::report({"TBB, skynet", "ms", at}, took);
        }
    }
}
