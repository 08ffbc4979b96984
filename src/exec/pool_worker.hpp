// pool_worker.hpp - one thread of a pool, and what the threads share.
//
// A worker runs from, in this order: what must come first; the slot, where the one stands that was
// woken last; its ring, or the queue of those that may run nowhere else, in turn. Every 61
// dispatches, or about 100 us, it looks at its inbox, its timers and the overflow list. With
// nothing left it takes half of another's ring, and in the end sleeps (parking.hpp).
//
//   slot <--- wakes             inbox <--- wakes of bound ones, from other threads
//    |                            |
//    | displaced                  v
//    v                          ready (bound to this worker)
//   ring <--- spawns, yields
//    |  ^
//    |  +---- half of another's ring
//    v
//   overflow list (one for all) <--- posts from outside the pool
//
// With one worker there is nobody to take anything: it is a loop then, and runs from `ready` alone.
//
// Children of task groups that are started while the ring is well filled are kept back, in a
// reserve, from which their parent takes them (reserve.hpp). It is empty when the worker takes from
// any of its queues. No other is told of what is kept back; but none sleeps over it:
//
//   keeps one back                                parks, or was the last that searched
//   keeps_back = true         (seq_cst)           says so in parking's word     (RMW, seq_cst)
//   pushes it to the reserve                      keeps_back of somebody?       (seq_cst)
//   light barrier                                 heavy barrier
//   parking's word: one sleeps and none           looks at the reserve: takes half of it, or wakes
//   searches? all of it goes to the ring          another
//
// As in parking.hpp: both write, then read what the other writes, so one sees the other.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include <weft/exec/driver.hpp>
#include <weft/exec/inbox.hpp>
#include <weft/exec/pool.hpp>
#include <weft/exec/timer_queue.hpp>
#include <weft/exec/worker.hpp>

#include "exec/overflow_list.hpp"
#include "exec/parking.hpp"
#include "exec/reserve.hpp"
#include "exec/steal_queue.hpp"
#include "exec/steal_slot.hpp"

namespace weft::inline v0::detail {

class pool_core;
class watchdog;

/// Written by one thread alone, read by all.
template <class T>
class counter {
public:
    void add(T n) noexcept {
        value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
    }
    [[nodiscard]] T get() const noexcept { return value_.load(std::memory_order_relaxed); }

private:
    std::atomic<T> value_{0};
};

/// How long a worker has slept so far. Written by it alone, read by all, in one word: the sum, and
/// while it sleeps the sum less the time at which it began, which is below zero.
class time_asleep {
public:
    void begin(time_point now) noexcept { add(-now.time_since_epoch()); }
    void end(time_point now) noexcept { add(now.time_since_epoch()); }
    /// With the sleep under way.
    [[nodiscard]] std::chrono::nanoseconds get() const noexcept {
        const std::chrono::nanoseconds word(word_.load(std::memory_order_relaxed));
        if (word.count() >= 0) return word;
        return word + steady_clock_source().now().time_since_epoch();
    }

private:
    void add(std::chrono::nanoseconds n) noexcept {
        word_.store(word_.load(std::memory_order_relaxed) + n.count(), std::memory_order_relaxed);
    }

    std::atomic<std::int64_t> word_{0};
};

/// What it is at, for the watchdog.
enum class activity_of_worker : std::uint8_t { running, searching, asleep };

struct alignas(64) pool_worker final : worker {
    pool_worker(pool_core& core, executor& owner, unsigned index, std::uint64_t seed);

    /// The thread's main function.
    void work() noexcept;

    /// From a fiber or runnable on this worker.
    void post(runnable* r) noexcept;
    void wake_thread() noexcept { sleeps_in.load(std::memory_order_acquire)->wake(); }
    void attach(std::unique_ptr<driver> attached) noexcept;
    [[nodiscard]] runnable* look_around() noexcept;

    /// How many dispatches there were. While this worker looks around, others may see some of what
    /// it writes without the rest: up to 61 too many or too few, and since its last look fewer than
    /// none.
    [[nodiscard]] std::uint64_t dispatches() const noexcept {
        const auto before = static_cast<std::int64_t>(dispatched.get());
        const auto since = static_cast<std::int32_t>(counted_ticks());
        const auto in_vain = static_cast<std::int64_t>(missed.load(std::memory_order_relaxed));
        return static_cast<std::uint64_t>(std::max<std::int64_t>(before + since - in_vain, 0));
    }

    pool_core& core;
    const unsigned index;
    timer_queue own_timers;
    seeded_random random;
    counter<std::uint64_t> dispatched;  // up to the last look around
    counter<std::uint64_t> steals;
    counter<std::uint64_t> stolen;
    counter<std::uint64_t> parks;
    counter<std::uint64_t> wakes;
    counter<std::uint64_t> remote_wakes;
    counter<std::uint64_t> overflowed;
    time_asleep idle_time;
    std::atomic<activity_of_worker> at = activity_of_worker::searching;
    std::unique_ptr<driver> first_driver;
    std::thread thread;

