// loop.hpp - a scheduler for one thread at a time: first in, first out, run or stepped at will.
//
//     loop s;
//     post(s, [&] { out.push_back(1); });
//     s.run();
//
// It runs runnables and counts outstanding work; it knows no fiber (fiber/go.hpp puts those on it).
// Any number of loops may exist, on any threads, one run from inside a fiber of another. Its
// source, src/exec/loop.cpp, is a whole scheduler, short enough to read.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <ranges>

#include <weft/exec/driver.hpp>
#include <weft/exec/executor.hpp>
#include <weft/exec/inbox.hpp>
#include <weft/exec/stuck_report.hpp>
#include <weft/exec/timer_queue.hpp>
#include <weft/exec/worker.hpp>

namespace weft::inline v0 {

/// What a loop can be told at its creation.
struct loop_options {
    /// Whether other threads may post here, and ask what runs here to stop. Then an empty loop with
    /// outstanding work sleeps until one does. Without, a post from another thread aborts (asking
    /// is a post if the one asked waits, and may be lost if not), nothing costs an atomic
    /// operation, and run() returns with a report when nothing can become ready.
    bool external_wakes = true;
    /// A woken fiber runs next, ahead of the queue: fewer are hot at a time, at the price of strict
    /// order. After 64 such wakes one goes to the end of the queue, so that two cannot starve the
    /// rest; from 1,536 ready on (16, if the loop does I/O) and until it is half as many, after 512
    /// wakes, or after a multiple of 64 that took 50 us.
    bool wake_slot = false;
    /// nullptr: steady_clock_source(). It must outlive the loop.
    clock_source* clock = nullptr;
    /// For random(): the same seed, the same numbers. Unset: another seed each time.
    std::optional<std::uint64_t> seed = {};
    /// Gets exceptions that left a fiber or a posted callable. Unset: they terminate the program.
    std::function<void(std::exception_ptr, runnable&)> unhandled = {};
    /// For the stacks of its fibers. nullptr: shared_stacks(). It must outlive the loop.
    stack_source* stacks = nullptr;
    /// A fiber that has held the loop for longer lets others run when it calls yield_if_due().
    std::chrono::nanoseconds slice = std::chrono::milliseconds(1);
};

/// Thread-safe: post, defer, add_work and clock (the first three only with external_wakes). All
/// else is for one thread at a time.
class loop final : public executor {
public:
    explicit loop(loop_options options = {});
    /// Asks whoever lives here to stop and runs until all have ended; after 5 s it lists on stderr
    /// who has not.
    /// Aborts: with the list of those that cannot end, if no other thread may post here; from
    /// inside itself.
    ~loop() override;

    /// Runs until nothing is outstanding.
    /// Suspends: inside a fiber of another executor, when this loop is idle. Cancel: ignored.
    /// From: any thread or fiber, but not from inside itself. Returns what is stuck, if anything.
    stuck_report run();

    /// Looks at inbox and timers without waiting, then runs the head of the queue once. False:
    /// nothing was ready. From: as run().
    bool step();

    /// step() until it says false; how often it said true. The clock is not moved.
    std::size_t run_until_blocked();

    /// Runs what is ready now and what becomes ready from that, then returns; whether anything ran.
    /// For foreign event loops, together with descriptor() and next_deadline().
    bool poll();

    /// Readable when poll() has something to do that came from another thread, or from I/O. Made
    /// at the first call; it stays the same.
    /// Fails: std::system_error.
    [[nodiscard]] int descriptor();

    /// When the earliest timer is due: poll() by then. Unset: no timer.
    [[nodiscard]] std::optional<time_point> next_deadline() const noexcept;

    /// Outstanding work: a fiber from go to its end, parked ones too.
    [[nodiscard]] std::size_t alive() const noexcept;

    class step_iterator;
    struct step_range;
    /// A range of alive() after each step; it sleeps while all wait, and ends when nothing is alive
    /// or nothing can become ready.
    [[nodiscard]] step_range steps() noexcept;

    /// A line for each who lives here.
    void describe(const std::function<void(std::string_view)>& line) const;

