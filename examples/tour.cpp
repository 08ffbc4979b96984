// tour.cpp - what the library does, in a minute of reading: `make run`.
//
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ranges>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <weft/weft.hpp>

using namespace weft;

namespace {

void heading(const char* title) { std::printf("\n%s\n", title); }

void two_coroutines() {
    heading("A coroutine stops in the middle and goes on where it stopped:");
    coroutine ping([] {
        for (int i = 1; i <= 3; ++i) {
            std::printf("  ping %d", i);
            this_coroutine::yield();
        }
    });
    coroutine pong([] {
        for (int i = 1; i <= 3; ++i) {
            std::printf("  pong %d", i);
            this_coroutine::yield();
        }
    });
    for (int i = 0; i < 3; ++i) {
        ping.resume();
        pong.resume();
    }
    std::printf("\n");
}

void hanoi(int disks, char from, char to, char over, auto& yield) {
    if (disks == 0) return;
    hanoi(disks - 1, from, over, to, yield);
    yield(std::string{from, to});
    hanoi(disks - 1, over, to, from, yield);
}

void a_generator() {
    heading("A generator yields from any depth, and is a range (towers of Hanoi, four disks):");
    generator<std::string> moves([](auto& yield) { hanoi(4, 'A', 'C', 'B', yield); });
    std::printf(" ");
    for (const std::string& move : moves) std::printf(" %s", move.c_str());
    std::printf("\n");
}

void exceptions_and_destruction() {
    heading("Exceptions come out of resume(); destroying a suspended coroutine unwinds it:");
    coroutine failing([] { throw std::runtime_error("no such file"); });
    try {
        failing.resume();
    } catch (const std::exception& e) { std::printf("  caught: %s\n", e.what()); }
    struct guard {
        ~guard() { std::printf("  a guard on the dropped stack was destroyed\n"); }
    };
    coroutine dropped([] {
        const guard g;
        this_coroutine::yield();
    });
    dropped.resume();
}

void another_thread() {
    heading("Any thread may resume it, also in the middle of a catch block:");
    coroutine c([] {
        try {
            throw std::runtime_error("thrown on one thread");
        } catch (const std::exception&) {
            this_coroutine::yield();
            try {
                throw;
            } catch (const std::exception& again) {
                std::printf("  %s, caught on another\n", again.what());
            }
        }
    });
    c.resume();
    std::jthread([&] { c.resume(); }).join();
}

template <class Coroutine>
void measure(const char* name, const coroutine_options& options, int rounds) {
    Coroutine c(options, [] {
        for (;;) this_coroutine::yield();
    });
    c.resume();
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < rounds; ++i) c.resume();
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
    std::printf("  %-9s %8.1f ns\n", name, took.count() / rounds / 2);
}

void four_back_ends() {
    heading("Four back ends, one interface; one switch takes, roughly, here and now:");
    shared_stack shared;
    thread_cache threads;
    measure<coroutine>("own", {}, 2'000'000);
    measure<swapped_coroutine>("swapped", {.shared = &shared}, 2'000'000);
    measure<ucontext_coroutine>("ucontext", {}, 100'000);
    measure<thread_coroutine>("thread", {.threads = &threads}, 20'000);
}

void many_stacks() {
    heading("Guarded stacks are cheap; very many coroutines wait at once:");
    // Fewer where a guard costs mappings (Linux before 6.13), or ThreadSanitizer a state for each.
    const bool cheap = shared_stack_depot().counters().guard == guard_kind::install && !WEFT_TSAN;
    const int count = cheap ? 100'000 : 2'000;
    std::vector<coroutine> waiting;
    for (int i = 0; i < count; ++i) {
        waiting.emplace_back([] { this_coroutine::yield(); });
        waiting.back().resume();
    }
    const stack_counters counters = shared_stack_depot().counters();
    std::printf("  %zu live stacks in %zu reservations, guarded by %s\n", counters.live,
                counters.mapped,
                counters.guard == guard_kind::install ? "MADV_GUARD_INSTALL" : "mprotect");
}

}  // namespace

int main() {
    std::printf("weft %s\n", std::string(version()).c_str());
    two_coroutines();
    a_generator();
    exceptions_and_destruction();
    another_thread();
    four_back_ends();
    many_stacks();
    std::printf("\nMore programs like these are under examples/.\n");
    return 0;
}
