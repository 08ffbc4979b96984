// steal_queue.hpp - the runnables of one worker, which others may take when they have none.
//
// A ring of pointers between two counters that only grow. The owner pushes at the tail; owner and
// thieves take at the head, the oldest first, a thief half of what is there.
//
//     head                 tail                owner:  push  slot, then tail (release or more)
//      |                    |                          pop   CAS head -> head + 1
//      v                    v                  thief:  reads head (acquire), tail (acquire),
//   .. a  b  c  d  e  f  g  .  .                       copies n slots, CAS head -> head + n
//
// A slot is read before the CAS says that it was the reader's. Meanwhile somebody else may have
// taken it and the owner have written it anew; then head has moved, the CAS fails, and what was
// read is forgotten. The tail's release is what lets a thief see the runnable itself.
//
// The owner may take back what it pushed last. Head counts how often that was done, too, beside its
// place, so that whoever read the longer tail fails:
//
//   owner: tail - 1 (release); head: one more taken back (CAS, acq_rel)
//          if head has come to the old tail first: all were taken; the tail goes back to where it
//          was
//   thief: reads head before that: its CAS fails, or comes first and the owner sees it
//          reads head after that (acquire): reads the shorter tail
//
// Written over its atomic type, so that tests/model can walk all interleavings.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include <weft/base/test_point.hpp>
#include <weft/base/version.hpp>

namespace weft::inline v0::detail {

template <class T, std::uint32_t Capacity, template <class> class Atomic = std::atomic>
class steal_queue {
public:
    static_assert((Capacity & (Capacity - 1)) == 0, "a power of two");
    static constexpr std::uint32_t capacity = Capacity;

    steal_queue() noexcept = default;
    /// With both counters there: for tests of what happens where they wrap.
    explicit steal_queue(std::uint32_t start) noexcept : head_{start}, tail_{start} {}

    // The owner.

    /// False: it is full. seq_cst if the caller looks for sleepers next (parking.hpp); release will
    /// do otherwise.
    [[nodiscard]] bool push(T* item, std::memory_order order) noexcept {
        const std::uint32_t tail = tail_.load(std::memory_order_relaxed);
        if (tail - place(head_.load(std::memory_order_acquire)) == Capacity) return false;
        slot(tail).store(item, std::memory_order_relaxed);
        WEFT_TEST_POINT("steal_queue: the slot is written");
        tail_.store(tail + 1, order);
        return true;
    }

    /// nullptr: it is empty.
    [[nodiscard]] T* pop() noexcept {
        std::uint64_t head = head_.load(std::memory_order_acquire);
        for (;;) {
            const std::uint32_t tail = tail_.load(std::memory_order_relaxed);
            if (place(head) == tail) return nullptr;
            T* const item = slot(place(head)).load(std::memory_order_relaxed);
            if (head_.compare_exchange_weak(head, advanced(head, 1), std::memory_order_acq_rel,
                                            std::memory_order_acquire))
                return item;
        }
    }

    /// The one that was pushed last; nullptr: it is empty.
    [[nodiscard]] T* take_back() noexcept {
        const std::uint32_t tail = tail_.load(std::memory_order_relaxed);
        std::uint64_t head = head_.load(std::memory_order_acquire);
        if (place(head) == tail) return nullptr;
        T* const item = slot(tail - 1).load(std::memory_order_relaxed);
        tail_.store(tail - 1, std::memory_order_release);
        WEFT_TEST_POINT("steal_queue: the tail is shorter");
        while (place(head) != tail)
            if (head_.compare_exchange_weak(head, head + one_taken_back, std::memory_order_acq_rel,
                                            std::memory_order_acquire))
                return item;
        tail_.store(tail, std::memory_order_release);
        return nullptr;
    }

    /// Takes the eldest out, for another place; how many.
    [[nodiscard]] std::uint32_t pop_some(std::array<T*, Capacity>& into,
                                         std::uint32_t most) noexcept {
        return take(into, [most](std::uint32_t there) { return there < most ? there : most; });
    }

    /// What will be popped `places` from now, if it is there: for fetching ahead.
    [[nodiscard]] T* peek(std::uint32_t places) const noexcept {
        const std::uint32_t head = place(head_.load(std::memory_order_relaxed));
        if (tail_.load(std::memory_order_relaxed) - head <= places) return nullptr;
        return slots_[(head + places) % Capacity].load(std::memory_order_relaxed);
    }

    // Any thread.

    /// At least half of what is there, the eldest first; how many.
    [[nodiscard]] std::uint32_t steal(std::array<T*, Capacity>& into) noexcept {
        return take(into, [](std::uint32_t there) { return there - there / 2; });
    }

    /// seq_cst, for it is the second half of parking: see parking.hpp.
    [[nodiscard]] bool empty() const noexcept {
        return place(head_.load(std::memory_order_seq_cst)) ==
               tail_.load(std::memory_order_seq_cst);
    }
    /// 0, for a moment, while all that is there is being taken.
    [[nodiscard]] std::uint32_t size() const noexcept {
        const std::uint32_t head = place(head_.load(std::memory_order_acquire));
        const std::uint32_t there = tail_.load(std::memory_order_acquire) - head;
        return there <= Capacity ? there : 0;
    }

protected:  // tests/model breaks it in derived classes
    [[nodiscard]] Atomic<T*>& slot(std::uint32_t position) noexcept {
        return slots_[position % Capacity];
    }

    template <class HowMany>
    [[nodiscard]] std::uint32_t take(std::array<T*, Capacity>& into, HowMany how_many) noexcept {
        for (;;) {
            std::uint64_t head = head_.load(std::memory_order_acquire);
            const std::uint32_t there = tail_.load(std::memory_order_acquire) - place(head);
            if (there == 0 || there == ~0U) return 0;  // the latter: see take_back()
            if (there > Capacity) continue;            // head moved between the two loads
            const std::uint32_t count = how_many(there);
            for (std::uint32_t i = 0; i < count; ++i)
                into[i] = slot(place(head) + i).load(std::memory_order_relaxed);
            WEFT_TEST_POINT("steal_queue: the slots are read");
            if (head_.compare_exchange_strong(head, advanced(head, count),
                                              std::memory_order_acq_rel, std::memory_order_relaxed))
                return count;
        }
    }

    // Of the word `head_`: its low half is the place.
    static constexpr std::uint64_t one_taken_back = std::uint64_t{1} << 32;
    [[nodiscard]] static std::uint32_t place(std::uint64_t head) noexcept {
        return static_cast<std::uint32_t>(head);
    }
    [[nodiscard]] static std::uint64_t advanced(std::uint64_t head, std::uint32_t by) noexcept {
        return (head & ~std::uint64_t{0xffff'ffff}) | (place(head) + by);
    }

    alignas(64) Atomic<std::uint64_t> head_{0};
    alignas(64) Atomic<std::uint32_t> tail_{0};
    std::array<Atomic<T*>, Capacity> slots_{};
};

}  // namespace weft::inline v0::detail
