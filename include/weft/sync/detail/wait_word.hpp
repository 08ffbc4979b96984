// wait_word.hpp - what most primitives are made of: a number, a lock bit, and a queue of waiters.
//
//      63                          2   1        0
//     +-----------------------------+--------+---------+
//     | the primitive's number      | queued | guarded |
//     +-----------------------------+--------+---------+
//
// guarded is a spin lock for the number and the queue; queued says that the queue is not empty.
//
//   the fast way: a CAS of a word that has neither bit       (acquire to take, release to give)
//   every other:  enter() sets guarded by a CAS of a word that has it not          (acquire)
//                 leave() stores the new number without it                         (release)
//
// While guarded is set nobody else writes the word, so leave() is a plain store; each acquire reads
// from the last release of the same word. Lock and number share one word so that one store gives up
// both: whoever sees the new number may destroy the primitive, and nothing is touched after that
// store. Rejected: a number beside a lock; the unlocking store would then come too late.
//
// Nobody waits, wakes or runs a user's code while it holds the bit; a few instructions pass.
//
// Written over its atomic type, its waiters and what a thread does while it spins, so that
// tests/model can walk all interleavings of what is made of it (shared_word.hpp).
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include <weft/base/assert.hpp>
#include <weft/base/test_point.hpp>
#include <weft/fiber/suspend.hpp>
#include <weft/sync/detail/lock_spin.hpp>
#include <weft/sync/detail/waiter_queue.hpp>

namespace weft::inline v0::detail {

template <template <class> class Atomic, class Waiter, class Spin>
class basic_wait_word {
public:
    using waiter_type = Waiter;

    static constexpr std::uint64_t guarded = 1;
    static constexpr std::uint64_t queued = 2;
    static constexpr std::uint64_t busy = guarded | queued;
    static constexpr std::uint64_t unit = 4;                         // one, as a number in the word
    static constexpr std::uint64_t most = ~std::uint64_t{0} / unit;  // the largest number

    constexpr explicit basic_wait_word(std::uint64_t number = 0) noexcept : word_(number * unit) {}
    basic_wait_word(const basic_wait_word&) = delete;
    basic_wait_word& operator=(const basic_wait_word&) = delete;

    // The fast way.

    /// The word, in which a number n is n * unit.
    [[nodiscard]] std::uint64_t load(std::memory_order order) const noexcept {
        return word_.load(order);
    }
    /// From a word that is not guarded to another such, with the same bit for those queued.
    [[nodiscard]] bool change(std::uint64_t& from, std::uint64_t to,
                              std::memory_order order) noexcept {
        return word_.compare_exchange_weak(from, to, order, std::memory_order_relaxed);
    }

    // Under the lock bit.

    /// The number.
    [[nodiscard]] std::uint64_t enter() noexcept {
        std::uint64_t seen = word_.load(std::memory_order_relaxed) & ~guarded;
        if (!word_.compare_exchange_strong(seen, seen | guarded, std::memory_order_acquire,
                                           std::memory_order_relaxed)) [[unlikely]]
            seen = enter_slowly();
        WEFT_TEST_POINT("wait_word: guarded");
        return seen / unit;
    }
    /// The last thing that is done to the primitive: then others may destroy it.
    void leave(std::uint64_t number) noexcept { leave(number, !queue_.empty()); }
    /// For one that has another queue beside.
    void leave(std::uint64_t number, bool somebody_waits) noexcept {
        word_.store(number * unit | (somebody_waits ? queued : 0), std::memory_order_release);
        WEFT_TEST_POINT("wait_word: left");
    }
    [[nodiscard]] basic_waiter_queue<Waiter>& queue() noexcept { return queue_; }

    /// For withdraw(): takes out somebody whose wait ended otherwise.
    void withdraw(Waiter& one) noexcept {
        const std::uint64_t number = enter();
        queue_.remove(one);
        leave(number);
    }

    /// For destructors.
    [[nodiscard]] bool has_waiters() const noexcept {
        return (word_.load(std::memory_order_acquire) & busy) != 0;
    }

protected:  // tests/model breaks it in derived classes
    [[nodiscard, gnu::noinline]] std::uint64_t enter_slowly() noexcept {
        Spin spin;
        std::uint64_t seen = word_.load(std::memory_order_relaxed);
        for (;;) {
            if ((seen & guarded) != 0) {
                spin.once();
                seen = word_.load(std::memory_order_relaxed);
            } else if (word_.compare_exchange_weak(seen, seen | guarded, std::memory_order_acquire,
                                                   std::memory_order_relaxed)) {
                return seen;
            }
        }
    }

    Atomic<std::uint64_t> word_;
    basic_waiter_queue<Waiter> queue_;
};

using wait_word = basic_wait_word<std::atomic, waiter, lock_spin>;
extern template std::uint64_t
basic_wait_word<std::atomic, waiter, lock_spin>::enter_slowly() noexcept;

/// Throws `cancelled`, for a wait that was.
[[noreturn]] void throw_cancelled();

}  // namespace weft::inline v0::detail
