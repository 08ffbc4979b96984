// pool.hpp - a scheduler over several threads: each has its own queue, and takes from the others'
// when that is empty.
//
//     pool p({.workers = 4});
//     go(p, [] { ... });
//     p.drain();
//
// It runs runnables and counts outstanding work; it knows no fiber. How workers sleep and wake
// each other is in src/exec/parking.hpp, what one of them does all day in src/exec/pool_worker.cpp
// and, when there is nothing to do, pool_search.cpp.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <weft/exec/executor.hpp>
#include <weft/exec/stuck_report.hpp>

namespace weft::inline v0 {

namespace detail {
class pool_core;
}

/// A runnable that has held its worker for longer than pool_options::watchdog.
struct stall_report {
    unsigned worker = 0;  // its number, from 0
    std::string name;     // of the fiber; empty: it has none, or none runs
    /// For how long, so far.
    std::chrono::nanoseconds held{};
    std::vector<void*> stack;  // return addresses, the innermost first
    /// All of it, with names for the addresses where there are any; each line ended by '\n'.
    [[nodiscard]] std::string text() const;
};

/// What a pool can be told at its creation.
struct pool_options {
    /// 0: as many as usable_cpus() says.
    unsigned workers = 0;
    /// Threads are called name-0, name-1, ... (at most 15 characters show).
    std::string name = "weft";
    /// Each worker stays on a processor of its own, as long as there are enough.
    bool bind_to_cpus = false;
    /// Every fiber that stops goes on elsewhere. For tests; the environment variable
    /// WEFT_FORCE_MIGRATE=1 sets it for every pool. Nothing to do with one worker.
    bool force_migrate = false;
    /// nullptr: steady_clock_source(). It must outlive the pool.
    clock_source* clock = nullptr;
    /// For random(): the same seed gives each worker the same numbers. Unset: another each time.
    std::optional<std::uint64_t> seed = {};
    /// A runnable that holds its worker for longer is reported, once. 0: nobody looks.
    std::chrono::nanoseconds watchdog{0};
    /// Gets that report, on a thread of the pool's own. Unset: it goes to stderr.
    std::function<void(const stall_report&)> stalled = {};
    /// Gets exceptions that left a fiber or a posted callable. Unset: they terminate the program.
    std::function<void(std::exception_ptr, runnable&)> unhandled = {};
    /// For the stacks of its fibers. nullptr: shared_stacks(). It must outlive the pool.
    stack_source* stacks = nullptr;
    /// A fiber that has held its worker for longer lets others run when it calls yield_if_due().
    std::chrono::nanoseconds slice = std::chrono::milliseconds(1);
};

/// What a worker has done so far. Read while it goes on: the figures need not be of the same
/// moment, and while it looks around, every 61 dispatches at the latest, it may seem to have had
/// some 61 more or fewer.
struct worker_counters {
    std::uint64_t dispatches = 0;     // runnables run
    std::uint64_t steals = 0;         // times that it took some from another worker
    std::uint64_t stolen = 0;         // runnables that it took so
    std::uint64_t parks = 0;          // times that it slept
    std::uint64_t wakes = 0;          // times that it woke another
    std::uint64_t remote_wakes = 0;   // runnables that it sent to the one worker that may run them
    std::uint64_t overflow = 0;       // runnables for which its queue had no place
    std::chrono::nanoseconds idle{};  // time asleep
};

/// How many processors this process may use: its affinity, and the quota of its cgroup.
[[nodiscard]] unsigned usable_cpus() noexcept;

/// Thread-safe: all members but the destructor.
class pool final : public executor {
public:
    /// Starts the threads.
    /// Fails: std::system_error when a thread cannot be made; std::invalid_argument for options
    /// that make no sense. Nothing runs then.
    explicit pool(pool_options options = {});
    /// shutdown() without a deadline; after 5 s it lists on stderr who has not ended.
    /// Suspends: inside a fiber of another executor. Aborts: from inside itself.
    ~pool() override;

    /// Waits until nothing is outstanding.
    /// Suspends: inside a fiber of another executor; a plain thread sleeps. Cancel: ignored.
    /// Aborts: from inside itself.
    void drain();

    /// From now on go() from outside fails, and whoever lives here is asked to stop, those that
    /// come later too. Waits until all have ended or the time is over; then it says who has not.
    /// Suspends, Cancel, Aborts: as drain().
    stuck_report shutdown(std::chrono::nanoseconds limit);

    /// Outstanding work: a fiber from go to its end, parked ones too. Exact while nothing runs.
    [[nodiscard]] std::size_t alive() const noexcept;

    [[nodiscard]] unsigned workers() const noexcept override;
    /// Of worker number `worker`, from 0. Fails: std::out_of_range.
    [[nodiscard]] worker_counters counters(unsigned worker) const;

    /// A line for each who lives here.
    void describe(const std::function<void(std::string_view)>& line) const;

    void post(runnable* r) override;
    void defer(runnable* r) override;
    [[nodiscard]] runnable* next() noexcept override;
    void add_work(std::ptrdiff_t change) noexcept override;
    [[nodiscard]] clock_source& clock() noexcept override;
    [[nodiscard]] random_source& random() noexcept override;
    [[nodiscard]] bool slice_is_over(std::chrono::nanoseconds held) noexcept override;
    [[nodiscard]] bool attach(std::unique_ptr<driver> reactor) override;
    void unhandled(std::exception_ptr error, runnable& r) noexcept override;

private:
    void refuse_inside(const char* call) const noexcept;

    std::unique_ptr<detail::pool_core> core_;
};

}  // namespace weft::inline v0
