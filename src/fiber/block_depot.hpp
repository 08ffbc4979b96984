// block_depot.hpp - memory for control blocks: a cache for each worker over a shared depot.
//
// A block may be given back on another worker than it was taken from, and outlive its executor
// while somebody holds a handle; so the memory belongs to nobody in particular. Where one worker
// starts fibers and another ends them, blocks go from cache to cache by the magazine: a full one
// is given to the depot and taken from it as a whole.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>

#include <weft/base/version.hpp>

namespace weft::inline v0::detail {

inline constexpr std::size_t block_step = 64;     // sizes are multiples of it
inline constexpr std::size_t block_classes = 12;  // larger ones come from operator new

/// Thread-safe: no; a worker owns it.
class block_cache {
public:
    block_cache() = default;
    block_cache(const block_cache&) = delete;
    block_cache& operator=(const block_cache&) = delete;
    ~block_cache();

    [[nodiscard]] void* take(std::size_t size);
    void give_back(void* memory, std::size_t size) noexcept;

    // For the depot.
    struct free_block {
        free_block* next;
        free_block* next_magazine;  // of the first in a magazine that lies in the depot
    };
    struct magazine {
        free_block* first = nullptr;
        std::size_t count = 0;
    };
    static constexpr std::size_t full = 128;

private:
    struct shelf {
        magazine current;
        magazine spare;  // empty or full
    };
    std::array<shelf, block_classes> shelves_;
};

/// Straight from and to the depot. Thread-safe.
[[nodiscard]] void* take_block(std::size_t size);
void give_back_block(void* memory, std::size_t size) noexcept;

}  // namespace weft::inline v0::detail
