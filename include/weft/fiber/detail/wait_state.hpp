// wait_state.hpp - the word that decides who ends a wait.
//
// A wait may end in three ways: its event came, its deadline passed, it was cancelled. Each is a
// source, perhaps on a thread of its own, and exactly one of them wins. They contend for one word:
//
//      31           4   3   2     0
//     +--------------+-----+-------+
//     | epoch        |plain| state |     waiting --> event | timed_out | cancelled    (CAS, once)
//     +--------------+-----+-------+
//
// The epoch grows with each wait, so a source that comes late meets another value and loses.
//
//   canceller                                       waiter
//   sets the cancelled flag            (seq_cst)    word to waiting or preparing     (seq_cst RMW)
//   looks at the word, and claims it   (seq_cst)    looks at the flag                (seq_cst)
//
// Both write, then read what the other writes: either the canceller finds it waiting, or the waiter
// finds the flag; whoever claims the word, one resumes it.
//
// That read-modify-write takes a seventh of a turn between two fibers, and hardly anybody cancels.
// So where only one thread runs the waiter, its first wait there leaves `plain` in the word, and
// the waits that follow begin by a plain store. Its order to the look at the flag is then the
// canceller's business:
//
//   canceller, in another thread                    waiter, plain
//   sets the cancelled flag            (seq_cst)    word to waiting                      (release)
//   waiting? claims it. Not, and plain?             light barrier: the compiler keeps the order
//     heavy barrier: every thread passes a fence    looks at the flag
//     looks at the word once more
//
// The fence comes to the waiter at some point of its program. Before its look at the flag: then it
// sees that. After it: then the word was stored before the fence, and the canceller finds it
// waiting. A canceller that does not find `plain` has looked before the read-modify-write that set
// it, so every later look at the flag finds that; and whoever takes `plain` away begins its next
// wait by a read-modify-write. In the waiter's own thread there is nothing to wait for.
//
// Where other threads may run a waiter, a source other than its event could win while it is still
// being published; somebody would then run it, perhaps to its end, under the publisher's hands. So
// the word says `preparing` until that is done, and whoever wants to claim it waits for that: a few
// instructions. The store that ends it (seq_cst, read by claim()) is the last that the publisher
// does to the waiter.
//
// Knows neither fibers nor lists. Written over its atomic type, over what a thread does while it
// spins and over its barriers, so that tests/model can walk all interleavings.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include <weft/base/process_barrier.hpp>
#include <weft/base/test_point.hpp>
#include <weft/base/version.hpp>

namespace weft::inline v0 {

enum class wait_outcome : unsigned char {
    ready = 0,  // publish returned false; wait() says event then, wait_or_ready() this
    event = 3,
    timed_out = 4,
    cancelled = 5,
};

namespace detail {

/// Between two looks at a word that another thread is about to change.
class publisher_spin {
public:
    void once() noexcept;

private:
    int rounds_ = 0;
};

template <template <class> class Atomic, class Spin, class Barrier>
class basic_wait_state {
public:
    // The sources.

    /// True: this one wins, and must make the waiter run. `closed` says that no other thread ever
    /// claims it: plain stores will do. It is written before the word, and read after it (relaxed).
    [[nodiscard, gnu::always_inline]] bool claim(wait_outcome outcome,
                                                 const Atomic<bool>& closed) noexcept {
        const std::uint32_t seen = word_.load(std::memory_order_seq_cst);
        if (seen == waiting_firm && outcome == wait_outcome::event) [[likely]] {  // begin_firmly()
            word_.store(static_cast<std::uint32_t>(outcome), std::memory_order_relaxed);
            return true;
        }
        return claim_otherwise(outcome, closed, seen);
    }

