// fiber_worker.hpp - a worker, as the fibers on it see it: who runs, where its own stack waits,
// what is to be done for the one that left.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include <weft/base/thread_block.hpp>
#include <weft/coroutine/thread_cache.hpp>
#include <weft/exec/worker.hpp>
#include <weft/fiber/suspend.hpp>
#include <weft/stack/stack_cache.hpp>

#include "fiber/block_depot.hpp"
#include "fiber/fiber_block.hpp"
#include "fiber/fiber_list.hpp"
#include "fiber/shared_stack_set.hpp"

namespace weft::inline v0::detail {

class fiber_attachment;

/// Called off the stack of the one that left, with what it left behind. Returns what must run next,
/// or nullptr.
using after_function = runnable* (*)(fiber_worker& worker, fiber_block& left) noexcept;

/// For yield_if_due(): how long who runs has done so (this_fiber.cpp).
struct slice_watch {
    static constexpr std::uint32_t most = 64;

    const fiber_block* of = nullptr;  // whose slice it is
    std::uint32_t countdown = 0;      // calls until the clock is read
    std::uint32_t span = 1;           // what that began with
    std::uint32_t rare_countdown = most;
    // Of the worker when the slice began: others mean that it has left.
    std::uint32_t looks = 0;
    std::uint32_t ticks = 0;
    time_point began{};
    time_point looked{};
};

struct fiber_worker : worker_front {
    fiber_worker(worker& w, stack_source& s, fiber_attachment* attached) noexcept
        : exec(w), stacks(s), attachment(attached) {}

    /// The calling thread's; nullptr if it runs no fiber's executor.
    [[gnu::always_inline]] static fiber_worker* here() noexcept {
        return static_cast<fiber_worker*>(fibers_of_this_thread());
    }

    /// A stack was taken (1) or given back (-1).
    void count_stack(std::ptrdiff_t change) noexcept {
        if (change < 0) gave_back = true;
        stacks_out.store(stacks_out.load(std::memory_order_relaxed) + change,
                         std::memory_order_relaxed);
    }

    /// Whether its timers go by the clock of its executor, and that does not stand still. Those of
    /// a guest are another's.
    [[nodiscard]] bool looks_at_real_time() const noexcept {
        return attachment != nullptr && exec.home.clock().moves();
    }

    worker& exec;
    after_function after = nullptr;  // for the one that left last
    fiber_block* left = nullptr;
    departure* leaving = nullptr;        // what it asked for: a request of suspend.hpp
    wait_timer* late_timer = nullptr;    // of the one that leaves, to be armed once it has left
    swapped_fiber* unsettled = nullptr;  // it left for another of its kind, which has to settle it
    runnable* then = nullptr;            // what the worker's own stack goes on with
    activity* outside = nullptr;         // what ran on the thread before any fiber of this worker
    context home;                        // the worker's own stack, while a fiber of kind own runs
    portable_context portable_home;
    stack_source& stacks;
    fiber_attachment* attachment;  // nullptr: of an executor that has no workers
    // Stacks lent to fibers here, less those given back here. Written by the worker alone.
    std::atomic<std::ptrdiff_t> stacks_out = 0;
    bool gave_back = false;         // a stack, since the worker was idle last
    bool has_shared_stack = false;  // swapped fibers have run here
    std::uint32_t colours = 0;
    slice_watch slice;
    time_point children_since{};  // children run inside their parents since then (inline_run.cpp)
    alignas(16) std::byte scratch[departure::scratch_size];
    // A copy of the request of a swapped fiber, whose own lies on a stack that goes away.
    wait_request kept_wait{};
    suspend_request kept_suspend{};
};

/// Lets a fiber wait in place of the thread, for a loop that runs inside that fiber.
class fiber_driver final : public driver {
public:
    explicit fiber_driver(bool of_guest = false) noexcept : alarm_(*this), of_guest_(of_guest) {}
    void wait(std::chrono::nanoseconds limit) noexcept override;
    void wake() noexcept override;
    void give_back() noexcept override {
        if (of_guest_)
            delete this;
        else
            lent_.store(false, std::memory_order_release);
    }

private:
    friend class fiber_attachment;
    struct alarm final : timer_node {
        explicit alarm(fiber_driver& rings) noexcept : timer_node(&fire), whose(rings) {}
        static runnable* fire(timer_node& node) noexcept;
        fiber_driver& whose;
    };
    void wait_until(time_point deadline) noexcept;
    /// Ends a wait, or the next one. Whoever is returned is to run; nullptr: nobody.
    [[nodiscard]] waiter* claim_sleeper() noexcept;

    alarm alarm_;
    std::mutex mutex_;
    waiter* sleeper_ = nullptr;
    bool woken_ = false;
    std::atomic<bool> lent_ = false;  // set by the worker alone
    const bool of_guest_;             // it belongs to whoever has borrowed it
};

/// What a worker of ours owns for its fibers.
class fiber_attachment final : public worker_attachment {
public:
    explicit fiber_attachment(worker& w);
    fiber_attachment(const fiber_attachment&) = delete;
    fiber_attachment& operator=(const fiber_attachment&) = delete;
    ~fiber_attachment() override;

    void idle() noexcept override;
    [[nodiscard]] driver* driver_of_running_fiber() override;
    /// For a swapped fiber that begins.
    [[nodiscard]] shared_stack& next_shared();
    [[nodiscard]] thread_cache& threads();

    stack_cache stacks;
    block_cache blocks;
    fiber_worker side;
    shared_stack_set shared;

private:
    std::optional<thread_cache> threads_;
    std::vector<std::unique_ptr<fiber_driver>> drivers_;
};

/// What a plain thread waits on.
class thread_waiter final : public waiter {
public:
    thread_waiter() noexcept : waiter(who::thread) {}
    void sleep_until_claimed(time_point deadline, clock_source& clock) noexcept;
    void wake_thread() noexcept;

private:
    std::atomic<std::uint32_t> woken_ = 0;
};

}  // namespace weft::inline v0::detail
