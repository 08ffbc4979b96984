// fiber_front.hpp - the part of a fiber's control block that a wait looks at before it leaves.
//
// The whole is fiber_block (src/fiber/fiber_block.hpp, which has the picture): this is what it
// begins with. It is here because a wait that goes the straight way is inlined up to the point at
// which it leaves (straight_wait.hpp). Nothing outside of the library may touch it.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <source_location>

#include <weft/base/activity.hpp>
#include <weft/base/thread_block.hpp>
#include <weft/exec/executor.hpp>
#include <weft/exec/worker.hpp>
#include <weft/fiber/detail/birth.hpp>
#include <weft/fiber/detail/isolation.hpp>
#include <weft/fiber/detail/permit.hpp>
#include <weft/fiber/waiter.hpp>

namespace weft::inline v0::detail {

struct fiber_extras;

/// Why the next wait of a fiber may not take the straight way. Others set only `cancelled`.
enum attention : std::uint8_t {
    cancelled_bit = 1,
    hook_bit = 2,
    no_suspend_bit = 4,
    apart_bit = 8,        // not listed yet, or not of kind own, or not on a loop
    unarmed_bit = 16,     // a deadline scope whose timer is armed when it first waits
    unenlisted_bit = 32,  // a child that its group is told of when it first waits
};

/// How it was born, in the two bytes that a runnable leaves free: so it is a base.
struct fiber_marks {
    static constexpr std::size_t unit = 8;
    enum : std::uint8_t {
        stays_put = 1,     // pinned
        common_stack = 2,  // of the default size, from the worker's own cache
        of_group = 4,      // a child of a task group
        trivial = 8,       // its callable needs no destructor
        far = 16,          // not to be found by a census: it is listed from its birth
    };

    [[nodiscard]] bool pinned() const noexcept { return (marks & stays_put) != 0; }
    [[nodiscard]] bool plain_stack() const noexcept { return (marks & common_stack) != 0; }
    [[nodiscard]] bool is_child() const noexcept { return (marks & of_group) != 0; }
    [[nodiscard]] bool is_trivial() const noexcept { return (marks & trivial) != 0; }
    [[nodiscard]] bool is_far() const noexcept { return (marks & far) != 0; }

    std::uint8_t callable_at;  // in units
    std::uint8_t marks;
};

/// The wait_reason of a block that is no fiber: not started yet by start_fiber(), or ended.
inline constinit const wait_reason no_fiber{"is no fiber"};

/// A reason that counts only while the wait word says that the fiber waits: it need not be taken
/// back.
[[nodiscard, gnu::always_inline]] inline const wait_reason* standing(
    const wait_reason* reason) noexcept {
    return reinterpret_cast<const wait_reason*>(reinterpret_cast<std::uintptr_t>(reason) + 1U);
}
/// What such a one, or any other, means.
[[nodiscard]] inline const wait_reason* meant_by(const wait_reason* reason, bool waits) noexcept {
    const auto bits = reinterpret_cast<std::uintptr_t>(reason);
    if ((bits & 1U) == 0) return reason;
    return waits ? reinterpret_cast<const wait_reason*>(bits - 1U) : nullptr;
}
static_assert(alignof(wait_reason) > 1);

using fiber_permit = basic_permit<std::atomic, publisher_spin>;

/// Whose fiber it is. A base, so that it stands beside the waiter: a waker asks for both.
struct fiber_home {
    executor* home;
};

struct fiber_front : runnable, fiber_marks, waiter, fiber_permit, fiber_home, activity {
    fiber_front(executor& where, const birth& how, fiber_marks marked) noexcept
        : fiber_marks(marked),
          waiter(waiter::who::fiber),
          fiber_home{&where},
          operate(how.operate),
          site(how.site),
          attention(
              static_cast<std::uint8_t>(apart_bit | (marked.is_child() ? unenlisted_bit : 0))) {}

    /// Whether it has to go another way than a fiber of kind own on a loop, with nothing set. One
    /// test.
    [[nodiscard, gnu::always_inline]] bool is_special() const noexcept {
        const auto held = reinterpret_cast<std::uintptr_t>(isolated.held);
        return (attention.load(std::memory_order_relaxed) | held) != 0;
    }

    // Rarely.
    birth_function operate;
    std::source_location site;
    fiber_block* listed_next = nullptr;  // of its executor's list, once it has waited, or is_far()
    fiber_block* listed_previous = nullptr;
    fiber_extras* extras = nullptr;

    // What a wait looks at.
    isolation_slot isolated;
    // For dumps: nullptr, or a standing one, while it is ready or runs; &no_fiber before its start
    // and after its end.
    std::atomic<const wait_reason*> reason = &no_fiber;
    std::atomic<std::uint8_t> attention;
};

/// What the fiber side of a worker begins with (src/fiber/fiber_worker.hpp).
struct worker_front {
    /// The fiber that runs; nullptr: none does.
    [[nodiscard, gnu::always_inline]] fiber_front* front() const noexcept {
        return reinterpret_cast<fiber_front*>(current);  // its first base
    }

    fiber_block* current = nullptr;
};

// As whoever knows no fibers finds what runs: innermost_activity().
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winvalid-offsetof"
static_assert(offsetof(worker_front, current) == 0);
static_assert(offsetof(fiber_front, name) == activity_of_fiber);
#pragma GCC diagnostic pop

}  // namespace weft::inline v0::detail

namespace weft::inline v0 {

// On a loop, by itself and with nothing in the way, it is a push.
[[gnu::always_inline]] inline void waiter::wake() noexcept {
    if (what == who::fiber) [[likely]] {
        auto& woken = static_cast<detail::fiber_front&>(*this);
        detail::worker* const here = detail::worker_of_this_thread();
        if (here != nullptr && here->local_home == woken.home) [[likely]] {
            if (!here->wake_slot) return here->ready.push(&woken);
            if (here->front == nullptr && here->slot_left != 0) [[likely]]
                return here->fill_slot(&woken);
        }
    }
    wake_apart();
}

}  // namespace weft::inline v0