    /// claim() for the event of one that any source may end, if it takes one step. False: nothing
    /// was done, and claim() knows more.
    [[nodiscard, gnu::always_inline]] bool claim_at_once(const Atomic<bool>& closed) noexcept {
        std::uint32_t seen = word_.load(std::memory_order_seq_cst);
        if ((seen & state_mask) != waiting) [[unlikely]]
            return false;
        const std::uint32_t won =
            seen + (static_cast<std::uint32_t>(wait_outcome::event) - waiting);
        if (!closed.load(std::memory_order_relaxed))
            return word_.compare_exchange_strong(seen, won, std::memory_order_seq_cst);
        word_.store(won, std::memory_order_relaxed);
        return true;
    }

    /// For a canceller that has set the flag: true if this ends the wait, and wake() must follow.
    /// is_cancelled() reads the flag; guard() makes the lock that whoever changes the flag holds:
    /// between a look at the flag and the claim nobody enters a shield. is_elsewhere() says, under
    /// that lock, whether another thread may run the waiter now.
    template <class IsCancelled, class Guard, class IsElsewhere>
    [[nodiscard]] bool cancel(const Atomic<bool>& closed, IsCancelled is_cancelled, Guard guard,
                              IsElsewhere is_elsewhere) noexcept {
        for (bool fenced = false;;) {
            static_cast<void>(when_published());  // without the lock, which that may need
            {
                const auto lock = guard();
                const bool asked = is_cancelled();
                if (asked && claim(wait_outcome::cancelled, closed)) return true;
                const std::uint32_t seen = word_.load(std::memory_order_seq_cst);
                if ((seen & state_mask) == preparing) continue;
                if (fenced || !asked || (seen & plain) == 0 || !is_elsewhere()) return false;
            }
            WEFT_TEST_POINT("wait: its canceller is about to pass the barrier");
            Barrier::heavy();
            fenced = true;
        }
    }

    // The waiter.

    /// For its event alone, and nobody else is about: on a loop, in the fiber that waits.
    [[gnu::always_inline]] void begin_firmly() noexcept {
        word_.store(waiting_firm, std::memory_order_relaxed);
    }
    /// After begin_firmly(): the event was there already.
    [[gnu::always_inline]] void end_firmly() noexcept {
        word_.store(running, std::memory_order_relaxed);
    }
    /// A plain thread, which nobody cancels.
    void begin_in_thread() noexcept { word_.store(waiting, std::memory_order_relaxed); }

    /// For its event, and its deadline if it has one. Publish it after this.
    [[gnu::always_inline]] void begin_deaf(bool has_deadline) noexcept {
        word_.store(next_epoch() | (has_deadline ? waiting_deaf : waiting_firm),
                    std::memory_order_release);
    }

    /// For any source, where only the own thread resumes it. False: it is cancelled already, and
    /// claimed for that. True: publish it.
    template <class IsCancelled>
    [[nodiscard, gnu::always_inline]] bool begin(const Atomic<bool>& closed,
                                                 IsCancelled is_cancelled) noexcept {
        const std::uint32_t next = next_epoch();
        if ((next & plain) != 0 || closed.load(std::memory_order_relaxed)) [[likely]]
            word_.store(next | waiting, std::memory_order_release);  // for whoever claims it
        else
            begin_first(next);
        Barrier::light();
        WEFT_TEST_POINT("wait: the word says waiting");
        return !is_cancelled() || !claim(wait_outcome::cancelled, closed);
    }

    /// After begin() or begin_deaf(), when publish said that the event was there already: that is
    /// final, for it may be used up. True: the waiter goes on. False: a canceller has claimed it
    /// meanwhile, and resumes it; that it was cancelled is for its next wait to say.
    [[nodiscard, gnu::always_inline]] bool end_ready(const Atomic<bool>& closed) noexcept {
        const bool first = claim(wait_outcome::event, closed);
        word_.store((word_.load(std::memory_order_relaxed) & ~state_mask) | running,
                    std::memory_order_relaxed);  // for outcome(): nobody else looks
        return first;
    }

