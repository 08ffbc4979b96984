// bare.cpp - the least that a wake between two threads can be: a word that the other spins on, and
// a futex.
//
// SPDX-License-Identifier: Apache-2.0
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "cases/wake/workload.hpp"

namespace {

using namespace bench::wakes;

void bind_to(unsigned which) {
    cpu_set_t allowed;
    if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
    for (std::size_t i = 0, seen = 0; i < CPU_SETSIZE; ++i) {
        if (!CPU_ISSET(i, &allowed) || seen++ != which) continue;
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(i, &one);
        ::pthread_setaffinity_np(::pthread_self(), sizeof one, &one);
    }
}

double spinning(std::uint64_t rounds) {
    alignas(64) std::atomic<std::uint64_t> word = 0;
    const auto side = [&](std::uint64_t parity) {
        bind_to(static_cast<unsigned>(parity));
        for (std::uint64_t i = 0; i < rounds; ++i) {
            while (word.load(std::memory_order_acquire) != 2 * i + parity) {}
            word.store(2 * i + parity + 1, std::memory_order_release);
        }
    };
    bench::stopwatch clock;
    std::thread other([&] { side(1); });
    std::thread first([&] {
        clock.start();
        side(0);
        clock.stop();
    });
    first.join();
    other.join();
    return clock.nanoseconds() / static_cast<double>(2 * rounds);
}

void futex(std::atomic<std::uint32_t>& word, int what, std::uint32_t value) {
    ::syscall(SYS_futex, &word, what, value, nullptr, nullptr, 0);
}

double asleep(std::uint64_t rounds) {
    std::atomic<std::uint32_t> word = 0;
    std::atomic<std::uint64_t> answered = 0;
    clock::time_point woken;
    std::vector<double> took;
    std::thread sleeper([&] {
        bind_to(1);
        for (std::uint64_t i = 0; i < rounds; ++i) {
            while (word.load(std::memory_order_acquire) == 0) futex(word, FUTEX_WAIT_PRIVATE, 0);
            took.push_back(std::chrono::duration<double, std::nano>(clock::now() - woken).count());
            word.store(0, std::memory_order_relaxed);
            answered.store(i + 1, std::memory_order_release);
        }
    });
    std::thread waker([&] {
        bind_to(0);
        for (std::uint64_t i = 0; i < rounds; ++i) {
            let_it_sleep();
            woken = clock::now();
            word.store(1, std::memory_order_release);
            futex(word, FUTEX_WAKE_PRIVATE, 1);
            while (answered.load(std::memory_order_acquire) != i + 1) {}
        }
    });
    waker.join();
    sleeper.join();
    return median(took);
}

}  // namespace

int main(int argc, char** argv) {
    const bench::settings how = bench::read_arguments(argc, argv);
    bench::report({"bare threads, spinning", "ns"}, spinning(how.count(200'000)));
    bench::report({"bare threads, asleep in a futex", "ns"}, asleep(how.quick ? 10 : 2'000));
}
