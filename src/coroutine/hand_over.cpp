// hand_over.cpp - see hand_over.hpp.
//
// SPDX-License-Identifier: Apache-2.0
#include "coroutine/hand_over.hpp"

#include <sched.h>

#include <chrono>

#include "base/futex.hpp"
#include "base/pause.hpp"

namespace weft::inline v0::detail {

namespace {

// A wake of a sleeper on another processor takes some 20 microseconds. Whoever waits a shorter time
// than that is asleep again when the other, just woken, answers, and both sleep at every turn; so
// the spin lasts about two wakes, and the answer of one who is awake comes in a fraction of one.
constexpr std::chrono::microseconds patience{50};

bool has_a_processor_to_spare() noexcept {
    static const bool several = [] {
        cpu_set_t allowed;
        return ::sched_getaffinity(0, sizeof allowed, &allowed) == 0 && CPU_COUNT(&allowed) > 1;
    }();
    return several;
}

}  // namespace

void hand_over::give(side to) noexcept {
    std::atomic<std::uint32_t>* const key = &word_;
    const std::uint32_t before = key->exchange(to, std::memory_order_acq_rel);
    if ((before & asleep) != 0) futex_wake_one(key);
}

// Pauses between any two looks, from the first on. Looking all the time takes longer, though a
// pause is 50 ns on some processors (102 against 75 ns a hand-over): several looks are then on
// their way, and begin anew when the word changes under them. The clock is not read before an
// answer is late.
bool hand_over::comes_soon(side mine) const noexcept {
    const auto comes_within = [&](int looks) {
        for (int i = 0; i < looks; ++i) {
            if (turn_of(word_.load(std::memory_order_acquire)) == mine) return true;
            pause();
        }
        return false;
    };
    if (comes_within(100)) return true;
    const auto until = std::chrono::steady_clock::now() + patience;
    do {
        if (comes_within(20)) return true;
    } while (std::chrono::steady_clock::now() < until);
    return false;
}

void hand_over::await(side mine, bool soon) noexcept {
    if (soon && has_a_processor_to_spare() && comes_soon(mine)) return;
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
