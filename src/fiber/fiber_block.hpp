// fiber_block.hpp - what a fiber is: its control block.
//
// A runnable that executors queue, a waiter that primitives queue, an activity that reports name; a
// place for its registers while it is not running; and what is rare, in fiber_extras. The callable
// stands right behind it in the same allocation. It lies apart from the stack, which a fiber has
// only from its first run to its end.
//
// A block begins a cache line. Whoever wakes a fiber touches the first, whoever switches from or to
// it the first and the third; the second and what follows the registers are for its birth, its end
// and reports:
//
//     0   runnable | waiter | permit | home
//    64   activity | how it was born | the list of its executor
//   128   what a wait looks at | registers
//   192   exceptions in flight | counts, and the rest
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <exception>
#include <memory>
#include <optional>
#include <source_location>

#include <weft/base/activity.hpp>
#include <weft/coroutine/backend.hpp>
#include <weft/exec/executor.hpp>
#include <weft/exec/timer_queue.hpp>
#include <weft/fiber/cancel.hpp>
#include <weft/fiber/detail/birth.hpp>
#include <weft/fiber/detail/isolation.hpp>
#include <weft/fiber/options.hpp>
#include <weft/fiber/this_fiber.hpp>
#include <weft/fiber/waiter.hpp>

#include "fiber/permit.hpp"

