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
        if (size < detail::smallest_size || (s.stacks.empty() && !refill(s, size))) break;
        const stack hot = s.stacks.back();
        s.stacks.pop_back();
        return hot;
    }
    return source_.take(size);
}

void stack_cache::give_back(stack taken) noexcept {
    for (shelf& s : shelves_) {
        if (taken.size != s.size) continue;
        if (capacity_ == 0) break;
        if (s.stacks.size() == capacity_) make_room(s);
        s.stacks.push_back(taken);  // within the reserved capacity
        return;
    }
    source_.give_back(taken);
}

// Several at a time: the source has a lock, and those who would wait for it.
bool stack_cache::refill(shelf& s, std::size_t size) noexcept {
    s.stacks.resize(capacity_ / 2);
    s.stacks.resize(source_.take_idle(size, s.stacks));
    return !s.stacks.empty();
}

void stack_cache::make_room(shelf& s) noexcept {
    const auto eldest = std::span(s.stacks).first((capacity_ + 1) / 2);
    source_.give_back_all(eldest);
    s.stacks.erase(s.stacks.begin(), s.stacks.begin() + static_cast<std::ptrdiff_t>(eldest.size()));
}

void stack_cache::trim() noexcept {
    for (shelf& s : shelves_) {
        source_.give_back_all(s.stacks);
        s.stacks.clear();
    }
}

std::size_t stack_cache::cached() const noexcept {
    std::size_t sum = 0;
    for (const shelf& s : shelves_) sum += s.stacks.size();
    return sum;
}

}  // namespace weft::inline v0