    /// For any source, or any but cancellation, where others may resume it: publish() within.
    /// False: it is cancelled already, or its event was there, and the caller resumes it. True:
    /// nothing of it is touched any more.
    template <class IsCancelled, class Publish>
    [[nodiscard, gnu::always_inline]] bool begin_and_publish(IsCancelled is_cancelled,
                                                             Publish publish,
                                                             bool deaf = false) noexcept {
        const std::uint32_t epoch = next_epoch() & ~plain;
        word_.exchange(epoch | preparing, std::memory_order_seq_cst);
        WEFT_TEST_POINT("wait: the word says preparing");
        auto now = static_cast<std::uint32_t>(wait_outcome::cancelled);
        bool waits = false;
        if (!is_cancelled()) {
            waits = publish();
            WEFT_TEST_POINT("wait: published, the word says preparing");
            now = waits ? (deaf ? waiting_deaf : waiting) : running;
        }
        word_.store(epoch | now, std::memory_order_seq_cst);
        return waits;
    }

    /// What a word tells, for reports.
    [[nodiscard]] static constexpr bool says_waiting(std::uint32_t word) noexcept {
        const std::uint32_t now = word & state_mask;
        return now == waiting || now == waiting_deaf || now == waiting_firm || now == preparing;
    }

    /// How it ended; once it runs again.
    [[nodiscard]] wait_outcome outcome() const noexcept {
        return static_cast<wait_outcome>(word_.load(std::memory_order_acquire) & state_mask);
    }

protected:  // tests/model breaks it in derived classes
    enum state : std::uint32_t {
        running = 0,
        waiting = 1,       // for any source
        waiting_deaf = 2,  // for any but cancellation
        waiting_firm = 6,  // for its event alone: one source, so nobody contends
        preparing = 7,     // not published yet
    };
    static constexpr std::uint32_t state_mask = 7;
    static constexpr std::uint32_t plain = 8;  // its waits begin by a plain store
    static constexpr std::uint32_t epoch_step = 16;

    // Of a word that has been looked at.
    [[nodiscard, gnu::noinline]] bool claim_otherwise(wait_outcome outcome,
                                                      const Atomic<bool>& closed,
                                                      std::uint32_t seen) noexcept {
        if ((seen & state_mask) == preparing) [[unlikely]] {
            if (outcome == wait_outcome::cancelled) return false;  // whoever cancels comes again
            seen = when_published();
        }
        const std::uint32_t now = seen & state_mask;
        const std::uint32_t won = (seen & ~state_mask) | static_cast<std::uint32_t>(outcome);
        if (now == waiting || (now == waiting_deaf && outcome != wait_outcome::cancelled)) {
            if (!closed.load(std::memory_order_relaxed))
                return word_.compare_exchange_strong(seen, won, std::memory_order_seq_cst);
        } else if (now != waiting_firm || outcome != wait_outcome::event) {
            return false;
        }
        word_.store(won, std::memory_order_relaxed);
        return true;
    }
    [[gnu::noinline]] void begin_first(std::uint32_t next) noexcept {
        word_.exchange(next | waiting | (Barrier::available() ? plain : 0U),
                       std::memory_order_seq_cst);
    }
    // The word once it does not say `preparing` any more.
    [[nodiscard, gnu::noinline]] std::uint32_t when_published() const noexcept {
        Spin spin;
        std::uint32_t seen = word_.load(std::memory_order_seq_cst);
        while ((seen & state_mask) == preparing) {
            spin.once();
            seen = word_.load(std::memory_order_seq_cst);
        }
        return seen;
    }
    [[nodiscard, gnu::always_inline]] std::uint32_t next_epoch() const noexcept {
        return (word_.load(std::memory_order_relaxed) & ~state_mask) + epoch_step;
    }

    Atomic<std::uint32_t> word_{running};
};

using wait_state = basic_wait_state<std::atomic, publisher_spin, process_barrier>;
extern template class basic_wait_state<std::atomic, publisher_spin, process_barrier>;

}  // namespace detail
}  // namespace weft::inline v0
