// block_depot.hpp - memory for control blocks: a cache for each worker over a shared depot.
//
// A block may be given back on another worker than it was taken from, and outlive its executor
// while somebody holds a handle; so the memory belongs to nobody in particular. Where one worker
// starts fibers and another ends them, blocks go from cache to cache by the magazine: a full one
// is given to the depot and taken from it as a whole, for an empty one. A magazine holds addresses
// and touches no block: a block that another processor wrote last is fetched ahead of its turn.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>

#include <weft/base/version.hpp>

#include "base/prefetch.hpp"

namespace weft::inline v0::detail {

inline constexpr std::size_t block_step = 64;     // sizes are multiples of it
inline constexpr std::size_t block_classes = 12;  // larger ones come from operator new
inline constexpr std::size_t largest_block = block_step * block_classes;

constexpr std::size_t class_of_block(std::size_t size) noexcept {
    return (size + block_step - 1) / block_step - 1;
}

/// A piece of memory that was cut into blocks of one size. Neither it nor the memory is ever freed:
/// whoever reports finds the control blocks of all fibers so (fiber_census.hpp).
struct block_chunk {
    std::byte* memory;
    std::size_t block_size;
    std::size_t blocks;
    const block_chunk* next;
};
/// The one that was cut last, the others follow. Thread-safe.
[[nodiscard]] const block_chunk* block_chunks() noexcept;

struct block_magazine {
    static constexpr std::size_t full = 128;

    block_magazine* next = nullptr;  // in the depot
    std::size_t count = 0;
    std::array<void*, full> blocks;
};

/// Thread-safe: no; a worker owns it.
class block_cache {
public:
    block_cache() noexcept;
    block_cache(const block_cache&) = delete;
    block_cache& operator=(const block_cache&) = delete;
    ~block_cache();

    [[nodiscard, gnu::always_inline]] void* take(std::size_t size) {
        const std::size_t which = class_of_block(size);
        if (which >= block_classes) [[unlikely]]
            return take_slowly(size);
        block_magazine* const from = shelves_[which].current;
        if (from == nullptr || from->count <= fetched_ahead) [[unlikely]]
            return take_slowly(size);
        fetch(from->blocks[from->count - 1 - fetched_ahead]);
        return from->blocks[--from->count];
    }
    [[gnu::always_inline]] void give_back(void* memory, std::size_t size) noexcept {
        const std::size_t which = class_of_block(size);
        if (which >= block_classes) [[unlikely]]
            return give_back_slowly(memory, size);
        block_magazine* const to = shelves_[which].current;
        if (to == nullptr || to->count == block_magazine::full) [[unlikely]]
            return give_back_slowly(memory, size);
        to->blocks[to->count++] = memory;
    }

private:
    static constexpr std::size_t fetched_ahead = 4;
    // Of a control block all that is written at its birth.
    [[gnu::always_inline]] static void fetch(void* block) noexcept {
        for (std::size_t at = 0; at < 4 * block_step; at += block_step)
            prefetch_for_write(static_cast<std::byte*>(block) + at);
    }
    [[nodiscard]] void* take_slowly(std::size_t size);
    void give_back_slowly(void* memory, std::size_t size) noexcept;

    struct shelf {
        block_magazine* current = nullptr;
        block_magazine* spare = nullptr;  // empty or full
    };
    [[nodiscard]] static block_magazine& refilled(shelf& mine, std::size_t which);
    [[nodiscard]] static block_magazine* with_room(shelf& mine, std::size_t which) noexcept;

    std::array<shelf, block_classes> shelves_;
};

/// Straight from and to the depot. Thread-safe.
[[nodiscard]] void* take_block(std::size_t size);
void give_back_block(void* memory, std::size_t size) noexcept;

}  // namespace weft::inline v0::detail
