// loop.cpp - the N:1 scheduler.
//
//   run:  collect (inbox, timers)  ->  run what is ready  ->  nothing? sleep  ->  again
//
// Runnables come by three ways: posted from the loop's own thread, straight into the queue; from
// other threads, through the inbox (inbox.hpp has the protocol of sleeping and waking); from timers
// that are due. Everything else is bookkeeping: what is outstanding, and who is inside.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/exec/loop.hpp>

#include <algorithm>
#include <cstdio>
#include <thread>
#include <utility>

#include <weft/base/assert.hpp>
#include <weft/base/thread_block.hpp>

#include "exec/late.hpp"

namespace weft::inline v0 {

// The thread is this loop's while one of these lives. Inside a fiber of another executor that
// fiber's worker is put by.
class loop::inside {
public:
    explicit inside(loop& entered) : loop_(entered) {
        WEFT_ASSERT(!loop_.is_here(), "loop: run from inside itself");
        detail::worker* const outer = detail::this_thread_block().runs_for;
        if (outer != nullptr && outer->lender != nullptr)
            lent_ = outer->lender->driver_of_running_fiber();
        WEFT_ASSERT(!loop_.running_.exchange(true, std::memory_order_acquire),
                    "loop: run by two threads at once");
        enter();
        loop_.in_fiber_ = lent_ != nullptr;
        if (lent_ != nullptr)  // a reactor knows by itself that it is a fiber that waits
            loop_.driver_.store(loop_.worker_.reactor ? loop_.worker_.reactor.get() : lent_,
                                std::memory_order_release);
    }
    inside(const inside&) = delete;
    inside& operator=(const inside&) = delete;
    ~inside() {
        leave();
        loop_.in_fiber_ = false;
        loop_.driver_.store(loop_.resting_driver(), std::memory_order_release);
        if (lent_ != nullptr) {  // whoever was asked to wake it has to be done with it
            while (loop_.posters_.load(std::memory_order_acquire) != 0) std::this_thread::yield();
            lent_->give_back();
        }
        if (loop_.watched_) loop_.expect_posts();
        loop_.running_.store(false, std::memory_order_release);
    }

