// region.cpp - see region.hpp.
//
// SPDX-License-Identifier: Apache-2.0
#include "stack/region.hpp"

#include <mutex>

#include "stack/guard.hpp"

namespace weft::inline v0::detail {

namespace {

constinit std::atomic<region*> regions = nullptr;

// Who adds and removes; a handler takes no lock.
constinit std::mutex changing;
constinit region* free_ones = nullptr;  // guarded by it

struct found_region {
    std::byte* base = nullptr;  // nullptr: there is none
    std::size_t stride = 0;
};

found_region find(const std::byte* address) noexcept {
    for (region* node = regions.load(std::memory_order_acquire); node != nullptr;
         node = node->next) {
        const std::size_t size = node->size.load(std::memory_order_acquire);
        std::byte* const base = node->base.load(std::memory_order_relaxed);
        if (size != 0 && base != nullptr && address >= base && address < base + size)
            return {base, node->stride.load(std::memory_order_relaxed)};
    }
    return {};
}

}  // namespace

region* add_region(std::byte* base, std::size_t size, std::size_t stride) {
    const std::lock_guard lock(changing);
    region* const node = free_ones != nullptr ? free_ones : new region;
    const bool is_new = node != free_ones;
    if (!is_new) free_ones = node->next_free;
    node->base.store(base, std::memory_order_relaxed);
    node->stride.store(stride, std::memory_order_relaxed);
    node->size.store(size, std::memory_order_release);  // pairs with the acquire in find
    if (is_new) {
        node->next = regions.load(std::memory_order_relaxed);
        regions.store(node, std::memory_order_release);  // the same
    }
    return node;
}

void remove_region(region* gone) noexcept {
    const std::lock_guard lock(changing);
    gone->base.store(nullptr, std::memory_order_relaxed);
    gone->size.store(0, std::memory_order_release);
    gone->next_free = free_ones;
    free_ones = gone;
}

bool is_in_region(const std::byte* address) noexcept { return find(address).base != nullptr; }

stack stack_guarded_at(const std::byte* address) noexcept {
    const found_region found = find(address);
    if (found.base == nullptr || found.stride == 0) return {};
    const auto offset = static_cast<std::size_t>(address - found.base);
    if (offset % found.stride >= guard_size) return {};
    return {found.base + (offset - offset % found.stride) + guard_size, found.stride - guard_size};
}

}  // namespace weft::inline v0::detail