namespace weft::inline v0::detail {

struct fiber_worker;
struct fiber_extras;
class fiber_list;
class task_values;

/// Why the next wait of a fiber may not take the straight way. Others set only `cancelled`.
enum attention : std::uint8_t {
    cancelled_bit = 1,
    hook_bit = 2,
    no_suspend_bit = 4,
    apart_bit = 8,        // not listed yet, or not of kind own, or not on a loop
    unarmed_bit = 16,     // a deadline scope whose timer is armed when it first waits
    unenlisted_bit = 32,  // a child that its group is told of when it first waits
};

/// In runnable::kind, beside the stack_kind: two fibers with equal bytes can switch directly.
inline constexpr std::uint8_t started_bit = 0x80;
/// One whose executor is not the one that the thread's worker belongs to: nobody of that switches
/// to it directly, for it has to be run as its executor says.
inline constexpr std::uint8_t guest_bit = 0x40;

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
/// back, and the next wait, which mostly is for the same, need not write it again.
[[nodiscard]] inline const wait_reason* standing(const wait_reason* reason) noexcept {
    return reinterpret_cast<const wait_reason*>(reinterpret_cast<std::uintptr_t>(reason) | 1U);
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

struct fiber_block : runnable, fiber_marks, waiter, fiber_permit, fiber_home, activity {
    fiber_block(executor& where, const birth& how, fiber_marks marked) noexcept
        : fiber_marks(marked),
          waiter(waiter::who::fiber),
          fiber_home{&where},
          operate(how.operate),
          site(how.site),
          running(this),
          attention(
              static_cast<std::uint8_t>(apart_bit | (marked.is_child() ? unenlisted_bit : 0))),
          has_handle(how.has_handle) {}

    runnable* run() noexcept override;

    [[nodiscard]] void* callable() noexcept {
        return reinterpret_cast<std::byte*>(this) + callable_at * unit;
    }
    [[nodiscard]] fiber_permit& permit() noexcept { return *this; }
    [[nodiscard]] const fiber_permit& permit() const noexcept { return *this; }
    [[nodiscard]] stack_kind stack() const noexcept {
        return static_cast<stack_kind>(runnable::kind & ~(started_bit | guest_bit));
    }
    [[nodiscard]] bool started() const noexcept { return (runnable::kind & started_bit) != 0; }
    /// Of a child.
    [[nodiscard]] group_state& group() noexcept {
        return *static_cast<group_member*>(callable())->group;
    }
    [[nodiscard]] bool is_cancelled() const noexcept {
        return (attention.load(std::memory_order_seq_cst) & cancelled_bit) != 0;
    }

    /// Whether extras say what is resumed in its stead.
    [[nodiscard]] bool is_wrapped() const noexcept { return what == who::wrapped_fiber; }
    void set_wrapped(bool is) noexcept { what = is ? who::wrapped_fiber : who::fiber; }
    /// What a waker posts: the fiber, or what its hooks made of it.
    [[nodiscard]] runnable* resumed_as() noexcept {
        return !is_wrapped() ? this : resumed_as_wrapped();
    }

    // Rarely.
    birth_function operate;
    std::source_location site;
    fiber_block* listed_next = nullptr;  // of its executor's list, once it has waited, or is_far()
    fiber_block* listed_previous = nullptr;
    fiber_extras* extras = nullptr;

    // What a wait looks at.
    isolation_slot isolated;
    activity* running;  // what the thread says runs, while this fiber does: a coroutine inside it
    // For dumps: nullptr, or a standing one, while it is ready or runs; &no_fiber before its start
    // and after its end.
    std::atomic<const wait_reason*> reason = &no_fiber;
    std::atomic<std::uint8_t> attention;
    bool is_listed = false;            // in the list of its executor
    std::atomic<bool> locked = false;  // guards the next three, and the scopes in extras
    cancel_reason stop_reason = cancel_reason::none;  // the fiber's own
    std::atomic<bool> has_handle = false;             // an exception is kept for join()
    bool finished = false;
    context where;  // of kind own

    // At its birth and at its end.
    std::atomic<std::uint32_t> references = 1;
    std::uint32_t allocated = 0;    // bytes of this block, callable included
    task_values* values = nullptr;  // counted; the fiber alone, once it runs
    fiber_worker* on = nullptr;     // who runs it, for one on a thread of its own
#if WEFT_TSAN
    void* tsan_fiber = nullptr;
#endif

private:
    [[nodiscard]] runnable* resumed_as_wrapped() noexcept;
};

/// The deadline of one wait, where others find it meanwhile: in the frame of the wait, but for
/// swapped fibers, whose frames go away.
struct wait_timer : timer_node {
    explicit wait_timer(fiber_block& waits) noexcept : timer_node(&fire), whose(waits) {}
    static runnable* fire(timer_node& node) noexcept;

    fiber_block& whose;
};

struct own_fiber final : fiber_block {
    using fiber_block::fiber_block;
};
struct ucontext_fiber final : fiber_block {
    using fiber_block::fiber_block;
    portable_context where;
};
struct thread_fiber final : fiber_block {
    using fiber_block::fiber_block;
    std::unique_ptr<thread_backend> where;
};
struct swapped_fiber final : fiber_block {
    using fiber_block::fiber_block;
    std::optional<swapped_backend> where;  // from its first run to its end
};

// A fiber that is parked is woken without touching any other line of its block.
static_assert(sizeof(runnable) + sizeof(waiter) + sizeof(executor*) <= 64 + sizeof(fiber_marks));

#if !WEFT_ASAN && !WEFT_TSAN
static_assert(sizeof(own_fiber) <= 256, "a control block, registers included");
#endif

/// Guards what several threads touch in a block, for a few instructions.
class block_lock {
public:
    explicit block_lock(fiber_block& block) noexcept : block_(block) {
        if (block_.locked.exchange(true, std::memory_order_acquire)) [[unlikely]]
            wait();
    }
    block_lock(const block_lock&) = delete;
    block_lock& operator=(const block_lock&) = delete;
    ~block_lock() { block_.locked.store(false, std::memory_order_release); }

private:
    void wait() noexcept;

    fiber_block& block_;
};

struct handle_access {
    [[nodiscard]] static fiber_block* block(const fiber_handle& handle) noexcept {
        return handle.block_;
    }
};

void add_reference(fiber_block& block) noexcept;
void release(fiber_block* block) noexcept;

/// The extras, made at first use. From: the fiber itself, or before it starts.
[[nodiscard]] fiber_extras& extras_of(fiber_block& block);

/// Cancels what the fiber waits for now, if that can be, and every later wait. From: any thread.
void request_stop(fiber_block& block, cancel_reason reason = cancel_reason::requested) noexcept;

}  // namespace weft::inline v0::detail
