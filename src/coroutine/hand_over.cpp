// hand_over.cpp - see hand_over.hpp.
//
// SPDX-License-Identifier: Apache-2.0
#include "coroutine/hand_over.hpp"

#include <sched.h>

#include "base/futex.hpp"

namespace weft::inline v0::detail {

namespace {

// A wake of a sleeper on another processor takes some 15 microseconds; an answer that comes soon
// comes within a fraction of one. So the word is first read without pause (one takes 50 ns on some
// processors), then a few microseconds long with, and then the thread sleeps.
constexpr int eager_looks = 300;
constexpr int patient_looks = 100;

bool has_a_processor_to_spare() noexcept {
    static const bool several = [] {
        cpu_set_t allowed;
        return ::sched_getaffinity(0, sizeof allowed, &allowed) == 0 && CPU_COUNT(&allowed) > 1;
    }();
    return several;
}

void pause() noexcept {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

}  // namespace

void hand_over::give(side to) noexcept {
    std::atomic<std::uint32_t>* const key = &word_;
    const std::uint32_t before = key->exchange(to, std::memory_order_acq_rel);
    if ((before & asleep) != 0) futex_wake_one(key);
}

void hand_over::await(side mine, bool soon) noexcept {
    if (soon && has_a_processor_to_spare()) {
        for (int i = 0; i < eager_looks + patient_looks; ++i) {
            if (turn_of(word_.load(std::memory_order_acquire)) == mine) return;
            if (i >= eager_looks) pause();
        }
    }
    for (;;) {
        std::uint32_t seen = word_.load(std::memory_order_acquire);
        if (turn_of(seen) == mine) return;
        if ((seen & asleep) == 0 &&
            !word_.compare_exchange_strong(seen, seen | asleep, std::memory_order_acq_rel,
                                           std::memory_order_acquire))
            continue;
        futex_wait(word_, seen | asleep);
    }
}

}  // namespace weft::inline v0::detail
