// fiber_block.hpp - what a fiber is: its control block.
//
// A runnable that executors queue, a waiter that primitives queue, an activity that reports name; a
// place for its registers while it is not running; and what is rare, in fiber_extras. The callable
// stands right behind it in the same allocation. It lies apart from the stack, which a fiber has
// only from its first run to its end.
//
// A block begins a cache line. Whoever wakes a fiber touches the first, whoever switches from or to
// it also the third and the fourth; the second is for its birth, its end and reports:
//
//     0   runnable | waiter | permit | home
//    64   activity | how it was born | the list of its executor
//   128   what a wait looks at | counts | task values | registers
//   192   of these the rest | what else its kind has
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <exception>
#include <memory>

#include <weft/context/swap_in_frame.hpp>
#include <weft/coroutine/backend.hpp>
#include <weft/exec/timer_queue.hpp>
#include <weft/fiber/cancel.hpp>
#include <weft/fiber/detail/fiber_front.hpp>
#include <weft/fiber/options.hpp>
#include <weft/fiber/this_fiber.hpp>

namespace weft::inline v0::detail {

struct fiber_worker;
class fiber_list;
class task_values;

/// In runnable::kind, beside the stack_kind: two fibers with equal bytes can switch directly.
inline constexpr std::uint8_t started_bit = 0x80;
/// One whose executor is not the one that the thread's worker belongs to: nobody of that switches
/// to it directly, for it has to be run as its executor says.
inline constexpr std::uint8_t guest_bit = 0x40;

struct fiber_block : fiber_front {
    fiber_block(executor& where, const birth& how, fiber_marks marked) noexcept
        : fiber_front(where, how, marked), has_handle(how.has_handle) {}

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

    // What a wait looks at, too.
    bool is_listed = false;            // in the list of its executor
    std::atomic<bool> locked = false;  // guards the next three, and the scopes in extras
    cancel_reason stop_reason = cancel_reason::none;  // the fiber's own
    std::atomic<bool> has_handle = false;             // an exception is kept for join()
    bool finished = false;

    // At its birth and at its end.
    std::atomic<std::uint32_t> references = 1;
    std::uint32_t allocated = 0;    // bytes of this block, callable included
    task_values* values = nullptr;  // counted; the fiber alone, once it runs
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
    using context_type = context;
    framed_context where;
#if !WEFT_SWITCH_IN_FRAME
    // As where it keeps six registers: then no block is as small as fiber_extras
    // (fiber_census.cpp).
    std::byte unused[sizeof(context) < 40 ? 48 - sizeof(context) : 8];
#endif
};
struct ucontext_fiber final : fiber_block {
    using fiber_block::fiber_block;
    using context_type = portable_context;
    portable_context where;
};
struct thread_fiber final : fiber_block {
    using fiber_block::fiber_block;
    std::unique_ptr<thread_backend> where;
    fiber_worker* on = nullptr;  // who runs it
};
struct swapped_fiber final : fiber_block {
    using fiber_block::fiber_block;
    context where;
    swapped_place place;  // from its first run to its end
};

// A fiber that is parked is woken without touching any other line of its block.
static_assert(sizeof(runnable) + sizeof(waiter) + sizeof(executor*) <= 64 + sizeof(fiber_marks));

#if !WEFT_ASAN && !WEFT_TSAN
static_assert(sizeof(own_fiber) <= 256, "a control block, registers included");
// With two words of a callable it is four cache lines: what a parked one costs beside its bytes.
static_assert(!WEFT_NATIVE_SWITCH || sizeof(swapped_fiber) + 2 * sizeof(void*) <= 256);
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

/// Cancels what the fiber waits for now, if that can be, and every later wait. True: it had not
/// been asked. From: any thread.
bool request_stop(fiber_block& block, cancel_reason reason = cancel_reason::requested) noexcept;

}  // namespace weft::inline v0::detail
