// shared_stack_set.hpp - the stacks that the swapped fibers of a worker share.
//
// Several, so that a few fibers that talk to each other do not have to make room for each other:
// those that begin get them in turn. A fiber that stops goes straight on with one on another stack,
// and makes room for it there; by its worker it goes only to one on its own (leaving.hpp).
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include <weft/coroutine/shared_stack.hpp>

namespace weft::inline v0::detail {

/// Thread-safe: no; it is its worker's.
class shared_stack_set {
public:
    /// For one that begins.
    /// Fails: as the source does, if there is no stack at all.
    [[nodiscard]] shared_stack& next(stack_source* source);
    /// Whether that is an address in one of them.
    [[nodiscard]] bool holds(const void* address) const noexcept;

    static constexpr std::size_t most = 16;

private:
    [[nodiscard]] bool add(stack_source* source);

    std::vector<std::unique_ptr<shared_stack>> all_;
    std::size_t given_ = 0;
    const std::byte* lowest_ = nullptr;
    const std::byte* highest_ = nullptr;
};

}  // namespace weft::inline v0::detail
