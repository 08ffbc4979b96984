// block_depot.cpp - see block_depot.hpp.
//
// SPDX-License-Identifier: Apache-2.0
#include "fiber/block_depot.hpp"

#include <mutex>
#include <new>

namespace weft::inline v0::detail {

// Chunks are never given back: the next fibers will need them.
class block_depot {
public:
    static block_depot& shared() {
        static block_depot* const depot =
            new block_depot;  // never destroyed: fibers may outlive us
        return *depot;
    }

    // A batch, linked; at least one.
    block_cache::shelf take(std::size_t which, std::size_t wanted) {
        const std::lock_guard lock(mutex_);
        block_cache::shelf& all = shelves_[which];
        block_cache::shelf batch;
        while (batch.count < wanted) {
            if (all.first == nullptr) {
                if (batch.count != 0) break;
                cut_chunk(which);
            }
            block_cache::free_block* const block = all.first;
            all.first = block->next;
            --all.count;
            block->next = batch.first;
            batch.first = block;
            ++batch.count;
        }
        return batch;
    }

    void give_back(std::size_t which, block_cache::free_block* first) noexcept {
        const std::lock_guard lock(mutex_);
        while (first != nullptr) {
            block_cache::free_block* const next = first->next;
            first->next = shelves_[which].first;
            shelves_[which].first = first;
            ++shelves_[which].count;
            first = next;
        }
    }

private:
    static constexpr std::size_t chunk_size = 64 * 1024;

    void cut_chunk(std::size_t which) {
        const std::size_t size = (which + 1) * block_step;
        auto* const chunk =
            static_cast<std::byte*>(::operator new(chunk_size, std::align_val_t(block_step)));
        for (std::size_t at = chunk_size / size; at-- > 0;) {
            auto* const block = reinterpret_cast<block_cache::free_block*>(chunk + at * size);
            block->next = shelves_[which].first;
            shelves_[which].first = block;
            ++shelves_[which].count;
        }
    }

    std::mutex mutex_;
    std::array<block_cache::shelf, block_classes> shelves_;
};

namespace {

constexpr std::size_t batch = 64;

constexpr std::size_t class_of(std::size_t size) {
    return (size + block_step - 1) / block_step - 1;
}

}  // namespace

block_cache::~block_cache() {
    for (std::size_t which = 0; which < block_classes; ++which)
        if (shelves_[which].first != nullptr)
            block_depot::shared().give_back(which, shelves_[which].first);
}

void* block_cache::take(std::size_t size) {
    const std::size_t which = class_of(size);
    if (which >= block_classes) return ::operator new(size, std::align_val_t(block_step));
    shelf& mine = shelves_[which];
    if (mine.first == nullptr) mine = block_depot::shared().take(which, batch);
    free_block* const taken = mine.first;
    mine.first = taken->next;
    --mine.count;
    return taken;
}

void block_cache::give_back(void* memory, std::size_t size) noexcept {
    const std::size_t which = class_of(size);
    if (which >= block_classes) return ::operator delete(memory, std::align_val_t(block_step));
    shelf& mine = shelves_[which];
    auto* const given = static_cast<free_block*>(memory);
    given->next = mine.first;
    mine.first = given;
    ++mine.count;
}

void* take_block(std::size_t size) {
    const std::size_t which = class_of(size);
    if (which >= block_classes) return ::operator new(size, std::align_val_t(block_step));
    return block_depot::shared().take(which, 1).first;
}

void give_back_block(void* memory, std::size_t size) noexcept {
    const std::size_t which = class_of(size);
    if (which >= block_classes) return ::operator delete(memory, std::align_val_t(block_step));
    auto* const given = static_cast<block_cache::free_block*>(memory);
    given->next = nullptr;
    block_depot::shared().give_back(which, given);
}

}  // namespace weft::inline v0::detail