    void post(runnable* r) override;
    void defer(runnable* r) override;
    [[nodiscard]] runnable* next() noexcept override;
    void add_work(std::ptrdiff_t change) noexcept override;
    [[nodiscard]] clock_source& clock() noexcept override { return *clock_; }
    [[nodiscard]] random_source& random() noexcept override;
    [[nodiscard]] bool slice_is_over(std::chrono::nanoseconds held) noexcept override {
        return held > slice_;
    }
    [[nodiscard]] bool attach(std::unique_ptr<driver> reactor) override;
    void unhandled(std::exception_ptr error, runnable& r) noexcept override;

private:
    class inside;

    [[nodiscard]] bool is_here() const noexcept;
    [[nodiscard]] bool takes_posts() const noexcept;
    void refuse_others() const noexcept;
    void post_from_outside(runnable* r) noexcept;
    void collect() noexcept;
    [[nodiscard]] runnable* take_first() noexcept;
    void look_around() noexcept;
    void ask_reactor() noexcept;
    void ask_reactor_if_due() noexcept;
    [[nodiscard]] bool reactor_is_due(std::size_t dispatched) noexcept;
    [[nodiscard]] driver* resting_driver() const noexcept;
    void run_ready() noexcept;
    [[nodiscard]] bool sleep() noexcept;
    [[nodiscard]] stuck_report stuck() const;
    void list_late_if_due() noexcept;
    bool step_once() noexcept;
    bool step_or_sleep() noexcept;
    void wake_driver() noexcept;
    void expect_posts() noexcept;

    // Whoever runs it.
    detail::worker worker_;
    timer_queue timers_;
    const bool external_wakes_;
    bool stepping_ = false;
    bool watched_ = false;  // a foreign event loop watches descriptor()
    clock_source* clock_;
    const std::chrono::nanoseconds slice_;
    std::optional<seeded_random> random_;
    std::function<void(std::exception_ptr, runnable&)> unhandled_;
    std::unique_ptr<driver> own_driver_;
    std::unique_ptr<descriptor_driver> watched_driver_;
    bool in_fiber_ = false;                   // another executor's fiber runs it
    std::size_t found_ = 0;                   // by the reactor last, less the dispatches since
    unsigned skipped_ = 0;                    // looks in a row at which it was not asked
    time_point asked_{};                      // when it was, last
    time_point lists_late_at_ = no_deadline;  // set by the destructor, until it has

    // Any thread.
    detail::inbox inbox_;
    std::atomic<std::ptrdiff_t> outside_work_ = 0;  // what other threads added to it
    std::atomic<int> posters_ = 0;  // other threads that are inside post() or add_work()
    std::atomic<driver*> driver_;
    std::atomic<bool> running_ = false;
};

/// Steps the loop when it is incremented.
class loop::step_iterator {
public:
    /// What alive() returns.
    using value_type = std::size_t;
    /// Which every iterator has.
    using difference_type = std::ptrdiff_t;

    explicit step_iterator(loop& stepped) : loop_(&stepped), more_(stepped.step_or_sleep()) {}
    [[nodiscard]] std::size_t operator*() const noexcept { return loop_->alive(); }
    step_iterator& operator++() {
        more_ = loop_->alive() != 0 && loop_->step_or_sleep();
        return *this;
    }
    void operator++(int) { ++*this; }
    [[nodiscard]] bool operator==(std::default_sentinel_t) const noexcept { return !more_; }

private:
    loop* loop_;
    bool more_;
};

/// What steps() returns: a view.
struct loop::step_range : std::ranges::view_base {
    explicit step_range(loop& s) noexcept : stepped(&s) {}
    /// Whose steps they are.
    loop* stepped;
    /// Makes the first step.
    [[nodiscard]] step_iterator begin() const { return step_iterator(*stepped); }
    /// Is reached when nothing can be stepped any more.
    [[nodiscard]] std::default_sentinel_t end() const noexcept { return {}; }
};

inline loop::step_range loop::steps() noexcept { return step_range(*this); }

}  // namespace weft::inline v0
