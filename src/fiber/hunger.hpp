// hunger.hpp - the fibers of one executor that are to start, and for which there was no stack.
//
// Each waits for the next stack that is given back. Whoever gives one back sees whether anybody
// waits; on a pool, where that look may come too early, it looks again before it sleeps:
//
//   finds no stack                              gives one back
//   any = true        (exchange, acq_rel)       counts it, in a word of its own
//   counts what is out                          any?  (before it sleeps: RMW, acq_rel)
//   nothing? it will never come                 yes: the next one tries again
//
// Both are read-modify-writes of one word: either the second sees the first, or the first sees what
// the second had counted.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <mutex>
#include <vector>

#include <weft/exec/runnable.hpp>

namespace weft::inline v0::detail {

struct fiber_worker;
struct fiber_block;

/// Thread-safe: all members.
class hunger {
public:
    void add(fiber_worker& worker);
    void remove(fiber_worker& worker) noexcept;

    /// Puts it in line. False: no stack is out that could come back.
    [[nodiscard]] bool wait(fiber_block& block) noexcept;
    /// Lets the first in line try again.
    void feed() noexcept;

    /// Who runs on each of the workers, for reports; nullptr: nobody.
    [[nodiscard]] std::vector<const fiber_block*> running() const;

    [[nodiscard]] bool any() const noexcept { return any_.load(std::memory_order_relaxed); }
    [[nodiscard]] bool any_before_sleep() noexcept {
        return any_.fetch_or(0, std::memory_order_acq_rel) != 0;
    }

private:
    std::atomic<unsigned char> any_ = 0;
    mutable std::mutex mutex_;
    // Guarded by it:
    std::vector<fiber_worker*> workers_;
    runnable* first_ = nullptr;
    runnable* last_ = nullptr;
};

}  // namespace weft::inline v0::detail
