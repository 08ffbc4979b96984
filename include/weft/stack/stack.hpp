// stack.hpp - memory to run on, and the seam through which it comes.
//
// Whoever needs a stack asks a stack_source. Ours is the depot (stack_depot.hpp), with a cache
// object in front of it for each owner (stack_cache.hpp); a user may write another, and hand it to
// a coroutine, a generator, a loop or a pool. This part knows nothing of what runs on a stack.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include <weft/base/version.hpp>

namespace weft::inline v0 {

/// A piece of memory to run on. A value: it owns nothing.
struct stack {
    std::byte* low = nullptr;    // lowest usable address
    std::size_t size = 0;        // usable bytes, guard excluded
    void* tsan_fiber = nullptr;  // TSan builds: the fiber context kept with this stack, or nullptr

    /// One past the last byte, where it begins to be used.
    [[nodiscard]] std::byte* high() const noexcept { return low + size; }
    /// All of it.
    [[nodiscard]] std::span<std::byte> span() const noexcept { return {low, size}; }
    [[nodiscard]] explicit operator bool() const noexcept { return low != nullptr; }
};

/// Where stacks come from.
/// Thread-safety is the implementation's to state; coroutines use a source from whatever thread
/// they are made and destroyed on.
class stack_source {
public:
    virtual ~stack_source() = default;

    /// A stack of at least `size` usable bytes.
    /// Fails: std::bad_alloc when there is no memory, std::system_error with errno when the system
    /// refuses otherwise, std::invalid_argument for a size that makes no sense.
    [[nodiscard]] virtual stack take(std::size_t size) = 0;

    /// Takes back what take() gave, unchanged. Nothing runs on it any more.
    virtual void give_back(stack taken) noexcept = 0;

    /// For a cache, several at a time: stacks that take(size) could give without making any, the
    /// best last; says how many. None, unless a source knows better.
    [[nodiscard]] virtual std::size_t take_idle(std::size_t size, std::span<stack> into) noexcept;
    /// give_back() of each, in order.
    virtual void give_back_all(std::span<const stack> taken) noexcept;
};

/// The size of stack that everything in weft uses unless told otherwise: 64 KiB, more in builds
/// whose frames are larger (four times as much under ASan, twice under TSan and in dev builds).
[[nodiscard]] std::size_t default_stack_size() noexcept;

/// The depot that everything in weft uses unless given a source. Never destroyed.
/// Thread-safe.
[[nodiscard]] stack_source& shared_stacks() noexcept;

}  // namespace weft::inline v0
