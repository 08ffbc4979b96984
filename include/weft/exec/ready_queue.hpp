// ready_queue.hpp - what one thread will run: first in, first out, with memory fetched ahead.
//
// A queue of a few runnables is in the cache. One of a hundred thousand is not, and then every
// dispatch waits for memory twice: for the runnable, and for what that touches first (a fiber's
// stack). So each runnable in the queue knows the one `distance` places behind it. When a long
// queue is popped, that one is fetched; half the distance later it has arrived, and what it points
// to is fetched.
//
//   pop   .  .  .  .  .  .  .  x8 .          x8 is fetched
//         |  .  .  .  x4 .  .  .  .          what x4 touches is fetched (x4 came 4 pops ago)
//         runs
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstring>

#include <weft/exec/runnable.hpp>

namespace weft::inline v0::detail {

/// Thread-safe: no; it belongs to whoever runs its owner.
class ready_queue {
public:
    [[nodiscard]] bool empty() const noexcept { return head_ == nullptr; }
    [[nodiscard]] std::size_t size() const noexcept { return size_; }

    void push(runnable* r) noexcept {
        r->next_node = nullptr;
        if (head_ == nullptr)
            head_ = r;
        else
            tail_->next_node = r;
        tail_ = r;
        if (++size_ > distance) [[unlikely]]
            note_distance(r);
    }

    /// nullptr if it is empty.
    [[nodiscard]] runnable* pop() noexcept {
        runnable* const r = head_;
        if (r == nullptr) return nullptr;
        head_ = r->next_node;
        if (--size_ >= fetch_from - 1) [[unlikely]]
            fetch_ahead(*r);
        return r;
    }

    /// Moves everything out, in order, as a list of next_node links.
    [[nodiscard]] runnable* take_all() noexcept {
        runnable* const all = head_;
        head_ = tail_ = nullptr;
        size_ = 0;
        fetched_ = 0;
        return all;
    }

private:
    static constexpr std::size_t distance = 8;
    static constexpr std::size_t fetch_from = 512;  // fewer are in the cache anyway

    // `behind_` is the one that stands `distance` places before the tail; each push moves both by
    // one.
    void note_distance(runnable* r) noexcept {
        if (size_ == distance + 1) behind_ = head_;
        behind_->ahead_node = r;
        behind_ = behind_->next_node;
    }

    // r was popped and at least `distance` others are behind it, so its link ahead is of this stay
    // in the queue.
    [[gnu::noinline]] void fetch_ahead(runnable& r) noexcept {
        if (size_ < fetch_from) {
            fetched_ = 0;
            return;
        }
        runnable* const ahead = r.ahead_node;
        __builtin_prefetch(ahead, 1);
        __builtin_prefetch(reinterpret_cast<std::byte*>(ahead) + 64, 1);
        __builtin_prefetch(reinterpret_cast<std::byte*>(ahead) + 256, 1);
        runnable*& half_way = coming_[fetched_ % (distance / 2)];
        if (fetched_ >= distance / 2 && half_way->touches_offset != 0) {
            void* touched;
            std::memcpy(&touched, reinterpret_cast<std::byte*>(half_way) + half_way->touches_offset,
                        sizeof touched);
            __builtin_prefetch(touched, 1);
            __builtin_prefetch(static_cast<std::byte*>(touched) + 64, 1);
        }
        half_way = ahead;
        ++fetched_;
    }

    runnable* head_ = nullptr;
    runnable* tail_ = nullptr;  // valid while head_ is not nullptr
    std::size_t size_ = 0;
    runnable* behind_ = nullptr;  // while more than `distance` are in the queue
    std::size_t fetched_ = 0;     // pops in a row that fetched ahead
    std::array<runnable*, distance / 2> coming_{};
};

}  // namespace weft::inline v0::detail
