// standard.cpp - the standard library's locks, with threads.
//
// SPDX-License-Identifier: Apache-2.0
#include <mutex>
#include <shared_mutex>
#include <vector>

#include "cases/locks/workload.hpp"

namespace {

using namespace bench::locks;

void lock_alone(task& t) {
    const second_thread there;
    std::mutex m;
    t.clock.start();
    for (std::uint64_t n = t.total; n != 0; --n) {
        m.lock();
        ++t.done;
        m.unlock();
    }
    t.clock.stop();
}

template <class Body>
void in_threads(task& t, Body body) {
    std::vector<std::thread> all;
    t.clock.start();
    for (std::uint64_t i = 0; i < t.fibers; ++i) all.emplace_back(body);
    for (std::thread& each : all) each.join();
    t.clock.stop();
}

void contend(task& t) {
    std::mutex m;
    in_threads(t, [&] {
        for (std::uint64_t n = t.of_each(); n != 0; --n) {
            const std::lock_guard lock(m);
            ++t.done;
        }
    });
}

void read_and_write(task& t) {
    std::shared_mutex m;
    std::uint64_t written = 0;
    std::atomic<std::uint64_t> read = 0;
    in_threads(t, [&] {
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

}  // namespace

int main(int argc, char** argv) {
    const bench::settings how = bench::read_arguments(argc, argv);
    measure(how, "std::mutex", 1, uncontended, lock_alone);
    measure(how, "std::mutex, 2 threads", 2, contended, contend);
    measure(how, "std::mutex, 64 threads", 64, contended, contend);
    measure(how, "std::shared_mutex, 8 threads", 8, reads, read_and_write);
}
