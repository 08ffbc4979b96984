// weft.cpp - weft's locks, on a loop and on a pool of two workers.
//
// SPDX-License-Identifier: Apache-2.0
#include <mutex>
#include <shared_mutex>

#include <weft/exec/loop.hpp>
#include <weft/exec/pool.hpp>
#include <weft/fiber/go.hpp>
#include <weft/sync/condition_variable.hpp>
#include <weft/sync/fair_mutex.hpp>
#include <weft/sync/mutex.hpp>
#include <weft/sync/semaphore.hpp>
#include <weft/sync/shared_mutex.hpp>
#include <weft/sync/wait_group.hpp>

#include "cases/locks/workload.hpp"

namespace {

using namespace bench::locks;

template <class Mutex>
void lock_alone(task& t) {
    Mutex m;
    t.clock.start();
    for (std::uint64_t n = t.total; n != 0; --n) {
        m.lock();
        ++t.done;
        m.unlock();
    }
    t.clock.stop();
}

template <class Mutex>
void in_a_fiber(task& t) {
    const second_thread there;
    weft::loop s;
    weft::go(s, [&t] { lock_alone<Mutex>(t); });
    s.run();
}

// body() in as many fibers as the task says, on two workers.
template <class Body>
void on_two_workers(task& t, Body body) {
    weft::pool p({.workers = 2});
    weft::wait_group all(t.fibers);
    t.clock.start();
    for (std::uint64_t i = 0; i < t.fibers; ++i)
        weft::go(p, [&] {
            const auto done = all.guard();
            body();
        });
    all.wait();
    t.clock.stop();
}

template <class Mutex>
void contend(task& t) {
    Mutex m;
    on_two_workers(t, [&] {
        for (std::uint64_t n = t.of_each(); n != 0; --n) {
            const std::lock_guard lock(m);
            ++t.done;
        }
    });
}

void read_and_write(task& t) {
    weft::shared_mutex m;
    std::uint64_t written = 0;
    std::atomic<std::uint64_t> read = 0;
    on_two_workers(t, [&] {
        std::uint64_t mine = 0;
        for (std::uint64_t n = t.of_each(); n != 0; --n) {
            if (n % write_every == 0) {
                const std::lock_guard lock(m);
                ++written;
            } else {
                const std::shared_lock lock(m);
                ++mine;
            }
        }
        read += mine;
    });
    t.done = written + read;
}

// side(0) and side(1) on one loop.
template <class Side>
void two_on_a_loop(task& t, Side side) {
    const second_thread there;
    weft::loop s;
    for (unsigned i = 0; i < 2; ++i) weft::go(s, [&side, i] { side(i); });
    t.clock.start();
    s.run();
    t.clock.stop();
}

void turns_by_condition(task& t) {
    weft::mutex m;
    weft::condition_variable changed[2];
    unsigned turn = 0;
    two_on_a_loop(t, [&](unsigned me) {
        for (std::uint64_t n = t.of_each(); n != 0; --n) {
            std::unique_lock lock(m);
            changed[me].wait(lock, [&] { return turn == me; });
            turn = 1 - me;
            ++t.done;
            changed[1 - me].notify_one();
        }
    });
}

void turns_by_semaphores(task& t) {
    weft::binary_semaphore permits[2]{weft::binary_semaphore(1), weft::binary_semaphore(0)};
    two_on_a_loop(t, [&](unsigned me) {
        for (std::uint64_t n = t.of_each(); n != 0; --n) {
            permits[me].acquire();
            ++t.done;
            permits[1 - me].release();
        }
    });
}

}  // namespace

int main(int argc, char** argv) {
    const bench::settings how = bench::read_arguments(argc, argv);
    measure(how, "weft::mutex", 1, uncontended, in_a_fiber<weft::mutex>);
    measure(how, "weft::fair_mutex", 1, uncontended, in_a_fiber<weft::fair_mutex>);
    for (const std::uint64_t fibers : {2U, 64U}) {
        const std::string by = ", " + std::to_string(fibers) + " fibers";
        measure(how, "weft::mutex" + by, fibers, contended, contend<weft::mutex>);
        measure(how, "weft::fair_mutex" + by, fibers, contended / 10, contend<weft::fair_mutex>);
    }
    measure(how, "weft::condition_variable", 2, turns, turns_by_condition);
    measure(how, "weft::binary_semaphore", 2, turns, turns_by_semaphores);
    measure(how, "weft::shared_mutex", 8, reads, read_and_write);
}
