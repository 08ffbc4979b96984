// stack_cache.hpp - a few hot stacks in front of a shared source, for one owner.
//
// A worker or a loop owns one; taking a cached stack and giving it back touches no lock and no
// atomic.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <vector>

#include <weft/stack/stack_depot.hpp>

namespace weft::inline v0 {

/// Thread-safe: no; it belongs to whoever runs its owner.
class stack_cache final : public stack_source {
public:
    /// Keeps at most `capacity` stacks of each size class, the last given back first; half of them
    /// go to the source, or come from what that has idle, at a time.
    explicit stack_cache(stack_source& source = shared_stacks(), std::size_t capacity = 64);
    stack_cache(const stack_cache&) = delete;
    stack_cache& operator=(const stack_cache&) = delete;
    ~stack_cache() override;

    [[nodiscard]] stack take(std::size_t size) override;
    void give_back(stack taken) noexcept override;

    /// Gives every cached stack back to the source.
    void trim() noexcept;

    /// Stacks that it holds now.
    [[nodiscard]] std::size_t cached() const noexcept;

private:
    struct shelf {
        std::size_t size;
        std::vector<stack> stacks;  // capacity is reserved at construction
    };

    // From the source, what it has idle. False: nothing.
    [[nodiscard]] bool refill(shelf& s, std::size_t size) noexcept;
    void make_room(shelf& s) noexcept;

    stack_source& source_;
    std::size_t capacity_;
    std::array<shelf, 4> shelves_;
};

}  // namespace weft::inline v0
