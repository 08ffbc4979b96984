// region.cpp - see region.hpp.
//
// SPDX-License-Identifier: Apache-2.0
#include "stack/region.hpp"

#include "stack/guard.hpp"

namespace weft::inline v0::detail {

namespace {
constinit std::atomic<region*> regions = nullptr;

bool claim(region& node, std::size_t size) noexcept {
    std::size_t none = 0;
    return node.size.compare_exchange_strong(none, size, std::memory_order_acq_rel);
}
}  // namespace

region* add_region(std::byte* base, std::size_t size, std::size_t stride) {
    region* node = regions.load(std::memory_order_acquire);
    while (node != nullptr && !claim(*node, size)) node = node->next;
    const bool is_new = node == nullptr;
    if (is_new) node = new region;
    node->base.store(base, std::memory_order_relaxed);
    node->stride.store(stride, std::memory_order_relaxed);
    node->size.store(size,
                     std::memory_order_release);  // pairs with the acquire in stack_guarded_at
    if (is_new) {
        node->next = regions.load(std::memory_order_relaxed);
        while (!regions.compare_exchange_weak(node->next, node, std::memory_order_release,
                                              std::memory_order_relaxed)) {}
    }
    return node;
}

void remove_region(region* gone) noexcept { gone->size.store(0, std::memory_order_release); }

stack stack_guarded_at(const std::byte* address) noexcept {
    for (region* node = regions.load(std::memory_order_acquire); node != nullptr;
         node = node->next) {
        const std::size_t size = node->size.load(std::memory_order_acquire);
        std::byte* base = node->base.load(std::memory_order_relaxed);
        const std::size_t stride = node->stride.load(std::memory_order_relaxed);
        if (size == 0 || stride == 0 || address < base || address >= base + size) continue;
        const auto offset = static_cast<std::size_t>(address - base);
        if (offset % stride >= guard_size) return {};
        return {base + (offset - offset % stride) + guard_size, stride - guard_size};
    }
    return {};
}

}  // namespace weft::inline v0::detail
