// block_depot.cpp - see block_depot.hpp.
//
// SPDX-License-Identifier: Apache-2.0
#include "fiber/block_depot.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <new>
#include <utility>

#include "fiber/fiber_census.hpp"

// The last chunk. By a name that a debugger finds: tools/weft-gdb.py looks there, too.
extern "C" {
extern constinit std::atomic<const weft::detail::block_chunk*> weft_v0_block_chunks;
constinit std::atomic<const weft::detail::block_chunk*> weft_v0_block_chunks = nullptr;
}

namespace weft::inline v0::detail {

namespace {

// Chunks are never given back: the next fibers will need them.
class block_depot {
public:
    static block_depot& shared() {
        static block_depot* const depot =
            new block_depot;  // never destroyed: fibers may outlive us
        return *depot;
    }

    /// A full one for an empty one (or nullptr), or at least one with something in it.
    block_magazine& exchange_empty(std::size_t which, block_magazine* empty) {
        const std::lock_guard lock(mutex_);
        shelf& all = shelves_[which];
        if (all.full != nullptr) {
            if (empty != nullptr) push(empties_, *empty);
            return pop(all.full);
        }
        if (all.loose == nullptr) cut_chunk(which);
        if (empty == nullptr) empty = empties_ != nullptr ? &pop(empties_) : new block_magazine;
        while (all.loose != nullptr && empty->count < block_magazine::full)
            empty->blocks[empty->count++] = std::exchange(all.loose, all.loose->next);
        return *empty;
    }

    /// An empty one for a full one (or nullptr); nullptr: there is no memory, and the full one
    /// stays the caller's.
    block_magazine* exchange_full(std::size_t which, block_magazine* full) noexcept {
        const std::lock_guard lock(mutex_);
        block_magazine* const empty =
            empties_ != nullptr ? &pop(empties_) : new (std::nothrow) block_magazine;
        if (empty != nullptr && full != nullptr) push(shelves_[which].full, *full);
        return empty;
    }

    /// What is in it, and the magazine.
    void give_back(std::size_t which, block_magazine* given) noexcept {
        if (given == nullptr) return;
        const std::lock_guard lock(mutex_);
        while (given->count != 0) give_loose(which, given->blocks[--given->count]);
        push(empties_, *given);
    }

    void* take_one(std::size_t which) {
        const std::lock_guard lock(mutex_);
        shelf& all = shelves_[which];
        if (all.loose == nullptr && all.full != nullptr) {
            block_magazine& one = pop(all.full);
            while (one.count != 0) give_loose(which, one.blocks[--one.count]);
            push(empties_, one);
        }
        if (all.loose == nullptr) cut_chunk(which);
        return std::exchange(all.loose, all.loose->next);
    }

    void give_back_one(std::size_t which, void* block) noexcept {
        const std::lock_guard lock(mutex_);
        give_loose(which, block);
    }

private:
    static constexpr std::size_t chunk_size = 64 * 1024;
    // With so much cut already, a chunk is one huge page, where the system has them: a hundred
    // thousand blocks are more pages than the processor knows the places of.
    static constexpr std::size_t huge_chunk_size = 2 * 1024 * 1024;

    struct loose_block {
        loose_block* next;
    };
    struct shelf {
        block_magazine* full = nullptr;
        loose_block* loose = nullptr;
        std::size_t cut = 0;  // bytes
    };

    static void push(block_magazine*& list, block_magazine& one) noexcept {
        one.next = std::exchange(list, &one);
    }
    static block_magazine& pop(block_magazine*& list) noexcept {
        return *std::exchange(list, list->next);
    }
    void give_loose(std::size_t which, void* block) noexcept {
        auto* const given = ::new (block) loose_block;
        given->next = std::exchange(shelves_[which].loose, given);
    }

