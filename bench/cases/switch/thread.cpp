// thread.cpp - weft's coroutines on the thread back end, and two ways to hand over by hand.
//
// Two threads of which one runs at a time; they want two CPUs, so bench/run does not pin this one.
//
// SPDX-License-Identifier: Apache-2.0
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "cases/switch/coroutine_match.hpp"

namespace {

enum side : std::uint32_t { first_side, second_side };

// The waiter always sleeps, the giver always wakes it.
struct sleeping {
    std::atomic<std::uint32_t> turn = first_side;

    void give(side to) {
        turn.store(to, std::memory_order_release);
        ::syscall(SYS_futex, &turn, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
    }
    void await(side mine) {
        std::uint32_t seen;
        while ((seen = turn.load(std::memory_order_acquire)) != mine)
            ::syscall(SYS_futex, &turn, FUTEX_WAIT_PRIVATE, seen, nullptr, nullptr, 0);
    }
};

// The waiter never sleeps: what two CPUs can do at best.
struct spinning {
    std::atomic<std::uint32_t> turn = first_side;

    void give(side to) { turn.store(to, std::memory_order_release); }
    void await(side mine) const {
        while (turn.load(std::memory_order_acquire) != mine) {
#if defined(__x86_64__)
            __builtin_ia32_pause();
#endif
        }
    }
};

template <class HandOver>
void play_by_hand(bench::match& m) {
    HandOver control;
    std::jthread second([&] {
        std::uint64_t count = 0;
        control.await(second_side);
        while (count < m.turns) {
            ++count;
            control.give(first_side);
            control.await(second_side);
        }
        m.second = count;
        control.give(first_side);
    });
    std::uint64_t count = 0;
    m.begin();
    while (count < m.turns) {
        ++count;
        control.give(second_side);
        control.await(first_side);
    }
    control.give(second_side);
    control.await(first_side);
    m.end();
    m.first = count;
}

bool has_two_cpus() {
    cpu_set_t allowed;
    return ::sched_getaffinity(0, sizeof allowed, &allowed) == 0 && CPU_COUNT(&allowed) > 1;
}

}  // namespace

int main(int argc, char** argv) {
    const bench::settings how = bench::read_arguments(argc, argv);
    if (has_two_cpus()) {
        bench::play_row(how, "weft thread_coroutine, resume and yield", 100'000,
                        bench::play_coroutines<weft::thread_coroutine>);
        bench::play_row(how, "spinning hand-over of two threads", 200'000, play_by_hand<spinning>);
    } else {
        bench::report_none({"weft thread_coroutine, resume and yield", "ns"}, "needs two CPUs");
        bench::report_none({"spinning hand-over of two threads", "ns"}, "needs two CPUs");
    }
    bench::play_row(
        how, "weft thread_coroutines, two in turn (three threads)", 5'000,
        [](bench::match& m) { bench::play_in_turn<weft::thread_coroutine>(m); }, 4);
    bench::play_row(how, "futex hand-over of two threads", 5'000, play_by_hand<sleeping>);
}
