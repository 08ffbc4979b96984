// hand_over_test.cpp - the thread back end's hand-over: its order, and what waiting for it takes.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/coroutine/coroutine.hpp>
#include <weft/coroutine/thread_cache.hpp>

#include <sched.h>

#include <chrono>
#include <ctime>
#include <string>
#include <thread>
#include <vector>

#include "backends.hpp"

using namespace weft_test;
using weft::thread_cache;
using weft::thread_coroutine;
using weft::this_coroutine::yield;

namespace {

// Of all threads of this process.
std::chrono::nanoseconds processor_time() {
    timespec now{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

// What all threads take of the processor for a hand-over, while one resumes that many in turn.
std::chrono::nanoseconds price_of_hand_over(std::size_t parties) {
    constexpr std::size_t rounds = 200;
    std::vector<thread_coroutine> all;
    for (std::size_t i = 0; i < parties; ++i) {
        all.emplace_back([] {
            for (;;) yield();
        });
        all.back().resume();
    }
    const auto before = processor_time();
    for (std::size_t i = 0; i < rounds; ++i) {
        for (thread_coroutine& c : all) c.resume();
    }
    return (processor_time() - before) / (rounds * 2 * parties);
}

// A spin that goes on to the end of its patience takes 50 us. Where other programs have the
// processors, one may be due now and then.
bool spins_in_vain(std::size_t parties) {
    for (int tries = 0; tries < 5; ++tries) {
        if (price_of_hand_over(parties) < std::chrono::microseconds(25)) return false;
    }
    return true;
}

// All of it runs on one processor until this is gone.
class only_one_processor {
public:
    only_one_processor() {
        ::sched_getaffinity(0, sizeof before_, &before_);
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(static_cast<std::size_t>(::sched_getcpu()), &one);
        ::sched_setaffinity(0, sizeof one, &one);
    }
    ~only_one_processor() { ::sched_setaffinity(0, sizeof before_, &before_); }

private:
    cpu_set_t before_{};
};

}  // namespace

WEFT_TEST("thread: control is handed over in the order of the program, never the kernel's") {
    thread_cache threads;
    std::string log;
    const auto body = [&log](char letter) {
        return [&log, letter] {
            for (int i = 0; i < 3; ++i) {
                log += letter;
                yield();
            }
        };
    };
    std::string expected;
    thread_coroutine a({.threads = &threads}, body('a'));
    thread_coroutine b({.threads = &threads}, body('b'));
    thread_coroutine c({.threads = &threads}, body('c'));
    for (int i = 0; i < 3; ++i) {
        for (thread_coroutine* one : {&c, &a, &b}) {
            log += '(';
            one->resume();
            log += ')';
        }
        expected += "(c)(a)(b)";
    }
    CHECK(log == expected);
}

// The sleep makes nothing happen: it is the time in which nothing may.
WEFT_TEST("thread: nobody busy-waits who was created and not resumed, or who yielded") {
    std::vector<thread_coroutine> all;
    for (int i = 0; i < 8; ++i) all.emplace_back([] { yield(); });
    for (std::size_t i = 0; i < 4; ++i) all[i].resume();
    constexpr std::chrono::milliseconds asleep(200);
    const auto before = processor_time();
    std::this_thread::sleep_for(asleep);
    CHECK(processor_time() - before < asleep / 4);
}

WEFT_TEST("thread: of several that take turns nobody spins where another has to run") {
    for (const std::size_t parties : {2U, 3U, 7U}) CHECK(!spins_in_vain(parties));
}

WEFT_TEST("thread: nobody spins on the only processor, though there were others before") {
    CHECK(!spins_in_vain(1));
    const only_one_processor pinned;
    for (const std::size_t parties : {1U, 3U}) CHECK(!spins_in_vain(parties));
}

WEFT_TEST("thread: stress on the hand-over, to and fro") {
    const long rounds = stress_count(1'000'000);
    long ball = 0;  // not atomic: the hand-over orders every access
    thread_coroutine c([&] {
        for (;;) {
            ++ball;
            yield();
        }
    });
    for (long i = 0; i < rounds; ++i) {
        c.resume();
        ++ball;
    }
    CHECK(ball == 2 * rounds);
}
