// stack_depot.hpp - guarded stacks in large reservations, used again in the order last in, first
// out.
//
// A depot reserves address space a gigabyte at a time, without committing memory, and cuts it into
// slots: a guard below, the stack above. A million guarded stacks cost no more mappings than one
// where the kernel has MADV_GUARD_INSTALL. A stack that was given back is the next one taken, its
// pages still warm.
//
//     stack_depot depot;
//     stack s = depot.take(64 * 1024);
//     ...
//     depot.give_back(s);
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include <weft/stack/stack.hpp>

namespace weft::inline v0 {

/// How the memory below a stack is made inaccessible.
enum class guard_kind : unsigned char {
    best,     // install where a probe says that it works, else protect
    install,  // MADV_GUARD_INSTALL: markers in the page table, no mapping of its own
    protect,  // mprotect: two mappings a stack, of which the system allows some 65,000
};

/// What a depot can be told at its creation.
struct stack_depot_options {
    /// How its stacks are guarded.
    guard_kind guard = guard_kind::best;
    /// Address space reserved at a time; at most 16 MiB where the system counts all of it as used
    /// (vm.overcommit_memory=2), or makes memory of it at once (mlockall(MCL_FUTURE)).
    std::size_t chunk_size = std::size_t{1} << 30;
};

/// What a depot has.
struct stack_counters {
    std::size_t live = 0;                 // taken and not given back, those in caches included
    std::size_t idle = 0;                 // given back and ready to be taken
    std::size_t reserved_bytes = 0;       // address space, guards included
    std::size_t mapped = 0;               // how many reservations that is
    guard_kind guard = guard_kind::best;  // the kind in use
};

/// Thread-safe: all members, from any thread.
class stack_depot final : public stack_source {
public:
    /// The sizes that are pooled, in bytes (scaled as default_stack_size() is). A larger request
    /// gets a mapping of its own, which ends when it is given back.
    static const std::array<std::size_t, 4>& size_classes() noexcept;

    explicit stack_depot(stack_depot_options options = {});
    stack_depot(const stack_depot&) = delete;
    stack_depot& operator=(const stack_depot&) = delete;
    /// Aborts, naming the rule, if a stack was not given back.
    ~stack_depot() override;

    /// Rounded up to a size class. Fails: as stack_source::take(), and changes nothing if it does.
    [[nodiscard]] stack take(std::size_t size) override;
    void give_back(stack taken) noexcept override;
    /// At most half of those that are idle, so that others find some, too.
    [[nodiscard]] std::size_t take_idle(std::size_t size, std::span<stack> into) noexcept override;
    void give_back_all(std::span<const stack> taken) noexcept override;

    /// Lets the kernel take the memory of idle stacks (MADV_FREE: at once only if it needs it), and
    /// returns how many stacks that were. Their address space and guards stay.
    std::size_t trim() noexcept;

    /// As it is now.
    [[nodiscard]] stack_counters counters() const noexcept;

private:
    struct implementation;
    std::unique_ptr<implementation> implementation_;
};

/// The depot behind shared_stacks(), for its counters and trim().
[[nodiscard]] stack_depot& shared_stack_depot() noexcept;

}  // namespace weft::inline v0
