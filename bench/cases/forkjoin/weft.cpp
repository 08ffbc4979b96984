// weft.cpp - the case `forkjoin` with weft's task groups. See workload.hpp.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/exec/pool.hpp>
#include <weft/fiber/fiber.hpp>
#include <weft/fiber/this_fiber.hpp>
#include <weft/scope/deadline.hpp>
#include <weft/scope/task_group.hpp>
#include <weft/sync/wait_group.hpp>

#include "cases/forkjoin/workload.hpp"

namespace {

using namespace bench::forkjoin;
using namespace std::chrono_literals;
using group = weft::task_group<void>;

std::uint64_t fib(unsigned n) {
    if (n < 2) return n;
    std::uint64_t a = 0;
    std::uint64_t b = 0;
    weft::with_task_group<void>({.discard = true}, [&](group& g) {
        g.add([&] { a = fib(n - 1); });
        g.add([&] { b = fib(n - 2); });
        g.wait();
    });
    return a + b;
}

std::uint64_t tree(std::uint64_t first, std::uint64_t size) {
    if (size == 1) return first;
    std::uint64_t parts[10];
    weft::with_task_group<void>({.discard = true}, [&](group& g) {
        for (std::uint64_t i = 0; i < 10; ++i)
            g.add([&, i] { parts[i] = tree(first + i * (size / 10), size / 10); });
        g.wait();
    });
    std::uint64_t sum = 0;
    for (const std::uint64_t part : parts) sum += part;
    return sum;
}

template <class F>
double milliseconds(weft::pool& p, std::uint64_t expected, F function) {
    bench::stopwatch clock;
    std::uint64_t result = 0;
    weft::fiber root(p, [&] {
        clock.start();
        result = function();
        clock.stop();
    });
    root.join();
    bench::require(result == expected, "the sum of the tree");
    return clock.nanoseconds() / 1e6;
}

double cancel(weft::pool& p, std::uint64_t count) {
    bench::stopwatch clock;
    std::uint64_t told = 0;
    weft::fiber root(p, [&] {
        weft::with_task_group<bool>([&](weft::task_group<bool>& g) {
            weft::wait_group parked(count);
            for (std::uint64_t i = 0; i < count; ++i)
                g.add([&] {
                    parked.done();
                    return !weft::park().has_value();
                });
            parked.wait();
            for (int i = 0; i < 3; ++i) weft::yield();
            clock.start();
            g.cancel();
            g.wait();
            clock.stop();
            for (std::uint64_t i = 0; i < count; ++i) told += g.next() ? 1U : 0U;
        });
    });
    root.join();
    bench::require(told == count, "children that were told");
    return clock.nanoseconds() / static_cast<double>(count);
}

double deadline(weft::pool& p, std::uint64_t count) {
    bench::stopwatch clock;
    std::uint64_t sum = 0;
    weft::fiber root(p, [&] {
        clock.start();
        for (std::uint64_t i = 0; i < count; ++i)
            sum += weft::with_timeout(1h, [&] { return bench::keep(i), i; }).value();
        clock.stop();
    });
    root.join();
    bench::require(sum == count * (count - 1) / 2, "what the calls returned");
    return clock.nanoseconds() / static_cast<double>(count);
}

}  // namespace

int main(int argc, char** argv) {
    const bench::settings how = bench::read_arguments(argc, argv);
    const unsigned n = how.quick ? 10 : fib_of;
    const std::uint64_t size = how.quick ? 1000 : leaves;
    for (const unsigned workers_used : {1U, 2U}) {
        weft::pool p({.workers = workers_used});
        const std::string at = workers(workers_used);
        for (const bool counts : {false, true}) {
            const double took = milliseconds(p, fib_alone(n), [&] { return fib(n); });
            if (counts) bench::report({"weft, fib", "ms", at}, took);
        }
        for (const bool counts : {false, true}) {
            const double took =
                milliseconds(p, size * (size - 1) / 2, [&] { return tree(0, size); });
            if (counts) bench::report({"weft, skynet", "ms", at}, took);
        }
    }
    weft::pool p({.workers = 1});
    bench::report({"weft, cancel", "ns"}, cancel(p, how.quick ? 1000 : 100'000));
    bench::report({"weft, deadline", "ns"}, deadline(p, how.count(10'000'000)));
}
