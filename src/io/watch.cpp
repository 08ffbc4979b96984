// watch.cpp - the table of watches.
//
// SPDX-License-Identifier: Apache-2.0
#include "io/watch.hpp"

#include <mutex>
#include <new>
#include <type_traits>

namespace weft::inline v0::detail {

namespace {

struct free_chunk {
    void operator()(void* chunk) const noexcept {
        ::operator delete(chunk, std::align_val_t(alignof(watch)));
    }
};

}  // namespace

watch_table::~watch_table() {
    static_assert(std::is_trivially_destructible_v<watch>);
    for (auto& chunk : chunks_) free_chunk{}(chunk.load(std::memory_order_relaxed));
}

watch& watch_table::take() {
    for (;;) {
        std::size_t chunk = 0;
        {
            const std::lock_guard guard(lock_);
            if (watch* const one = free_) {
                free_ = one->next_free;
                one->early = nullptr;
                return *one;
            }
            chunk = where(made_).chunk;
            if (watch* const there = chunks_[chunk].load(std::memory_order_relaxed)) {
                watch& made = *::new (there + where(made_).within) watch;
                made.home = &home_;
                made.index = made_++;
                return made;
            }
        }
        // Never under the lock. Its places are made when they are taken: till then a large chunk
        // is no memory.
        std::unique_ptr<void, free_chunk> fresh(::operator new(
            (first_chunk << chunk) * sizeof(watch), std::align_val_t(alignof(watch))));
        const std::lock_guard guard(lock_);
        if (chunks_[chunk].load(std::memory_order_relaxed) == nullptr)
            chunks_[chunk].store(static_cast<watch*>(fresh.release()), std::memory_order_release);
    }
}

std::uint64_t watch_table::retire(watch& used) noexcept {
    const std::lock_guard guard(used.lock);
    const std::uint64_t key = used.key();
    ++used.generation;
    for (watch::side& one : used.sides) one.reset();
    return key;
}

void watch_table::give_back(watch& used) noexcept {
    const std::lock_guard guard(lock_);
    used.next_free = free_;
    free_ = &used;
}

}  // namespace weft::inline v0::detail
