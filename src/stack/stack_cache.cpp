// stack_cache.cpp - see stack_cache.hpp.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/stack/stack_cache.hpp>

#include "stack/sizes.hpp"

namespace weft::inline v0 {

stack_cache::stack_cache(stack_source& source, std::size_t capacity)
    : source_(source), capacity_(capacity) {
    for (std::size_t i = 0; i < shelves_.size(); ++i) {
        shelves_[i].size = stack_depot::size_classes()[i];
        shelves_[i].stacks.reserve(capacity);
    }
}

stack_cache::~stack_cache() { trim(); }

// A shelf is found by the size of the stacks on it, so a request is first rounded as the depot
// rounds it; with a source that rounds otherwise nothing is found, and the request goes through. So
// does one that is too small to make sense, for the source to refuse.
stack stack_cache::take(std::size_t size) {
    const std::size_t scale = stack_depot::size_classes()[1] / default_stack_size();
    for (shelf& s : shelves_) {
        if (size > s.size / scale) continue;
        if (s.stacks.empty() || size < detail::smallest_size) break;
        const stack hot = s.stacks.back();
        s.stacks.pop_back();
        return hot;
    }
    return source_.take(size);
}

void stack_cache::give_back(stack taken) noexcept {
    for (shelf& s : shelves_) {
        if (taken.size != s.size) continue;
        if (s.stacks.size() == capacity_) break;
        s.stacks.push_back(taken);  // within the reserved capacity
        return;
    }
    source_.give_back(taken);
}

void stack_cache::trim() noexcept {
    for (shelf& s : shelves_) {
        for (const stack& idle : s.stacks) source_.give_back(idle);
        s.stacks.clear();
    }
}

std::size_t stack_cache::cached() const noexcept {
    std::size_t sum = 0;
    for (const shelf& s : shelves_) sum += s.stacks.size();
    return sum;
}

}  // namespace weft::inline v0
