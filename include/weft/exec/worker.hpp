// worker.hpp - what one thread runs from: its queue, the one-place slot, its timers.
//
// A loop is one worker; a pool has one a thread. What runs on a thread finds its worker through the
// library's one thread_local (base/thread_block.hpp). The fiber part hangs its own caches on
// it, and on the executor; exec knows of them only what the two classes below say.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include <weft/base/clock_source.hpp>
#include <weft/exec/driver.hpp>
#include <weft/exec/ready_queue.hpp>
#include <weft/exec/timer_queue.hpp>

namespace weft::inline v0 {

class executor;

namespace detail {

struct pool_worker;

/// Those who live on an executor from one runnable to the next, fibers for example.
class residents {
public:
    virtual ~residents() = default;
    /// Asks every one to end, those that come later too.
    virtual void stop_all() noexcept = 0;
    /// A line for each: who it is and what it waits for.
    virtual void describe(const std::function<void(std::string_view)>& line) const = 0;
};

/// Of the fiber part.
class driver_lender {
public:
    virtual ~driver_lender() = default;
    /// For a loop that is run here: if a fiber runs it, a driver that lets that fiber wait.
    /// nullptr: the thread itself may sleep.
    [[nodiscard]] virtual driver* driver_of_running_fiber() = 0;
};

/// What the fiber part keeps on a worker.
class worker_attachment : public driver_lender {
public:
    /// The worker has nothing to do and is about to sleep.
    virtual void idle() noexcept = 0;
};

/// Thread-safe: no; it belongs to whoever runs it now.
struct worker {
    explicit worker(executor& owner) noexcept : home(owner) {}

    /// What runs next, for one that stops and can switch to it directly; nullptr: back to the
    /// worker's own stack.
    [[nodiscard]] runnable* pick() noexcept {
        const std::uint32_t left = ticks.load(std::memory_order_relaxed);
        if (left == 0) [[unlikely]]
            return ask();
        ticks.store(left - 1, std::memory_order_relaxed);
        runnable* const r = take();
        if (r == nullptr) [[unlikely]]
            count_missed();
        return r;
    }

    /// pick(), if that is but a step and what it gives is of that kind; nullptr: it is not, and
    /// nothing was done.
    [[nodiscard, gnu::always_inline]] runnable* pick_at_once(std::uint8_t kind) noexcept {
        std::uint32_t left = ticks.load(std::memory_order_relaxed);
        if (__builtin_sub_overflow(left, 1U, &left)) [[unlikely]]
            return nullptr;
        runnable* r = front;
        if (r == nullptr) [[likely]] {
            r = first_at_once(kind);
            if (r == nullptr) [[unlikely]]
                return nullptr;
            ready.pop_first(r);
        } else {
            if (r->kind != kind) [[unlikely]]
                return nullptr;
            front = r->next_node;
        }
        ticks.store(left, std::memory_order_relaxed);
        return r;
    }

    /// The same for one that goes on later, behind all others: requeue(self) comes with it.
    [[nodiscard, gnu::always_inline]] runnable* pass_at_once(runnable* self,
                                                             std::uint8_t kind) noexcept {
        std::uint32_t left = ticks.load(std::memory_order_relaxed);
        if (__builtin_sub_overflow(left, 1U, &left) || front != nullptr) [[unlikely]]
            return nullptr;
        runnable* const r = first_at_once(kind);
        if (r == nullptr) [[unlikely]]
            return nullptr;
        ready.rotate(r, self);
        ticks.store(left, std::memory_order_relaxed);
        return r;
    }

    /// For what a runnable has returned. False: it is time to look around, and others come first;
    /// never of one that was picked, which had its turn in the queue.
    [[nodiscard]] bool may_run_next() noexcept {
        if (was_picked) {
            was_picked = false;
            return true;
        }
        return count_transfer();
    }

    /// For one that is run without having been picked. False: it is time to look around.
    [[nodiscard]] bool count_transfer() noexcept {
        const std::uint32_t left = ticks.load(std::memory_order_relaxed);
        if (left == 0) [[unlikely]]
            return renew_ticks();
        ticks.store(left - 1, std::memory_order_relaxed);
        return true;
    }

    /// What is due every so many dispatches, for one that goes on. True: somebody waits who may run
    /// nowhere else. Only for workers of a pool.
    [[nodiscard]] bool look_without_leaving() noexcept;

