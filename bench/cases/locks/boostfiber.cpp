// boostfiber.cpp - Boost.Fiber's locks; for two threads, with its shared_work scheduler.
//
// SPDX-License-Identifier: Apache-2.0
#include <boost/fiber/all.hpp>
#include <boost/version.hpp>
#include <mutex>

#include "cases/locks/workload.hpp"

namespace {

using namespace bench::locks;
namespace fibers = boost::fibers;

void lock_alone(task& t) {
    const second_thread there;
    fibers::mutex m;
    fibers::fiber([&] {
        t.clock.start();
        for (std::uint64_t n = t.total; n != 0; --n) {
            m.lock();
            ++t.done;
            m.unlock();
        }
        t.clock.stop();
    }).join();
}

// Two threads share the fibers; the second waits until all have ended.
void contend(task& t) {
    fibers::mutex m;
    fibers::mutex ending;
    fibers::condition_variable_any ended;
    bool over = false;
    std::atomic<bool> there = false;
    std::thread second([&] {
        fibers::use_scheduling_algorithm<fibers::algo::shared_work>();
        there = true;
        std::unique_lock lock(ending);
        ended.wait(lock, [&] { return over; });
    });
    while (!there) std::this_thread::yield();
    std::vector<fibers::fiber> all;
    t.clock.start();
    for (std::uint64_t i = 0; i < t.fibers; ++i)
        all.emplace_back(fibers::launch::post, [&] {
            for (std::uint64_t n = t.of_each(); n != 0; --n) {
                const std::lock_guard lock(m);
                ++t.done;
            }
        });
    for (fibers::fiber& each : all) each.join();
    t.clock.stop();
    {
        const std::lock_guard lock(ending);
        over = true;
    }
    ended.notify_all();
    second.join();
}

void turns_by_condition(task& t) {
    fibers::mutex m;
    fibers::condition_variable changed[2];
    unsigned turn = 0;
    const auto side = [&](unsigned me) {
        for (std::uint64_t n = t.of_each(); n != 0; --n) {
            std::unique_lock lock(m);
            changed[me].wait(lock, [&] { return turn == me; });
            turn = 1 - me;
            ++t.done;
            changed[1 - me].notify_one();
        }
    };
    t.clock.start();
    fibers::fiber first(fibers::launch::post, side, 0U);
    fibers::fiber second(fibers::launch::post, side, 1U);
    first.join();
    second.join();
    t.clock.stop();
}

}  // namespace

int main(int argc, char** argv) {
    const bench::settings how = bench::read_arguments(argc, argv);
    bench::about("Boost.Fiber " + std::to_string(BOOST_VERSION / 100'000) + "." +
                 std::to_string(BOOST_VERSION / 100 % 1'000));
    measure(how, "Boost.Fiber, mutex", 1, uncontended, lock_alone);
    measure(how, "Boost.Fiber, condition_variable", 2, turns, turns_by_condition);
    fibers::use_scheduling_algorithm<fibers::algo::shared_work>();
    measure(how, "Boost.Fiber, mutex, 2 fibers", 2, contended / 10, contend);
    measure(how, "Boost.Fiber, mutex, 64 fibers", 64, contended / 10, contend);
}
