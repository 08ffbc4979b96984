// block_depot.cpp - see block_depot.hpp.
//
// SPDX-License-Identifier: Apache-2.0
#include "fiber/block_depot.hpp"

#include <mutex>
#include <new>
#include <utility>

namespace weft::inline v0::detail {

// Chunks are never given back: the next fibers will need them.
class block_depot {
public:
    static block_depot& shared() {
        static block_depot* const depot =
            new block_depot;  // never destroyed: fibers may outlive us
        return *depot;
    }

    // A full one if there is any, else some; at least one.
    block_cache::magazine take(std::size_t which) {
        const std::lock_guard lock(mutex_);
        shelf& all = shelves_[which];
        if (block_cache::free_block* const first = all.magazines) {
            all.magazines = first->next_magazine;
            return {first, block_cache::full};
        }
        if (all.loose == nullptr) cut_chunk(which);
        block_cache::magazine some;
        while (all.loose != nullptr && some.count < block_cache::full) push(some, pop(all.loose));
        return some;
    }

    void* take_one(std::size_t which) {
        const std::lock_guard lock(mutex_);
        shelf& all = shelves_[which];
        if (all.loose == nullptr && all.magazines != nullptr) {
            all.loose = all.magazines;
            all.magazines = all.magazines->next_magazine;
        }
        if (all.loose == nullptr) cut_chunk(which);
        return pop(all.loose);
    }

    void give_back(std::size_t which, const block_cache::magazine& given) noexcept {
        const std::lock_guard lock(mutex_);
        shelf& all = shelves_[which];
        if (given.count == block_cache::full) {
            given.first->next_magazine = all.magazines;
            all.magazines = given.first;
            return;
        }
        block_cache::free_block* rest = given.first;
        while (rest != nullptr) push(all.loose, pop(rest));
    }

    static block_cache::free_block* pop(block_cache::free_block*& list) noexcept {
        return std::exchange(list, list->next);
    }
    static void push(block_cache::free_block*& list, block_cache::free_block* block) noexcept {
        block->next = std::exchange(list, block);
    }
    static void push(block_cache::magazine& into, block_cache::free_block* block) noexcept {
        push(into.first, block);
        ++into.count;
    }

private:
    static constexpr std::size_t chunk_size = 64 * 1024;

    struct shelf {
        block_cache::free_block* magazines = nullptr;
        block_cache::free_block* loose = nullptr;
    };

    void cut_chunk(std::size_t which) {
        const std::size_t size = (which + 1) * block_step;
        auto* const chunk =
            static_cast<std::byte*>(::operator new(chunk_size, std::align_val_t(block_step)));
        for (std::size_t at = chunk_size / size; at-- > 0;)
            push(shelves_[which].loose,
                 reinterpret_cast<block_cache::free_block*>(chunk + at * size));
    }

    std::mutex mutex_;
    std::array<shelf, block_classes> shelves_;
};

namespace {

constexpr std::size_t class_of(std::size_t size) {
    return (size + block_step - 1) / block_step - 1;
}

}  // namespace

block_cache::~block_cache() {
    for (std::size_t which = 0; which < block_classes; ++which)
        for (const magazine& one : {shelves_[which].current, shelves_[which].spare})
            if (one.first != nullptr) block_depot::shared().give_back(which, one);
}

void* block_cache::take(std::size_t size) {
    const std::size_t which = class_of(size);
    if (which >= block_classes) return ::operator new(size, std::align_val_t(block_step));
    shelf& mine = shelves_[which];
    if (mine.current.first == nullptr) [[unlikely]] {
        mine.current = mine.spare.first != nullptr ? std::exchange(mine.spare, {})
                                                   : block_depot::shared().take(which);
    }
    --mine.current.count;
    return block_depot::pop(mine.current.first);
}

void block_cache::give_back(void* memory, std::size_t size) noexcept {
    const std::size_t which = class_of(size);
    if (which >= block_classes) return ::operator delete(memory, std::align_val_t(block_step));
    shelf& mine = shelves_[which];
    if (mine.current.count == full) [[unlikely]] {
        if (mine.spare.first != nullptr) block_depot::shared().give_back(which, mine.spare);
        mine.spare = std::exchange(mine.current, {});
    }
    block_depot::push(mine.current, static_cast<free_block*>(memory));
}

void* take_block(std::size_t size) {
    const std::size_t which = class_of(size);
    if (which >= block_classes) return ::operator new(size, std::align_val_t(block_step));
    return block_depot::shared().take_one(which);
}

void give_back_block(void* memory, std::size_t size) noexcept {
    const std::size_t which = class_of(size);
    if (which >= block_classes) return ::operator delete(memory, std::align_val_t(block_step));
    auto* const given = static_cast<block_cache::free_block*>(memory);
    given->next = nullptr;
    block_depot::shared().give_back(which, {given, 1});
}

}  // namespace weft::inline v0::detail
