// watch.cpp - the table of watches.
//
// SPDX-License-Identifier: Apache-2.0
#include "io/watch.hpp"

#include <mutex>

namespace weft::inline v0::detail {

watch_table::~watch_table() {
    for (auto& chunk : chunks_) delete[] chunk.load(std::memory_order_relaxed);
}

watch& watch_table::take() {
    for (;;) {
        std::size_t chunk = 0;
        {
            const std::lock_guard guard(lock_);
            if (watch* const one = free_) {
                free_ = one->next_free;
                return *one;
            }
            chunk = where(made_).chunk;
            if (watch* const there = chunks_[chunk].load(std::memory_order_relaxed)) {
                watch& made = there[where(made_).within];
                made.home = &home_;
                made.index = made_++;
                return made;
            }
        }
        auto fresh = std::make_unique<watch[]>(first_chunk << chunk);  // never under the lock
        const std::lock_guard guard(lock_);
        if (chunks_[chunk].load(std::memory_order_relaxed) == nullptr)
            chunks_[chunk].store(fresh.release(), std::memory_order_release);
    }
}

std::uint64_t watch_table::retire(watch& used) noexcept {
    const std::lock_guard guard(used.lock);
    const std::uint64_t key = used.key();
    ++used.generation;
    for (watch::side& one : used.sides) one = {};
    return key;
}

void watch_table::give_back(watch& used) noexcept {
    const std::lock_guard guard(lock_);
    used.next_free = free_;
    free_ = &used;
}

}  // namespace weft::inline v0::detail
