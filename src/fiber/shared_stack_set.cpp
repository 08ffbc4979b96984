// shared_stack_set.cpp - see shared_stack_set.hpp.
//
// SPDX-License-Identifier: Apache-2.0
#include "fiber/shared_stack_set.hpp"

#include <algorithm>
#include <new>

namespace weft::inline v0::detail {

namespace {
// What is in use at the tops of two stacks shares few sets of the cache.
constexpr std::size_t colour = 5 * 64;
}  // namespace

shared_stack& shared_stack_set::next(stack_source* source) {
    if (all_.size() < most && !add(source) && all_.empty()) throw std::bad_alloc();
    return *all_[given_++ % all_.size()];
}

// False: there is no memory for one more.
bool shared_stack_set::add(stack_source* source) {
    try {
        all_.reserve(most);
        all_.push_back(std::make_unique<shared_stack>(
            shared_stack_options{.unused = colour * all_.size(), .stacks = source}));
    } catch (const std::bad_alloc&) { return false; }
    const stack added = all_.back()->where();
    lowest_ = lowest_ == nullptr ? added.low : std::min<const std::byte*>(lowest_, added.low);
    highest_ = std::max<const std::byte*>(highest_, added.high());
    return true;
}

bool shared_stack_set::holds(const void* address) const noexcept {
    if (address < lowest_ || address >= highest_) [[likely]]
        return false;
    return std::ranges::any_of(all_, [address](const auto& one) {
        const stack where = one->where();
        return address >= where.low && address < where.high();
    });
}

}  // namespace weft::inline v0::detail
