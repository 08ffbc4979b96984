// overflow_list.hpp - runnables of a pool that are in no worker's queue: from other threads, and
// what did not fit. First in, first out.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <mutex>
#include <span>

#include <weft/exec/runnable.hpp>

#include "base/spin_lock.hpp"

namespace weft::inline v0::detail {

/// Thread-safe: all members.
class overflow_list {
public:
    void push(runnable* r) noexcept {
        r->next_node = nullptr;
        append(r, r, 1);
    }
    void push(std::span<runnable* const> all) noexcept {
        if (all.empty()) return;
        for (std::size_t i = 0; i + 1 < all.size(); ++i) all[i]->next_node = all[i + 1];
        all.back()->next_node = nullptr;
        append(all.front(), all.back(), all.size());
    }

    /// Up to so many, as a list of next_node links; nullptr: it is empty.
    [[nodiscard]] runnable* take(std::size_t most) noexcept {
        if (empty()) return nullptr;
        const std::lock_guard guard(lock_);
        runnable* const first = head_;
        runnable* last = nullptr;
        std::size_t taken = 0;
        while (head_ != nullptr && taken < most) {
            last = head_;
            head_ = head_->next_node;
            ++taken;
        }
        if (last != nullptr) last->next_node = nullptr;
        size_.store(size_.load(std::memory_order_relaxed) - taken, std::memory_order_relaxed);
        return first;
    }

    /// seq_cst: the second half of parking (parking.hpp).
    [[nodiscard]] bool empty() const noexcept { return size() == 0; }
    [[nodiscard]] std::size_t size() const noexcept {
        return size_.load(std::memory_order_seq_cst);
    }

private:
    void append(runnable* first, runnable* last, std::size_t count) noexcept {
        const std::lock_guard guard(lock_);
        if (head_ == nullptr)
            head_ = first;
        else
            tail_->next_node = first;
        tail_ = last;
        size_.store(size_.load(std::memory_order_relaxed) + count, std::memory_order_seq_cst);
    }

    spin_lock lock_;
    runnable* head_ = nullptr;
    runnable* tail_ = nullptr;  // valid while head_ is not nullptr
    std::atomic<std::size_t> size_ = 0;
};

}  // namespace weft::inline v0::detail
