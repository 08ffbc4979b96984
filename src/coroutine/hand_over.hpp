// hand_over.hpp - control passed between two threads, of which exactly one runs.
//
// One word says whose turn it is, and whether the other sleeps:
//
//   giver                                        waiter
//   word.exchange(other's turn)  (acq_rel)       spin while it is not my turn (acquire)
//   did the old value say "asleep"? wake         CAS "other's turn" -> "other's turn, I sleep"
//                                                futex_wait on that value
//
// Both change the word with a read-modify-write, so either the giver sees the sleeper, or the
// sleeper's CAS fails because the turn has come. What the giver did before happens before what the
// waiter does after: the exchange releases, the waiter's load acquires. After the exchange the
// giver touches the word no more (its address only, as a key for the wake): the other side may be
// finished with it.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include <weft/base/version.hpp>

namespace weft::inline v0::detail {

class hand_over {
public:
    enum side : std::uint32_t { resumer = 0, body = 1 };

    /// Lets the other side run; the caller then awaits its own turn, or ends.
    void give(side to) noexcept;

    /// Returns when it is this side's turn: after a short spin if the caller expects an answer soon
    /// and spinning was not in vain of late, else asleep.
    void await(side mine, bool soon) noexcept;

private:
    [[nodiscard]] bool comes_at_once(side mine) const noexcept;
    [[nodiscard]] bool comes_soon(side mine) noexcept;
    [[nodiscard]] bool is_turn_of(side mine) const noexcept {
        return turn_of(word_.load(std::memory_order_acquire)) == mine;
    }

    // Bit 0: whose turn it is. Bit 1: the other side, whose turn it is not, sleeps.
    static constexpr std::uint32_t asleep = 2;
    static std::uint32_t turn_of(std::uint32_t word) noexcept { return word & ~asleep; }
    std::atomic<std::uint32_t> word_ = resumer;
    // When a side may spin again; it alone knows.
    std::chrono::steady_clock::time_point spin_again_[2];
};

}  // namespace weft::inline v0::detail
