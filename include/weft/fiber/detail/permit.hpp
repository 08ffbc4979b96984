// permit.hpp - what park() waits for and unpark() gives.
//
//   park                                           unpark
//   given? take it                                 not awaited: make it given       (seq_cst RMW)
//   publish: CAS none -> awaited   (seq_cst)       awaited: CAS to claiming         (seq_cst)
//   woken by the event: it was taken, unless         claim the fiber
//     another was given since: take that, too        won: none, and wake it         (release)
//   withdraw: awaited -> none      (seq_cst);        lost: given                    (release)
//     claiming? waits until it is not              claiming, by another: waits until it is not
//
// All are changes of one word: either unpark sees that it is awaited, or the CAS fails because it
// is given. `claiming` is for one that is cancelled or late at the same moment: it does not go on,
// to wait for something else, while an unpark that saw it waiting has yet to claim it.
//
// Written over its atomic type and what a thread does while it spins, so that tests/model can walk
// all interleavings.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include <weft/base/test_point.hpp>
#include <weft/fiber/detail/wait_state.hpp>

namespace weft::inline v0::detail {

template <template <class> class Atomic, class Spin>
class basic_permit {
public:
    // The fiber.

    /// True: it was given, and is taken now.
    [[nodiscard]] bool take() noexcept {
        std::uint8_t seen = given;
        return word_.load(std::memory_order_relaxed) == given &&
               word_.compare_exchange_strong(seen, none, std::memory_order_acquire);
    }
    [[nodiscard]] bool is_given() const noexcept {
        return word_.load(std::memory_order_relaxed) == given;
    }
    /// To publish a wait for it. False: it is given.
    [[nodiscard]] bool await() noexcept {
        std::uint8_t seen = none;
        return word_.compare_exchange_strong(seen, awaited, std::memory_order_seq_cst);
    }
    /// The wait ended otherwise. One that came meanwhile stays.
    void withdraw() noexcept {
        std::uint8_t seen = awaited;
        for (Spin spin; !word_.compare_exchange_strong(seen, none, std::memory_order_seq_cst);
             seen = awaited) {
            if (seen != claiming) return;
            spin.once();
        }
    }

    // From any thread.

    /// claim() ends the wait for it, if nothing else does. True: it was awaited, the claim won, and
    /// the fiber is to be woken.
    template <class Claim>
    [[nodiscard]] bool give(Claim claim) noexcept {
        Spin spin;
        std::uint8_t seen = word_.load(std::memory_order_relaxed);
        for (;;) {
            if (seen == claiming) {
                spin.once();
                seen = word_.load(std::memory_order_relaxed);
                continue;
            }
            if (seen == awaited) WEFT_TEST_POINT("unpark: the permit is awaited");
            if (word_.compare_exchange_weak(seen, seen == awaited ? claiming : given,
                                            std::memory_order_seq_cst))
                break;
        }
        if (seen != awaited) return false;
        const bool won = claim();
        word_.store(won ? none : given, std::memory_order_release);
        return won;
    }

protected:  // tests/model breaks it in derived classes
    enum : std::uint8_t { none, given, awaited, claiming };
    Atomic<std::uint8_t> word_ = none;
};

}  // namespace weft::inline v0::detail