    /// A tick was counted, and nothing was run.
    void count_missed() noexcept {
        missed.store(missed.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    }

    /// From the slot, else from the queue.
    [[nodiscard]] runnable* take() noexcept {
        runnable* const r = front;
        if (r == nullptr) return ready.is_simple() ? ready.pop_simple() : take_otherwise();
        front = r->next_node;
        return r;
    }

    /// One that begins.
    void start(runnable* r) noexcept;
    /// The same, for a starter that may want it back. With one worker always among the young: there
    /// the last is found again.
    void start_child(runnable* r) noexcept {
        if (shared != nullptr) return start_child_shared(r);
        r->next_node = young;
        young = r;
        ready.set_others(true);
    }
    /// One of those that were started here last, if nobody took it yet and it is wanted; the
    /// question may be asked of others, too. nullptr: there is none.
    using wanted_function = bool (*)(const runnable& r, const void* by);
    [[nodiscard, gnu::always_inline]] runnable* take_back(wanted_function wanted,
                                                          const void* by) noexcept {
        if (shared != nullptr) return take_back_shared(wanted, by);
        runnable* const r = young;
        if (r == nullptr || !wanted(*r, by)) return nullptr;
        young = r->next_node;
        ready.set_others(young != nullptr);
        return r;
    }

    /// Of a pool's worker: so much more is outstanding. The owner alone.
    void count_work(std::ptrdiff_t change) noexcept {
        work_count.store(work_count.load(std::memory_order_relaxed) + change,
                         std::memory_order_relaxed);
    }

    /// Of a pool's worker, among others: one that runs here has nothing to do until `has_come`. If
    /// the worker has nothing else to do, nor any other thread for it, that is looked at for about
    /// a microsecond. True: it has come. False: leave.
    using come_function = bool (*)(const void* what) noexcept;
    [[nodiscard]] bool await_closely(come_function has_come, const void* what) noexcept;

    /// A woken one: to the slot if this worker has one, but not forever.
    void wake(runnable* r) noexcept {
        if (shared != nullptr) return wake_shared(r);
        wake_here(r);
    }
    /// The same, if nobody else takes from it.
    [[gnu::always_inline]] void wake_here(runnable* r) noexcept {
        if (!wake_slot) return ready.push(r);
        if (slot_left == 0 && has_slot_had_its_time(ready.is_long())) [[unlikely]]
            return ready.push(r);
        if (front != nullptr) [[unlikely]]
            displace();
        fill_slot(r);
    }
    /// It is empty, and there are slot_left.
    [[gnu::always_inline]] void fill_slot(runnable* r) noexcept {
        --slot_left;
        r->next_node = nullptr;
        front = r;
    }

    /// One that goes on later, behind all others.
    void requeue(runnable* r) noexcept {
        if (shared == nullptr)
            ready.push(r);
        else
            requeue_shared(r);
    }

    /// Ahead of everything else.
    void put_first(runnable* r) noexcept {
        r->next_node = front;
        front = r;
    }

    /// Nobody but this thread runs what is woken here.
    void set_local() noexcept {
        local = true;
        local_home = &home;
    }

    /// Whether it is that loop's own: then what is started and counted here needs nobody else.
    [[nodiscard]] bool is_loop(const executor& of) const noexcept {
        return &home == &of && local && number == 0;
    }

    [[nodiscard]] bool idle() const noexcept { return front == nullptr && ready.empty(); }

    static constexpr std::uint32_t slot_limit = 64;
    // With many ready: so often that, and so long.
    static constexpr std::uint32_t most_slot_limits = 8;
    static constexpr std::chrono::microseconds slot_time{50};
    static constexpr std::size_t many = 1024;
    static constexpr std::uint32_t ticks_between = 61;
    static constexpr std::uint32_t ticks_at_first = 4;  // unasked, after it had nothing to do
    static constexpr std::uint32_t ticks_unasked = 8;   // with a reactor: without asking the clock
    static constexpr std::uint32_t looks_unasked = 8;   // with neither timers nor a reactor
    static constexpr std::chrono::microseconds time_between{100};

    /// At a look around: when the next is due. In fewer dispatches than ticks_between, if those
    /// before took longer than time_between. With timers or a reactor `looked` is now.
    void begin_ticks() noexcept {
        ++looks;
        if (unasked == 0 || ticks.load(std::memory_order_relaxed) != 0 || is_timed()) [[unlikely]]
            return adapt_ticks();
        --unasked;
        ticks.store(ticks_between, std::memory_order_relaxed);
    }
    /// None: whoever comes next looks around.
    void end_ticks() noexcept {
        const std::uint32_t counted = counted_ticks();
        later_ticks.store(0, std::memory_order_relaxed);
        ticks.store(0, std::memory_order_relaxed);
        span.store(counted, std::memory_order_relaxed);
        unasked = 0;
    }
    /// The executor looks around now, and runs one: whoever comes after it looks, too.
    void begin_step() noexcept {
        ++looks;
        has_rested = true;
        end_ticks();
    }
    /// Those that were counted since begin_ticks().
    [[nodiscard]] std::uint32_t counted_ticks() const noexcept {
        return span.load(std::memory_order_relaxed) - later_ticks.load(std::memory_order_relaxed) -
               ticks.load(std::memory_order_relaxed);
    }
    /// Whether whoever runs does so since `looked`.
    [[nodiscard]] bool runs_since_looked() const noexcept {
        return asked_at == looks && counted_ticks() == 1;
    }

    executor& home;
    const executor* local_home = nullptr;  // the same, if local
    runnable* front = nullptr;             // the slot; several only while a loop is stepped
    ready_queue ready;
    runnable* young = nullptr;             // those that begin while many are ready, the last first
    std::atomic<std::uint32_t> ticks = 0;  // dispatches until the executor looks at inbox and
                                           // timers; written by the owner
    std::atomic<std::uint32_t> span = ticks_between;  // what began with the look before
    std::atomic<std::uint32_t> later_ticks = 0;       // of those the ones not in ticks yet
    std::atomic<std::uint64_t> missed = 0;            // ticks that found nothing to run
    std::uint32_t looks = 0;                          // around, so far
    std::uint32_t asked_at = 0;            // of them the one at which the clock was asked last
    std::uint32_t unasked = 0;             // so many come at which it need not be
    bool has_rested = true;                // it had nothing to do since
    std::uint32_t slot_left = slot_limit;  // wakes that go to the slot until one goes to the queue
    std::uint32_t slot_limits = 0;         // how often slot_left was used up since that was so
    bool wake_slot = false;
    bool local = false;             // nobody but this thread runs what is woken here
    bool was_picked = false;        // what a runnable has just returned came from pick()
    bool closed = false;            // no other thread ever wakes or cancels anything here
    bool may_close = false;         // it is closed, unless somebody here awaits_others
    std::uint16_t number = 0;       // in its pool, from 1
    pool_worker* shared = nullptr;  // itself, if others may take from it
    timer_queue* timers = nullptr;
    std::ptrdiff_t work = 0;  // of a loop: outstanding, as far as its own thread counted it
    std::atomic<std::ptrdiff_t> work_count = 0;  // of a pool: what was added here, less what ended
    worker* outer = nullptr;                     // the one whose fiber runs this one's loop
    std::unique_ptr<worker_attachment> attachment;
    std::unique_ptr<driver> reactor;            // of the io part
    time_point looked{};                        // when it last looked around and asked the clock
    time_point slot_since{};                    // when one went to the queue last, with many ready
    driver_lender* lender = nullptr;            // the attachment, or that of all guests
    std::atomic<unsigned> awaiting_others = 0;  // so many here do; changed by the owner

protected:
    /// For a wake that finds no slot_left, which is renewed. True: it goes to the queue.
    [[nodiscard]] bool has_slot_had_its_time(bool many_are_ready) noexcept;
    // pool_worker.cpp
    void wake_shared(runnable* r) noexcept;

private:
    [[nodiscard]] runnable* ask() noexcept;
    [[nodiscard, gnu::always_inline]] runnable* first_at_once(std::uint8_t kind) const noexcept {
        if (!ready.is_simple()) [[unlikely]]
            return nullptr;
        runnable* const r = ready.first();
        return r != nullptr && r->kind == kind ? r : nullptr;
    }
    [[nodiscard]] bool is_timed() const noexcept {
        return reactor != nullptr || timers->earliest() != no_deadline;
    }
    void adapt_ticks() noexcept;
    void set_ticks(std::uint32_t all, std::uint32_t first) noexcept;
    [[nodiscard]] bool renew_ticks() noexcept;
    void displace() noexcept;
    [[nodiscard]] runnable* take_otherwise() noexcept;
    void start_child_shared(runnable* r) noexcept;
    [[nodiscard]] runnable* take_back_shared(wanted_function wanted, const void* by) noexcept;
    void requeue_shared(runnable* r) noexcept;
};

/// Over a wait, of one that runs there, for what another thread does: a worker that is closed is
/// not meanwhile.
class awaits_others {
public:
    explicit awaits_others(worker* w) noexcept
        : worker_(w != nullptr && w->may_close ? w : nullptr) {
        if (worker_ != nullptr) change(1);
    }
    awaits_others(const awaits_others&) = delete;
    awaits_others& operator=(const awaits_others&) = delete;
    ~awaits_others() {
        if (worker_ != nullptr) change(-1U);
    }

private:
    void change(unsigned by) noexcept {
        const unsigned now = worker_->awaiting_others.load(std::memory_order_relaxed) + by;
        worker_->awaiting_others.store(now, std::memory_order_relaxed);
        worker_->closed = now == 0;
    }

    worker* worker_;
};

}  // namespace detail
}  // namespace weft::inline v0
