// waiter.hpp - somebody who waits, as a primitive sees it; and the word that decides who woke it.
//
// A wait may end in three ways: its event came, its deadline passed, it was cancelled. Each is a
// source, perhaps on a thread of its own, and exactly one of them wins. They contend for one word
// in the waiter:
//
//      31             3 2     0
//     +----------------+-------+
//     | epoch          | state |      waiting --> event | timed_out | cancelled     (CAS, once)
//     +----------------+-------+
//
// The epoch grows with each wait, so a source that comes late meets another value and loses.
// Whoever wins then makes the waiter run, and touches it no more after that.
//
// Where other threads may run a fiber, a source other than its event could win while it is still
// being published; somebody would then run it, perhaps to its end, under the publisher's hands. So
// the word says `preparing` until that is done, and whoever wants to claim it waits for that: a few
// instructions. A publish function must therefore not wait for a lock whose holder claims this
// waiter; if it takes several, then in the order in which everybody takes them.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include <weft/base/version.hpp>

namespace weft::inline v0 {

enum class wait_outcome : unsigned char {
    ready = 0,  // publish returned false; wait() says event then, wait_or_ready() this
    event = 3,
    timed_out = 4,
    cancelled = 5,
};

/// What kind of wait, for dumps and reports. Static.
struct wait_reason {
    const char* text;         // "sleeps", "joins", "waits for a lock"
    bool cancellable = true;  // false: cancellation is ignored by this wait
};

/// A fiber or a plain thread that waits. In at most one list at a time, whose owner's lock guards
/// the links.
class waiter {
public:
    waiter(const waiter&) = delete;
    waiter& operator=(const waiter&) = delete;

    /// For the event's source: true if the event comes first. Then wake() must follow, once.
    /// From: any thread, while the waiter is in the caller's list (under the lock of that).
    [[nodiscard]] bool claim() noexcept { return claim(wait_outcome::event); }

    /// Makes it run; it may be gone when this returns. From: whoever claimed it.
    void wake() noexcept;

    // The list of the primitive.
    waiter* next = nullptr;
    waiter* previous = nullptr;

    // For weft's own sources.
    enum state : std::uint32_t {
        running = 0,
        waiting = 1,       // for any source
        waiting_deaf = 2,  // for any but cancellation
        waiting_firm = 6,  // for its event alone: one source, so nobody contends
        preparing = 7,     // not published yet
    };
    static constexpr std::uint32_t state_mask = 7;
    static constexpr std::uint32_t epoch_step = 8;
    [[nodiscard]] bool claim(wait_outcome outcome) noexcept;
    [[nodiscard]] bool is_preparing() const noexcept {
        return (word.load(std::memory_order_seq_cst) & state_mask) == preparing;
    }
    /// The word once it does not say `preparing` any more.
    [[nodiscard]] std::uint32_t word_when_published() const noexcept;
    std::atomic<std::uint32_t> word = running;
    enum class who : unsigned char { fiber, thread };
    const who what;
    /// No other thread ever claims it: plain stores will do.
    std::atomic<bool> closed = false;  // relaxed
    bool listed = false;               // whether publish of a wait that can be withdrawn said true

protected:
    explicit waiter(who w) noexcept : what(w) {}
    ~waiter() = default;
};

inline bool waiter::claim(wait_outcome outcome) noexcept {
    std::uint32_t seen = word.load(std::memory_order_seq_cst);
    if ((seen & state_mask) == preparing) [[unlikely]] {
        if (outcome == wait_outcome::cancelled) return false;  // whoever cancels comes again
        seen = word_when_published();
    }
    const std::uint32_t now = seen & state_mask;
    const std::uint32_t won = (seen & ~state_mask) | static_cast<std::uint32_t>(outcome);
    if (now == waiting || (now == waiting_deaf && outcome != wait_outcome::cancelled)) {
        if (!closed.load(std::memory_order_relaxed))  // seq_cst: a canceller has set its flag
                                                      // before; the waiter looks at it after
            return word.compare_exchange_strong(seen, won, std::memory_order_seq_cst);
    } else if (now != waiting_firm || outcome != wait_outcome::event) {
        return false;
    }
    word.store(won, std::memory_order_relaxed);
    return true;
}

}  // namespace weft::inline v0
