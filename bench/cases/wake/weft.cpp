// weft.cpp - wakes between fibers that are pinned to the two workers of a pool, and what such a
// pool takes while nobody wakes anybody.
//
// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <chrono>
#include <thread>

#include <weft/exec/pool.hpp>
#include <weft/fiber/go.hpp>
#include <weft/fiber/this_fiber.hpp>

#include "cases/wake/workload.hpp"

namespace {

using namespace bench::wakes;

// Two fibers that know each other.
struct sides {
    weft::pool p{{.workers = 2, .bind_to_cpus = true}};
    weft::fiber_handle handles[2];
    std::atomic<int> there = 0;

    template <class Body>
    void play(Body body) {
        for (unsigned i = 0; i < 2; ++i)
            weft::go(p, {.worker = i}, [this, i, body] {
                handles[i] = weft::this_fiber::handle();
                ++there;
                while (there < 2) weft::yield();
                body(i, handles[1 - i]);
            });
        p.drain();
    }
};

double spinning(std::uint64_t rounds) {
    sides two;
    bench::stopwatch clock;
    two.play([&](unsigned me, const weft::fiber_handle& other) {
        if (me == 0) clock.start();
        for (std::uint64_t i = 0; i < rounds; ++i) {
            if (me == 0) weft::unpark(other);
            bench::require(weft::park().has_value(), "park");
            if (me == 1) weft::unpark(other);
        }
        if (me == 0) clock.stop();
    });
    return clock.nanoseconds() / static_cast<double>(2 * rounds);
}

double asleep(std::uint64_t rounds) {
    sides two;
    std::vector<double> took;
    clock::time_point woken;
    two.play([&](unsigned me, const weft::fiber_handle& other) {
        for (std::uint64_t i = 0; i < rounds; ++i) {
            if (me == 0) {
                let_it_sleep();
                woken = clock::now();
                weft::unpark(other);
                bench::require(weft::park().has_value(), "park");
            } else {
                bench::require(weft::park().has_value(), "park");
                took.push_back(
                    std::chrono::duration<double, std::nano>(clock::now() - woken).count());
                weft::unpark(other);
            }
        }
    });
    return median(took);
}

// The processor's time, of all threads, while all workers sleep.
double idle(std::chrono::milliseconds span) {
    weft::pool p{{.workers = 2}};
    weft::go(p, [] { weft::yield(); });
    p.drain();
    while (p.counters(0).parks == 0 || p.counters(1).parks == 0) std::this_thread::yield();
    const double before = cpu_milliseconds();
    std::this_thread::sleep_for(span);
    return cpu_milliseconds() - before;
}

}  // namespace

int main(int argc, char** argv) {
    const bench::settings how = bench::read_arguments(argc, argv);
    spinning(how.count(10'000));
    bench::report({"weft, spinning", "ns"}, spinning(how.count(200'000)));
    bench::report({"weft, asleep", "ns"}, asleep(how.quick ? 10 : 2'000));
    bench::report({"weft, idle", "ms"}, idle(std::chrono::milliseconds(how.quick ? 20 : 2'000)));
}
