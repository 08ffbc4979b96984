// overflow_list.hpp - runnables of a pool that are in no worker's queue: from other threads, and
// what did not fit. First in, first out, by the batch.
//
// What did not fit comes from a ring and goes to a ring, many at a time. To walk a list of
// runnables that nobody has touched for long is to wait for memory at each; so a batch is given
// and taken as a whole, with the lock held for a few instructions, and each in it knows the one
// `distance` places behind it, to be fetched ahead while whoever took the batch walks along:
//
//   batch:  a -> b -> c -> d -> ...       next_node
//           a ------------------> i       ahead_node; nullptr near the end, and in batches that
//           were
//                                         put together one by one
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <span>

#include <weft/exec/runnable.hpp>

#include "base/spin_lock.hpp"

namespace weft::inline v0::detail {

struct runnable_batch {
    runnable* first = nullptr;  // linked by next_node
    runnable* last = nullptr;
    std::size_t size = 0;
};

/// Takes the first out of a batch that is not empty.
[[nodiscard]] inline runnable* take_first(runnable_batch& batch) noexcept {
    runnable* const r = batch.first;
    __builtin_prefetch(r->ahead_node, 1);
    batch.first = r->next_node;
    --batch.size;
    return r;
}

/// Thread-safe: all members.
class overflow_list {
public:
    overflow_list() : batches_(std::make_unique_for_overwrite<runnable_batch[]>(capacity)) {}

    /// From other threads, one by one.
    void push(runnable* r) noexcept {
        r->next_node = r->ahead_node = nullptr;
        add({r, r, 1});
    }

    void push(std::span<runnable* const> all) noexcept {
        if (all.empty()) return;
        for (std::size_t i = 0; i < all.size(); ++i) {
            all[i]->next_node = i + 1 < all.size() ? all[i + 1] : nullptr;
            all[i]->ahead_node = i + distance < all.size() ? all[i + distance] : nullptr;
        }
        add({all.front(), all.back(), all.size()});
    }

    /// The eldest batch; empty if there is none. A batch of which something is left is pushed back.
    [[nodiscard]] runnable_batch take() noexcept {
        if (empty()) return {};
        const std::lock_guard guard(lock_);
        if (first_ == last_) return {};
        const runnable_batch taken = batches_[first_++ % capacity];
        size_.store(size_.load(std::memory_order_relaxed) - taken.size, std::memory_order_relaxed);
        return taken;
    }
    void push_back(const runnable_batch& rest) noexcept {
        const std::lock_guard guard(lock_);
        if (last_ - first_ == capacity) {
            runnable_batch& eldest = batches_[first_ % capacity];
            rest.last->next_node = eldest.first;
            eldest = {rest.first, eldest.last, rest.size + eldest.size};
        } else {
            batches_[--first_ % capacity] = rest;
        }
        grow(rest.size);
    }

    /// seq_cst: the second half of parking (parking.hpp).
    [[nodiscard]] bool empty() const noexcept { return size() == 0; }
    [[nodiscard]] std::size_t size() const noexcept {
        return size_.load(std::memory_order_seq_cst);
    }

private:
    static constexpr std::size_t capacity = 1024;  // batches
    static constexpr std::size_t distance = 8;
    static constexpr std::size_t small = 64;  // what comes one by one is put together up to this

    // With no place left the last batch takes it in.
    void add(const runnable_batch& more) noexcept {
        const std::lock_guard guard(lock_);
        runnable_batch& last = batches_[(last_ - 1) % capacity];
        const bool full = last_ - first_ == capacity;
        if (last_ != first_ && (full || (more.size == 1 && last.size < small))) {
            last.last->next_node = more.first;
            last = {last.first, more.last, last.size + more.size};
        } else {
            batches_[last_++ % capacity] = more;
        }
        grow(more.size);
    }
    void grow(std::size_t count) noexcept {
        size_.store(size_.load(std::memory_order_relaxed) + count, std::memory_order_seq_cst);
    }

    spin_lock lock_;
    // Guarded by it; the counters run through.
    std::size_t first_ = 0;
    std::size_t last_ = 0;
    std::unique_ptr<runnable_batch[]> batches_;
    alignas(64) std::atomic<std::size_t> size_ = 0;
};

}  // namespace weft::inline v0::detail
