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

// How many times as long as a vain spin took there is no other.
constexpr int caution = 10;

}  // namespace

void hand_over::give(side to) noexcept {
    std::atomic<std::uint32_t>* const key = &word_;
    const std::uint32_t before = key->exchange(to, std::memory_order_acq_rel);
    if ((before & asleep) != 0) futex_wake_one(key);
}

// Pauses between any two looks, from the first on. Looking all the time takes longer, though a
// pause is 50 ns on some processors (102 against 75 ns a hand-over): several looks are then on
// their way, and begin anew when the word changes under them.
bool hand_over::comes_at_once(side mine) const noexcept {
    for (int looks = 20; looks > 0; --looks) {
        if (is_turn_of(mine)) return true;
        pause();
    }
    return false;
}

// Who should run may need this processor: then it has it at once, and not when patience is at its
// end. If instead a stranger takes it, or if the answer takes its time, the spin was in vain, and
// costs a tenth of what follows at most.
bool hand_over::comes_soon(side mine) noexcept {
    using std::chrono::steady_clock;
    const steady_clock::time_point start = steady_clock::now();
    if (start < spin_again_[mine]) return false;
    for (;;) {
        ::sched_yield();
        const bool has_come = is_turn_of(mine);
        const steady_clock::duration taken = steady_clock::now() - start;
        if (taken >= patience) spin_again_[mine] = start + taken + caution * taken;
        if (has_come || taken >= patience) return has_come;
    }
}

void hand_over::await(side mine, bool soon) noexcept {
    if (soon && (comes_at_once(mine) || comes_soon(mine))) return;
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