    void cut_chunk(std::size_t which) {
        const std::size_t size = (which + 1) * block_step;
        const bool is_huge = shelves_[which].cut >= huge_chunk_size;
        const std::size_t bytes = is_huge ? huge_chunk_size : chunk_size;
        const std::size_t count = bytes / size;
        auto known = std::make_unique<block_chunk>(nullptr, size, count, block_chunks());
        known->memory = static_cast<std::byte*>(
            ::operator new(bytes, std::align_val_t(is_huge ? huge_chunk_size : block_step)));
        if (is_huge) ::madvise(known->memory, bytes, MADV_HUGEPAGE);  // if it is refused, so be it
        shelves_[which].cut += bytes;
        for (std::size_t at = count; at-- > 0;) {
            std::byte* const block = known->memory + at * size;
            if (may_hold_fiber(size)) mark_no_fiber(block);
            give_loose(which, block);
        }
        weft_v0_block_chunks.store(known.release(), std::memory_order_release);
    }

    std::mutex mutex_;
    std::array<shelf, block_classes> shelves_;
    block_magazine* empties_ = nullptr;
};

}  // namespace

// A worker that ends a fiber that was started elsewhere must not allocate for that: it has room for
// control blocks with small callables from the beginning.
block_cache::block_cache() noexcept {
    for (std::size_t which = class_of_block(256); which <= class_of_block(512); ++which)
        shelves_[which].current = block_depot::shared().exchange_full(which, nullptr);
}

block_cache::~block_cache() {
    for (std::size_t which = 0; which < block_classes; ++which)
        for (block_magazine* const one : {shelves_[which].current, shelves_[which].spare})
            block_depot::shared().give_back(which, one);
}

// Nothing is left in the current one.
block_magazine& block_cache::refilled(shelf& mine, std::size_t which) {
    if (mine.spare != nullptr && mine.spare->count != 0)
        std::swap(mine.current, mine.spare);
    else
        mine.current = &block_depot::shared().exchange_empty(which, mine.current);
    return *mine.current;
}

// The current one is full. nullptr: there is no memory for another.
block_magazine* block_cache::with_room(shelf& mine, std::size_t which) noexcept {
    block_magazine* empty = mine.spare;
    if (empty == nullptr || empty->count != 0) {
        empty = block_depot::shared().exchange_full(which, mine.spare);
        if (empty == nullptr) return nullptr;
    }
    mine.spare = std::exchange(mine.current, empty);
    return empty;
}

void* block_cache::take_slowly(std::size_t size) {
    const std::size_t which = class_of_block(size);
    if (which >= block_classes) return ::operator new(size, std::align_val_t(block_step));
    shelf& mine = shelves_[which];
    block_magazine* from = mine.current;
    if (from == nullptr || from->count == 0) from = &refilled(mine, which);
    return from->blocks[--from->count];
}

void block_cache::give_back_slowly(void* memory, std::size_t size) noexcept {
    const std::size_t which = class_of_block(size);
    if (which >= block_classes) return ::operator delete(memory, std::align_val_t(block_step));
    shelf& mine = shelves_[which];
    block_magazine* to = mine.current;
    if (to == nullptr || to->count == block_magazine::full) [[unlikely]] {
        to = with_room(mine, which);
        if (to == nullptr) return block_depot::shared().give_back_one(which, memory);
    }
    to->blocks[to->count++] = memory;
}

// acquire: what a chunk says, and the marks in it, were written before it could be found.
const block_chunk* block_chunks() noexcept {
    return weft_v0_block_chunks.load(std::memory_order_acquire);
}

void* take_block(std::size_t size) {
    const std::size_t which = class_of_block(size);
    if (which >= block_classes) return ::operator new(size, std::align_val_t(block_step));
    return block_depot::shared().take_one(which);
}

void give_back_block(void* memory, std::size_t size) noexcept {
    const std::size_t which = class_of_block(size);
    if (which >= block_classes) return ::operator delete(memory, std::align_val_t(block_step));
    block_depot::shared().give_back_one(which, memory);
}

}  // namespace weft::inline v0::detail
