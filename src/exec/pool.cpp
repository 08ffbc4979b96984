// pool.cpp - the M:N scheduler: what its workers share, how it begins and ends.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/exec/pool.hpp>

#include <pthread.h>

#include <algorithm>
#include <cstdlib>
#include <span>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <utility>

#include <weft/base/assert.hpp>
#include <weft/base/thread_block.hpp>

#include "exec/cpus.hpp"
#include "exec/late.hpp"
#include "exec/pool_worker.hpp"
#include "exec/watchdog.hpp"

namespace weft::inline v0 {

namespace detail {

namespace {

pool_options checked(pool_options options) {
    if (options.workers == 0) options.workers = usable_cpus();
    if (options.workers > 0xfffe)
        throw std::invalid_argument("weft: pool_options::workers is above 65534");
    if (options.watchdog < std::chrono::nanoseconds::zero())
        throw std::invalid_argument("weft: pool_options::watchdog is negative");
    const char* const forced = std::getenv("WEFT_FORCE_MIGRATE");
    if (forced != nullptr && std::string_view(forced) == "1") options.force_migrate = true;
    return options;
}

}  // namespace

pool_core::pool_core(executor& o, pool_options wanted)
    : owner(o),
      options(checked(std::move(wanted))),
      clock(options.clock != nullptr ? *options.clock : steady_clock_source()),
      one_cpu(usable_cpus() == 1),
      may_keep_back(process_barrier::available() && !options.force_migrate),
      parked(options.workers),
      outside_random(options.seed ? *options.seed : owner.executor::random().next()) {
    const std::uint64_t seed = outside_random.next();
    for (unsigned i = 0; i < options.workers; ++i) {
        workers.push_back(std::make_unique<pool_worker>(*this, owner, i, seed + i));
        pool_worker& made = *workers.back();
        if (options.workers == 1) made.set_local();
        made.shared = made.local ? nullptr : &made;
        made.ready.set_others(!made.local);
    }
}

void pool_core::start() {
    const std::vector<int> cpus = allowed_cpus();
    const bool bound = options.bind_to_cpus && workers.size() <= cpus.size();
    const bool inherits = cpus == inherited_cpus();  // else this thread is a bound one
    try {
        for (const auto& one : workers) {
            one->thread = std::thread([w = one.get()] { w->work(); });
            const std::string name = options.name + "-" + std::to_string(one->index);
            ::pthread_setname_np(one->thread.native_handle(), name.substr(0, 15).c_str());
            const std::span all(cpus);
            if (bound || !inherits)
                bind_to(one->thread.native_handle(), bound ? all.subspan(one->index, 1) : all);
        }
        if (options.watchdog.count() != 0) dog_ = std::make_unique<watchdog>(*this);
    } catch (...) {
        stop_and_join();
        throw;
    }
}

pool_core::~pool_core() { stop_and_join(); }

void pool_core::stop_and_join() noexcept {
    dog_.reset();
    stop.store(true, std::memory_order_seq_cst);
    for (const auto& one : workers) one->wake_thread();
    for (const auto& one : workers)
        if (one->thread.joinable()) one->thread.join();
    while (outsiders.load(std::memory_order_acquire) != 0) std::this_thread::yield();
    for (const auto& one : workers) {
        one->attachment.reset();
        one->sleeps_in.store(one->first_driver.get(), std::memory_order_relaxed);
        one->reactor.reset();
    }
}

// --- who is here

pool_worker* pool_core::worker_here() const noexcept {
    worker* const w = this_thread_block().runs_for;
    return w != nullptr && &w->home == &owner ? static_cast<pool_worker*>(w) : nullptr;
}

bool pool_core::is_inside() const noexcept {
    for (worker* w = this_thread_block().runs_for; w != nullptr; w = w->outer)
        if (&w->home == &owner) return true;
    return false;
}

// --- work comes in

void pool_core::notify() noexcept {
    const unsigned woken = parked.to_wake();
    if (woken == parking::nobody) [[likely]]
        return;
    if (pool_worker* const here = worker_here()) here->wakes.add(1);
    workers[woken]->wake_thread();
}

// What it posts may be the last thing that this pool runs; the end waits for the poster to be gone.
void pool_core::post_from_outside(runnable* r) noexcept {
    outsiders.fetch_add(1, std::memory_order_relaxed);
    if (r->bound_to != 0) {
        send(*workers[r->bound_to - 1U], r);
    } else {
        overflow.push(r);
        notify();
    }
    outsiders.fetch_sub(1, std::memory_order_release);
}

void pool_core::send(pool_worker& to, runnable* r) noexcept {
    pool_worker* const here = worker_here();
    if (here != nullptr) here->remote_wakes.add(1);
    if (!to.mail.push(r)) return;
    if (here != nullptr) here->wakes.add(1);
    to.wake_thread();
}

// --- the end of all work
//
//   whoever waits                              the last one that parks, or an outsider's
//   add_work(-1) says so                   (seq_cst)        parks, or counts down (seq_cst) quiet?
//   else sleeps                         somebody waits, and it is quiet? tells them
//
// Workers count for themselves, without atomic additions. With all of them parked their figures
// stand still, and what an outsider adds he adds before he posts: read last, his figure cannot be
// older than what came of it.

std::ptrdiff_t pool_core::alive() const noexcept {
    std::ptrdiff_t sum = 0;
    for (const auto& one : workers) sum += one->work_count.load(std::memory_order_relaxed);
    return sum + outside_work.load(std::memory_order_seq_cst);
}

// Nobody may have run between the first figure that was read and the last.
bool pool_core::is_quiet() const noexcept {
    const std::uint64_t before = times_parked.load(std::memory_order_seq_cst);
    if (!parked.all_parked() || alive() != 0) return false;
    return parked.all_parked() && times_parked.load(std::memory_order_seq_cst) == before;
}

void pool_core::tell_if_quiet() noexcept {
    if (!somebody_waits_.load(std::memory_order_seq_cst) || !is_quiet()) return;
    const std::lock_guard lock(mutex_);
    for (driver* const one : waiting_) one->wake();
}

void pool_core::add_outside_work(std::ptrdiff_t change) noexcept {
    outsiders.fetch_add(1, std::memory_order_relaxed);
    outside_work.fetch_add(change, std::memory_order_seq_cst);
    if (change < 0) tell_if_quiet();
    outsiders.fetch_sub(1, std::memory_order_release);
}

bool pool_core::wait_until_quiet(std::chrono::nanoseconds limit) {
    worker* const outer = this_thread_block().runs_for;
    driver* lent = nullptr;  // inside a fiber it waits, not the thread
    if (outer != nullptr && outer->lender != nullptr)
        lent = outer->lender->driver_of_running_fiber();
    const std::unique_ptr<driver> own = lent == nullptr ? make_futex_driver() : nullptr;
    driver* const mine = lent != nullptr ? lent : own.get();
    {
        const std::lock_guard lock(mutex_);
        waiting_.push_back(mine);
        somebody_waits_.store(true, std::memory_order_seq_cst);
    }
    const time_point began = steady_clock_source().now();
    bool quiet = is_quiet();
    while (!quiet) {
        std::chrono::nanoseconds left = limit;
        if (limit > std::chrono::nanoseconds::zero() && limit != std::chrono::nanoseconds::max())
            left = limit - (steady_clock_source().now() - began);
        if (left.count() <= 0) break;
        const awaits_others waits(this_thread_block().runs_for);
        mine->wait(left);
        quiet = is_quiet();
    }
    {
        const std::lock_guard lock(mutex_);
        waiting_.erase(std::find(waiting_.begin(), waiting_.end(), mine));
        if (waiting_.empty()) somebody_waits_.store(false, std::memory_order_seq_cst);
    }
    if (lent != nullptr) lent->give_back();
    return quiet;
}

}  // namespace detail

// --- the pool

pool::pool(pool_options options) {
    core_ = std::make_unique<detail::pool_core>(*this, std::move(options));
    set_takes_exceptions(core_->options.unhandled != nullptr);
    set_stacks(core_->options.stacks);
    core_->start();  // not before core_ is there: workers ask for it
}

pool::~pool() {
    refuse_inside("~pool");
    if (const stuck_report late = shutdown(detail::time_until_late)) {
        detail::list_late("pool", late);
        drain();
    }
    core_->stop_and_join();  // while core_ is there: workers ask for its clock
    core_.reset();
}

void pool::refuse_inside(const char* call) const noexcept {
    if (core_->is_inside()) detail::fail("pool: called from inside itself", call);
}

void pool::drain() {
    refuse_inside("drain");
    static_cast<void>(core_->wait_until_quiet(std::chrono::nanoseconds::max()));
}

stuck_report pool::shutdown(std::chrono::nanoseconds limit) {
    refuse_inside("shutdown");
    stopping_.store(true, std::memory_order_seq_cst);
    if (detail::residents* const all = residents_.load(std::memory_order_acquire)) all->stop_all();
    if (core_->wait_until_quiet(limit)) return {};
    stuck_report report;
    describe([&](std::string_view line) { report.waiters.emplace_back(line); });
    if (report.waiters.empty())
        report.waiters.push_back(std::to_string(alive()) + " units of work that nobody describes");
    return report;
}

std::size_t pool::alive() const noexcept {
    return static_cast<std::size_t>(std::max<std::ptrdiff_t>(core_->alive(), 0));
}

unsigned pool::workers() const noexcept { return static_cast<unsigned>(core_->workers.size()); }

worker_counters pool::counters(unsigned worker) const {
    if (worker >= core_->workers.size())
        throw std::out_of_range("weft: pool::counters: there is no such worker");
    const detail::pool_worker& one = *core_->workers[worker];
    return {.dispatches = one.dispatches(),
            .steals = one.steals.get(),
            .stolen = one.stolen.get(),
            .parks = one.parks.get(),
            .wakes = one.wakes.get(),
            .remote_wakes = one.remote_wakes.get(),
            .overflow = one.overflowed.get(),
            .idle = one.idle_time.get()};
}

void pool::describe(const std::function<void(std::string_view)>& line) const {
    if (const detail::residents* const all = residents_.load(std::memory_order_acquire))
        all->describe(line);
}

void pool::post(runnable* r) {
    detail::note_posted(*r);
    if (detail::pool_worker* const here = core_->worker_here()) [[likely]]
        here->post(r);
    else
        core_->post_from_outside(r);
}

void pool::defer(runnable* r) {
    detail::note_posted(*r);
    detail::pool_worker* const here = core_->worker_here();
    if (here == nullptr) return core_->post_from_outside(r);
    if (here->shared == nullptr || r->bound_to != 0 || core_->options.force_migrate)
        here->wake(r);
    else if (here->put_in_slot(r))
        core_->notify();  // one that was displaced may have been deferred, too: nobody knows of it
}

runnable* pool::next() noexcept { return core_->worker_here()->look_around(); }

void pool::add_work(std::ptrdiff_t change) noexcept {
    if (detail::pool_worker* const here = core_->worker_here()) [[likely]]
        here->count_work(change);
    else
        core_->add_outside_work(change);
}

bool pool::attach(std::unique_ptr<driver> reactor) {
    detail::pool_worker* const here = core_->worker_here();
    WEFT_ASSERT(here != nullptr, "pool: a reactor is attached from outside");
    here->attach(std::move(reactor));
    return true;
}

clock_source& pool::clock() noexcept { return core_->clock; }

random_source& pool::random() noexcept {
    if (detail::pool_worker* const here = core_->worker_here()) return here->random;
    return core_->outside_random;
}

bool pool::slice_is_over(std::chrono::nanoseconds held) noexcept {
    return held > core_->options.slice;
}

void pool::unhandled(std::exception_ptr error, runnable& r) noexcept {
    if (core_->options.unhandled)
        core_->options.unhandled(std::move(error), r);
    else
        executor::unhandled(std::move(error), r);
}

}  // namespace weft::inline v0