    // Over a sleep the thread is the outer worker's again: it may be its fiber that waits.
    void enter() noexcept {
        detail::thread_block& thread = detail::this_thread_block();
        running_ = thread.running;
        thread.running = detail::innermost_activity(thread);  // which the worker would have said
        loop_.worker_.outer = thread.runs_for;
        fibers_ = thread.fibers;
        thread.runs_for = &loop_.worker_;
        thread.fibers = nullptr;
    }
    void leave() noexcept {
        detail::thread_block& thread = detail::this_thread_block();
        thread.runs_for = std::exchange(loop_.worker_.outer, nullptr);
        thread.fibers = fibers_;
        thread.running = running_;
    }

private:
    loop& loop_;
    detail::worker_front* fibers_ = nullptr;
    detail::activity* running_ = nullptr;
    driver* lent_ = nullptr;
};

loop::loop(loop_options options)
    : worker_(*this),
      timers_(options.external_wakes),
      external_wakes_(options.external_wakes),
      clock_(options.clock != nullptr ? options.clock : &steady_clock_source()),
      slice_(options.slice),
      unhandled_(std::move(options.unhandled)),
      own_driver_(make_futex_driver()),
      driver_(own_driver_.get()) {
    set_stacks(options.stacks);
    worker_.set_local();
    worker_.closed = worker_.may_close = !external_wakes_;
    worker_.wake_slot = options.wake_slot;
    worker_.timers = &timers_;
    if (options.seed) random_.emplace(*options.seed);
    set_takes_exceptions(unhandled_ != nullptr);
}

loop::~loop() {
    WEFT_ASSERT(!is_here(), "loop: destroyed from inside itself");
    stopping_.store(true, std::memory_order_seq_cst);  // also with nobody here yet
    if (detail::residents* const all = residents_.load(std::memory_order_acquire)) all->stop_all();
    lists_late_at_ = steady_clock_source().now() + detail::time_until_late.load();
    if (const stuck_report left = run()) {
        std::fputs("weft: loop: destroyed while these cannot end:\n", stderr);
        std::fputs(left.text(stuck_report::most_printed).c_str(), stderr);
        detail::fail("loop: destroyed while somebody in it waits for what cannot come");
    }
    while (posters_.load(std::memory_order_acquire) != 0) std::this_thread::yield();
    worker_.attachment.reset();
    worker_.reactor.reset();
}

// --- running

stuck_report loop::run() {
    inside here(*this);
    for (;;) {
        run_ready();
        if (alive() == 0 && inbox_.empty()) return {};
        here.leave();
        const bool may_go_on = sleep();
        here.enter();
        if (!may_go_on) return stuck();
        worker_.begin_ticks();
        look_around();
    }
}

void loop::run_ready() noexcept {
    for (;;) {
        runnable* r = worker_.pick();
        if (r == nullptr) {  // with nothing to run, sleep() looks at the reactor
            worker_.begin_ticks();
            collect();
            r = take_first();
        }
        if (r == nullptr) return;
        while ((r = detail::run_one(*r)) != nullptr) {
            if (!worker_.may_run_next()) {  // a chain without end: others come first now
                worker_.ready.push(r);
                break;
            }
        }
    }
}

runnable* loop::next() noexcept {
    if (stepping_) return nullptr;
    if (worker_.reactor == nullptr)
        worker_.begin_ticks();
    else
        ask_reactor_if_due();
    collect();
    return take_first();
}

// After a look around.
runnable* loop::take_first() noexcept {
    runnable* const r = worker_.take();
    if (r != nullptr) static_cast<void>(worker_.count_transfer());
    return r;
}

void loop::look_around() noexcept {
    if (worker_.reactor != nullptr) ask_reactor();
    collect();
}

void loop::ask_reactor() noexcept {
    const std::size_t before = worker_.ready.size();
    worker_.reactor->poll();
    found_ = worker_.ready.size() - before;
    skipped_ = 0;
    asked_ = worker_.looked;
}

void loop::ask_reactor_if_due() noexcept {
    const std::size_t dispatched = worker_.counted_ticks();
    worker_.begin_ticks();
    if (reactor_is_due(dispatched)) ask_reactor();
}

// Not before as many have run as it found last: what it would find now comes behind them anyway,
// and is cheaper to ask for, and to run, in few large batches. So who waits for I/O waits for one
// round of the queue more at most, and only if others post meanwhile; and no longer than eight of
// the times between two looks, of 100 us at most, or than 500 us and one of these.
bool loop::reactor_is_due(std::size_t dispatched) noexcept {
    constexpr unsigned most_skipped = 8;
    constexpr std::chrono::microseconds most_time{500};
    if (found_ <= dispatched || skipped_ == most_skipped || worker_.looked - asked_ > most_time)
        return true;
    found_ -= dispatched;
    ++skipped_;
    return false;
}

// What came from other threads and from the clock joins the queue.
void loop::collect() noexcept {
    if (lists_late_at_ != no_deadline) [[unlikely]]
        list_late_if_due();
    runnable* r = inbox_.take_all();  // of one that takes no posts what came while it did
    while (r != nullptr) {
        auto* const following = r->next_node;
        worker_.ready.push(r);
        r = following;
    }
    if (timers_.earliest() == no_deadline) return;
    // The clock was asked a moment ago, unless a reactor took its time.
    const bool is_known = worker_.reactor == nullptr && !stepping_;
    timers_.expire(is_known ? worker_.looked : clock_->now(),
                   [this](runnable* r) { worker_.ready.push(r); });
}

// Until something may be ready. False: that will never be.
bool loop::sleep() noexcept {
    const time_point deadline = timers_.earliest();
    const bool timed = deadline != no_deadline && clock_->moves();
    const bool awaits = worker_.reactor != nullptr && worker_.reactor->is_awaited();
    const bool open = takes_posts();
    if (!open && !inbox_.empty()) return true;
    if (!open && !timed && !awaits) return false;
    std::chrono::nanoseconds limit = std::chrono::nanoseconds::max();
    if (timed) limit = deadline - clock_->now();
    if (lists_late_at_ != no_deadline)
        limit = std::min(limit, lists_late_at_ - steady_clock_source().now());
    limit = std::max(limit, std::chrono::nanoseconds::zero());
    if (open && !inbox_.fall_asleep()) return true;
    if (alive() == 0 || limit.count() == 0) return true;
    // The fiber that runs this loop, if one does, is woken by whoever posts here.
    const detail::awaits_others waits(open ? detail::this_thread_block().runs_for : nullptr);
    driver_.load(std::memory_order_relaxed)->wait(limit);
    return true;
}

// The destructor runs, and those that it asked to stop take their time. They are listed once.
void loop::list_late_if_due() noexcept {
    if (steady_clock_source().now() < lists_late_at_) return;
    lists_late_at_ = no_deadline;
    detail::list_late("loop", stuck());
}

// --- stepping

bool loop::step_once() noexcept {
    stepping_ = true;
    worker_.begin_step();
    look_around();
    runnable* const r = worker_.take();
    if (r != nullptr)
        if (runnable* const following = detail::run_one(*r)) worker_.put_first(following);
    worker_.was_picked = false;
    stepping_ = false;
    return r != nullptr;
}

bool loop::step() {
    const inside here(*this);
    return step_once();
}

std::size_t loop::run_until_blocked() {
    const inside here(*this);
    std::size_t steps = 0;
    while (step_once()) ++steps;
    return steps;
}

bool loop::step_or_sleep() noexcept {
    inside here(*this);
    while (!step_once()) {
        if (alive() == 0 && inbox_.empty()) return false;
        here.leave();
        const bool may_go_on = sleep();
        here.enter();
        if (!may_go_on) return false;
    }
    return true;
}

// --- for foreign event loops

bool loop::poll() {
    const inside here(*this);
    driver* const watched = watched_ ? watched_driver_.get() : nullptr;
    if (watched != nullptr) watched->clear();
    worker_.begin_ticks();
    look_around();
    const bool any = !worker_.idle() || !inbox_.empty() || timers_.earliest() <= clock_->now();
    run_ready();
    while (worker_.reactor != nullptr) {  // what has begun to wait is known to the kernel after it
        look_around();
        if (worker_.idle()) break;
        run_ready();
    }
    return any;
}

// From here on a post writes to the descriptor; what is there already makes it readable at once.
void loop::expect_posts() noexcept {
    if (!worker_.idle() || !(takes_posts() ? inbox_.fall_asleep() : inbox_.empty()))
        watched_driver_->wake();
}

int loop::descriptor() {
    if (!watched_) {
        watched_driver_ = make_descriptor_driver();
        if (worker_.reactor != nullptr) watched_driver_->include(worker_.reactor->descriptor());
        watched_ = true;
        if (!running_.load(std::memory_order_relaxed))
            driver_.store(watched_driver_.get(), std::memory_order_release);
        watched_driver_->wake();  // so that the first poll() comes at once
    }
    return watched_driver_->descriptor();
}

// --- what it sleeps in
//
// Posters wake what they find in driver_, perhaps at the moment at which it is replaced. That does
// no harm: only a loop that sleeps needs to be woken, and it is replaced by one that runs. What was
// replaced stays until the end.

bool loop::attach(std::unique_ptr<driver> reactor) {
    WEFT_ASSERT(worker_.reactor == nullptr, "loop: a second reactor is attached");
    if (watched_) watched_driver_->include(reactor->descriptor());
    worker_.reactor = std::move(reactor);
    worker_.ready.expect_kernel();
    if (!stepping_) worker_.begin_ticks();  // what runs now may take long
    driver_.store(in_fiber_ ? worker_.reactor.get() : resting_driver(), std::memory_order_release);
    return true;
}

driver* loop::resting_driver() const noexcept {
    if (watched_) return watched_driver_.get();
    return worker_.reactor != nullptr ? worker_.reactor.get() : own_driver_.get();
}

std::optional<time_point> loop::next_deadline() const noexcept {
    const time_point earliest = timers_.earliest();
    return earliest == no_deadline ? std::nullopt : std::optional(earliest);
}

// --- work comes in

// Also while a fiber of this loop runs another loop inside.
bool loop::is_here() const noexcept {
    for (detail::worker* w = detail::this_thread_block().runs_for; w != nullptr; w = w->outer)
        if (w == &worker_) return true;
    return false;
}

// Others may post here, or those alone whom somebody here waits for: one of its fibers may run
// another loop, to which others may post, or wait for the end of a pool.
bool loop::takes_posts() const noexcept {
    return external_wakes_ || worker_.awaiting_others.load(std::memory_order_relaxed) != 0;
}

void loop::refuse_others() const noexcept {
    WEFT_ASSERT(is_here() || !running_.load(std::memory_order_relaxed),
                "loop: posted to from another thread, and external_wakes is false");
}

void loop::post(runnable* r) {
    detail::note_posted(*r);
    if (detail::this_thread_block().runs_for == &worker_) [[likely]]
        worker_.ready.push(r);
    else
        post_from_outside(r);
}

void loop::defer(runnable* r) {
    detail::note_posted(*r);
    if (detail::this_thread_block().runs_for == &worker_) [[likely]]
        worker_.wake(r);
    else
        post_from_outside(r);
}

[[gnu::noinline]] void loop::post_from_outside(runnable* r) noexcept {
    if (!external_wakes_ && (is_here() || !takes_posts())) {
        refuse_others();
        worker_.ready.push(r);
        return;
    }
    // What it posts may be the last thing that this loop runs; ~loop waits for the poster to be
    // gone.
    posters_.fetch_add(1, std::memory_order_relaxed);
    if (inbox_.push(r)) wake_driver();
    posters_.fetch_sub(1, std::memory_order_release);
}

void loop::wake_driver() noexcept { driver_.load(std::memory_order_acquire)->wake(); }

void loop::add_work(std::ptrdiff_t change) noexcept {
    if (detail::this_thread_block().runs_for == &worker_) [[likely]] {
        worker_.work += change;
    } else if (!external_wakes_) {
        refuse_others();
        worker_.work += change;
    } else {
        posters_.fetch_add(1, std::memory_order_relaxed);  // as in post_from_outside()
        outside_work_.fetch_add(change, std::memory_order_seq_cst);
        if (change < 0 && inbox_.rouse()) wake_driver();
        posters_.fetch_sub(1, std::memory_order_release);
    }
}

std::size_t loop::alive() const noexcept {
    return static_cast<std::size_t>(worker_.work + outside_work_.load(std::memory_order_seq_cst));
}

random_source& loop::random() noexcept {
    if (random_) return *random_;
    return executor::random();
}

void loop::unhandled(std::exception_ptr error, runnable& r) noexcept {
    if (unhandled_)
        unhandled_(std::move(error), r);
    else
        executor::unhandled(std::move(error), r);
}

// --- looking in

void loop::describe(const std::function<void(std::string_view)>& line) const {
    if (const detail::residents* const all = residents_.load(std::memory_order_acquire))
        all->describe(line);
}

stuck_report loop::stuck() const {
    stuck_report report;
    describe([&](std::string_view line) { report.waiters.emplace_back(line); });
    if (report.waiters.empty())
        report.waiters.push_back(std::to_string(alive()) + " units of work that nobody describes");
    return report;
}

std::string stuck_report::text(std::size_t most) const {
    std::string all;
    const std::size_t told = std::min(most, waiters.size());
    for (std::size_t i = 0; i < told; ++i) all.append(waiters[i]).append("\n");
    if (told < waiters.size())
        all.append("and ").append(std::to_string(waiters.size() - told)).append(" more\n");
    return all;
}

}  // namespace weft::inline v0