    // Other threads, too.
    // Replaced once, when a reactor is attached, by the worker while it runs: then nobody has to
    // wake it, so a wake that goes to the old one does no harm. The old one stays until the end.
    std::atomic<driver*> sleeps_in;
    alignas(64) steal_slot<runnable> slot;
    alignas(64) inbox mail;  // for those that may run nowhere else
    steal_queue<runnable, 1024> ring;
    // Others look at the reserve only if keeps_back says so.
    std::atomic<bool> keeps_back = false;
    reserve<runnable, 256> kept_back;

    std::uint32_t yields = 0;  // since the last mixing

    // worker's own
    [[nodiscard]] runnable* take_from_queues() noexcept;
    void start_shared(runnable* r) noexcept;
    void start_child_of_group(runnable* r) noexcept;
    [[nodiscard]] runnable* take_back_from_queues(wanted_function wanted, const void* by) noexcept;
    [[nodiscard]] bool await_for_running(come_function has_come, const void* what) noexcept;
    /// True: it, or what stood there, went to the ring, of which others are to be told.
    [[nodiscard]] bool put_in_slot(runnable* r) noexcept;
    [[gnu::always_inline]] void put_in_ring(runnable* r, std::memory_order order) noexcept {
        if (!ring.push(r, order)) [[unlikely]]
            put_in_full_ring(r, order);
    }
    void put_in_full_ring(runnable* r, std::memory_order order) noexcept;
    void begin_ticks() noexcept;
    void collect() noexcept;

private:
    void run_chain(runnable* r) noexcept;
    void mix() noexcept;
    void refill_ring() noexcept;
    void show_reserve() noexcept;
    void keep_nothing_back() noexcept;
    [[nodiscard]] bool has_others_reserve() const noexcept;
    [[nodiscard]] bool take_others_reserve() noexcept;
    [[nodiscard]] runnable* take_overflow() noexcept;
    [[nodiscard]] runnable* find() noexcept;
    [[nodiscard]] runnable* await_mail() noexcept;
    [[nodiscard]] bool is_bare() const noexcept;
    [[nodiscard]] runnable* search() noexcept;
    [[nodiscard]] runnable* steal_from_others(std::uint32_t least) noexcept;
    [[nodiscard]] runnable* steal_from(pool_worker& victim, std::uint32_t least) noexcept;
    [[nodiscard]] bool slot_is_stuck(pool_worker& victim) noexcept;
    void sleep(bool was_searching) noexcept;
    [[nodiscard]] bool is_work_visible() const noexcept;
    [[nodiscard]] bool is_help_needed() noexcept;
    void receive(runnable* r, std::memory_order order = std::memory_order_release) noexcept;

    std::uint64_t mixed_at_ = 0;    // of the dispatches
    bool lives_by_mail_ = false;    // what it last found came that way
    bool awaited_in_vain_ = false;  // by what has run here last
    bool turn_of_bound_ = false;
    std::array<runnable*, 1024> loot_;
};

/// For threads that are not of the pool. Thread-safe.
class shared_random final : public random_source {
public:
    explicit shared_random(std::uint64_t seed) noexcept : state_(seed) {}
    [[nodiscard]] std::uint64_t next() noexcept override {
        return seeded_random(state_.fetch_add(1, std::memory_order_relaxed)).next();
    }

private:
    std::atomic<std::uint64_t> state_;
};

class pool_core {
public:
    pool_core(executor& owner, pool_options options);
    pool_core(const pool_core&) = delete;
    pool_core& operator=(const pool_core&) = delete;
    ~pool_core();

    /// Fails: std::system_error; then no thread is left.
    void start();
    /// With nothing left to run.
    void stop_and_join() noexcept;
    [[nodiscard]] pool_worker* worker_here() const noexcept;
    /// Also while a fiber of this pool runs a loop inside.
    [[nodiscard]] bool is_inside() const noexcept;
    void post_from_outside(runnable* r) noexcept;
    /// To the one worker that may run it.
    void send(pool_worker& to, runnable* r) noexcept;
    /// Work was published: somebody is to look for it.
    void notify() noexcept;
    void add_outside_work(std::ptrdiff_t change) noexcept;
    /// Nothing runs and nothing is outstanding.
    [[nodiscard]] bool is_quiet() const noexcept;
    void tell_if_quiet() noexcept;
    /// Waits until it is quiet. False: the time was over first.
    [[nodiscard]] bool wait_until_quiet(std::chrono::nanoseconds limit);
    [[nodiscard]] std::ptrdiff_t alive() const noexcept;
    [[nodiscard]] pool_worker& next_of(const pool_worker& w) noexcept {
        return *workers[(w.index + 1) % workers.size()];
    }

    executor& owner;
    pool_options options;
    clock_source& clock;
    const bool one_cpu;
    const bool may_keep_back;  // workers may have a reserve
    std::vector<std::unique_ptr<pool_worker>> workers;
    parking parked;
    overflow_list overflow;
    shared_random outside_random;
    std::atomic<bool> stop = false;
    std::atomic<std::ptrdiff_t> outside_work = 0;
    std::atomic<std::uint64_t> times_parked = 0;  // of all workers
    std::atomic<int> outsiders = 0;  // other threads that are inside post() or add_work()

private:
    std::unique_ptr<watchdog> dog_;
    std::atomic<bool> somebody_waits_ = false;
    std::mutex mutex_;
    std::vector<driver*> waiting_;  // guarded by the mutex
};

}  // namespace weft::inline v0::detail
