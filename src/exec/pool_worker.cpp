// pool_worker.cpp - what one thread of a pool does: run, look around, search, sleep.
//
//   work:  take from the own queues -> nothing? find: inbox, timers, overflow list, others' rings
//          -> nothing? sleep -> again
//
// SPDX-License-Identifier: Apache-2.0
#include "exec/pool_worker.hpp"

#include <algorithm>
#include <chrono>

#include <weft/base/assert.hpp>
#include <weft/base/test_point.hpp>

#include "base/pause.hpp"
#include "base/thread_block.hpp"

namespace weft::inline v0::detail {

namespace {

// About what a wake of a sleeper costs: whoever waits no longer than that was right to spin.
constexpr std::chrono::microseconds patience{20};
// A woken one stands in the slot of a busy worker: so long it is given to be run there.
constexpr std::chrono::microseconds grace{5};
// To take one or two from a worker that is about to run them costs both more than it gains: so a
// searcher is content with few only after this many looks, about a microsecond.
constexpr unsigned patient_rounds = 6;
constexpr std::uint32_t worthwhile = 8;
constexpr unsigned looks_at_mail = 512;
// Now and then a worker with many gives some away.
constexpr unsigned looks_between_mixing = 8;
constexpr std::uint32_t mixed_at_once = 16;
constexpr std::uint32_t least_to_mix = 64;
// Places in the ring.
constexpr std::uint32_t fetched_ahead = 4;
// Runnables taken from the overflow list. Few while the ring is well filled: what is there is the
// youngest, and if that starts others in turn, few are alive at a time (decisions/0005).
constexpr std::size_t most_at_once = 128;
constexpr std::size_t enough = 256;
constexpr std::size_t some = 4;

time_point now() noexcept { return steady_clock_source().now(); }

}  // namespace

pool_worker::pool_worker(pool_core& c, executor& owner, unsigned i, std::uint64_t seed)
    : worker(owner),
      core(c),
      index(i),
      own_timers(true),
      random(seed),
      first_driver(make_futex_driver()),
      sleeps_in(first_driver.get()) {
    number = static_cast<std::uint16_t>(i + 1);
    timers = &own_timers;
    wake_slot = true;
    ticks.store(ticks_between, std::memory_order_relaxed);
}

// --- running

void pool_worker::work() noexcept {
    this_thread_block().runs_for = this;
    for (;;) {
        runnable* r = pick();
        if (r == nullptr) r = find();
        if (r == nullptr) break;
        run_chain(r);
    }
    this_thread_block().runs_for = nullptr;
    this_thread_block().fibers = nullptr;
}

void pool_worker::run_chain(runnable* r) noexcept {
    while ((r = r->run()) != nullptr) {
        if (!count_transfer()) {  // a chain of transfers without end: others come first now
            receive(r, std::memory_order_seq_cst);
            return core.notify();
        }
    }
}

void pool_worker::begin_ticks() noexcept {
    dispatched.add(span.load(std::memory_order_relaxed) - ticks.load(std::memory_order_relaxed));
    worker::begin_ticks();
}

bool worker::look_without_leaving() noexcept {
    auto& me = static_cast<pool_worker&>(*this);
    me.begin_ticks();
    if (reactor != nullptr) reactor->poll();
    me.collect();
    return front != nullptr || !ready.empty();
}

// Due between two runnables, every 61 dispatches.
runnable* pool_worker::look_around() noexcept {
    begin_ticks();
    if (reactor != nullptr) reactor->poll();
    collect();
    runnable* r = take_overflow();
    if (r == nullptr) r = take();
    if (r != nullptr) static_cast<void>(count_transfer());
    if (shared != nullptr && ++looks_ % looks_between_mixing == 0) mix();
    return r;
}

// Fibers that only yield never leave nobody with nothing to do, so nothing would be taken from a
// worker that has more of them than another, or less of its processor. A few of the eldest go where
// any worker finds them.
void pool_worker::mix() noexcept {
    if (ring.size() < least_to_mix) return;
    const std::uint32_t count = ring.pop_some(loot_, mixed_at_once);
    core.overflow.push(std::span(loot_).first(count));
    core.notify();
}

// What came from other threads for this worker alone, and from the clock.
void pool_worker::collect() noexcept {
    runnable* r = mail.take_all();
    if (r != nullptr) lives_by_mail_ = true;
    while (r != nullptr) {
        runnable* const following = r->next_node;
        ready.push(r);
        r = following;
    }
    if (own_timers.earliest() == no_deadline) return;
    bool others_may = false;
    own_timers.expire(core.clock.now(), [this, &others_may](runnable* due) {
        if (core.options.force_migrate && due->bound_to == 0 && shared != nullptr)
            return core.send(core.next_of(*this), due);
        receive(due, std::memory_order_seq_cst);
        others_may = true;
    });
    if (others_may) core.notify();
}

// The eldest batch of it, the first to be run now, the others to the ring; no more than half of
// that, and no more than a share, so that others find something, too.
runnable* pool_worker::take_overflow() noexcept {
    std::size_t share = core.overflow.size() / core.workers.size() + 1;
    if (ring.size() > enough) share = std::min(share, some);
    runnable_batch batch = core.overflow.take();
    if (batch.size == 0) return nullptr;
    runnable* const r = take_first(batch);
    if (batch.size == 0) return r;
    const std::size_t kept = std::min(batch.size, std::min(share, most_at_once) - 1);
    for (std::size_t i = 0; i + 1 < kept; ++i) receive(take_first(batch));
    if (kept != 0) receive(take_first(batch), std::memory_order_seq_cst);
    if (batch.size != 0) core.overflow.push_back(batch);
    core.notify();  // they were out of sight: whoever looked meanwhile, and sleeps, saw none
    return r;
}

// One that may run now, without anybody else being told. seq_cst if somebody is told afterwards.
void pool_worker::receive(runnable* r, std::memory_order order) noexcept {
    if (r->bound_to != 0 && r->bound_to != number)
        core.send(*core.workers[r->bound_to - 1U], r);
    else if (shared == nullptr || r->bound_to != 0)
        ready.push(r);
    else
        put_in_ring(r, order);
}

// --- the queues of a worker among others

runnable* pool_worker::take_from_queues() noexcept {
    took_hidden = false;
    if (slot.load(std::memory_order_relaxed) != nullptr)
        if (runnable* const r = slot.exchange(nullptr, std::memory_order_acquire)) {
            slot_changes.add(1);
            took_hidden = true;
            return r;
        }
    if (!ready.empty() && (turn_of_bound_ = !turn_of_bound_)) {
        took_hidden = true;
        return ready.pop();
    }
    runnable* const r = ring.pop();
    if (r == nullptr) {
        took_hidden = true;
        return ready.pop();
    }
    if (runnable* const ahead = ring.peek(fetched_ahead)) __builtin_prefetch(ahead, 1);
    return r;
}

// seq_cst: whoever sleeps looks at the slot after it said so.
void pool_worker::put_in_slot(runnable* r) noexcept {
    if (slot_left == 0) {
        slot_left = slot_limit;
        return put_in_ring(r, std::memory_order_seq_cst);
    }
    --slot_left;
    slot_changes.add(1);  // before: whoever sees r there sees this, too
    if (runnable* const displaced = slot.exchange(r, std::memory_order_seq_cst))
        put_in_ring(displaced, std::memory_order_seq_cst);
}

void pool_worker::put_in_ring(runnable* r, std::memory_order order) noexcept {
    if (ring.push(r, order)) [[likely]]
        return;
    const std::uint32_t count = ring.pop_some(loot_, most_at_once);
    core.overflow.push(std::span(loot_).first(count));
    overflowed.add(count);
    if (ring.push(r, order)) return;
    core.overflow.push(r);  // never: the owner alone pushes
}

void pool_worker::post(runnable* r) noexcept {
    if (shared == nullptr) return ready.push(r);
    if (core.options.force_migrate && r->bound_to == 0) return core.send(core.next_of(*this), r);
    if (r->bound_to != 0) return receive(r);
    put_in_ring(r, std::memory_order_seq_cst);
    core.notify();
}

runnable* worker::take_otherwise() noexcept {
    if (shared != nullptr) return shared->take_from_queues();
    if ((ticks.load(std::memory_order_relaxed) & 7) == 0)  // the elders have their share
        if (runnable* const r = ready.pop()) return r;
    runnable* const r = young;
    young = r->next_node;
    plain = young == nullptr;
    return r;
}

// To the slot if that is empty, so that a tree of fibers is walked in depth; with many ready
// already the young come first for the same reason: what they start in turn is alive for a short
// time only.
void worker::start(runnable* r) noexcept {
    if (shared != nullptr) return shared->start_shared(r);
    if (front == nullptr) return wake(r);
    if (ready.size() < many) return ready.push(r);
    r->next_node = young;
    young = r;
    plain = false;
}

// With one worker always among the young: there the last is found again.
void worker::start_child(runnable* r) noexcept {
    if (shared != nullptr) return shared->start_shared(r);
    r->next_node = young;
    young = r;
    plain = false;
}

runnable* worker::take_back(bool (*wanted)(const runnable& r, const void* by),
                            const void* by) noexcept {
    if (shared != nullptr) return shared->take_back_shared(wanted, by);
    runnable* const r = young;
    if (r == nullptr || !wanted(*r, by)) return nullptr;
    young = r->next_node;
    plain = young == nullptr;
    return r;
}

// It must be taken out before it can be looked at: whoever takes it may end it. One that is not
// wanted goes back, and others are told, for while it was out nobody saw it.
runnable* pool_worker::take_back_shared(bool (*wanted)(const runnable& r, const void* by),
                                        const void* by) noexcept {
    if (slot.load(std::memory_order_relaxed) != nullptr)
        if (runnable* const r = slot.exchange(nullptr, std::memory_order_acquire)) {
            slot_changes.add(1);
            if (wanted(*r, by)) return r;
            slot_changes.add(1);
            slot.store(r, std::memory_order_seq_cst);  // the owner alone fills it
            core.notify();
        }
    runnable* const r = ring.take_back();
    if (r == nullptr || wanted(*r, by)) return r;
    put_in_ring(r, std::memory_order_seq_cst);
    core.notify();
    return nullptr;
}

void pool_worker::start_shared(runnable* r) noexcept {
    const bool anywhere = r->bound_to == 0 && !core.options.force_migrate;
    if (anywhere && slot.load(std::memory_order_relaxed) == nullptr) return wake_shared(r);
    post(r);
}

void worker::wake_shared(runnable* r) noexcept {
    pool_worker& me = *shared;
    if (r->bound_to != 0 || me.core.options.force_migrate) return me.post(r);
    me.put_in_slot(r);
    me.core.notify();
}

void worker::requeue_shared(runnable* r) noexcept {
    pool_worker& me = *shared;
    if (r->bound_to != 0 || me.core.options.force_migrate) return me.post(r);
    if (me.took_hidden) return me.post(r);  // others are told: what runs next may run for long
    // With many elsewhere it goes behind those, not only behind the ones of this worker.
    if (me.ring.size() > 3 * enough && !me.core.overflow.empty()) [[unlikely]]
        me.core.overflow.push(r);
    else
        me.put_in_ring(r, std::memory_order_release);
}

// --- searching

// nullptr: the pool is at its end.
runnable* pool_worker::find() noexcept {
    bool searching = false;
    for (;;) {
        at.store(activity_of_worker::searching, std::memory_order_relaxed);
        runnable* r = look_around();
        if (r == nullptr && lives_by_mail_ && !searching && !core.one_cpu) r = await_mail();
        if (r == nullptr && !searching) searching = core.parked.start_searching();
        if (r == nullptr && searching) r = search();
        if (r != nullptr) {
            at.store(activity_of_worker::running, std::memory_order_relaxed);
            if (searching && core.parked.stop_searching() && is_work_visible()) core.notify();
            return r;
        }
        if (core.stop.load(std::memory_order_seq_cst)) return nullptr;
        if (attachment != nullptr) attachment->idle();
        if (front != nullptr || !ready.empty() || !mail.empty())
            continue;  // somebody may try again
        sleep(searching);
        searching = true;  // however it was woken
    }
}

// Two workers whose fibers send to each other in turn live by their inboxes: looked at closely for
// about a microsecond, and before the words that all workers share are touched.
runnable* pool_worker::await_mail() noexcept {
    for (unsigned i = 1; i <= looks_at_mail; ++i) {
        if (!mail.empty()) return look_around();
        if (i % 16 == 0) pause();
    }
    return nullptr;
}

runnable* pool_worker::search() noexcept {
    const bool spins = !core.one_cpu;
    const auto until = now() + patience;
    for (unsigned round = 0;; ++round) {
        if (runnable* const r =
                steal_from_others(spins && round < patient_rounds ? worthwhile : 1)) {
            static_cast<void>(count_transfer());
            lives_by_mail_ = false;
            return r;
        }
        if (!mail.empty() || !core.overflow.empty()) return look_around();
        if (core.stop.load(std::memory_order_relaxed) || !spins) return nullptr;
        if (round % 8 == 7) {
            if (now() >= until) return nullptr;
            if (own_timers.earliest() <= core.clock.now()) return look_around();
            if (reactor != nullptr)
                if (runnable* const r = look_around()) return r;
        }
        // Each look takes the cache line away from whoever works on it.
        for (unsigned i = 0; i < std::min(round + 1, 8U) && mail.empty(); ++i) pause();
    }
}

runnable* pool_worker::steal_from_others(std::uint32_t least) noexcept {
    if (shared == nullptr) return nullptr;
    const std::size_t count = core.workers.size();
    const std::size_t first = random.next() % count;
    for (std::size_t i = 0; i < count; ++i) {
        pool_worker& victim = *core.workers[(first + i) % count];
        if (&victim == this) continue;
        if (runnable* const r = steal_from(victim, least)) return r;
    }
    return nullptr;
}

// Half of its ring: the eldest is returned, the others go to the own ring.
runnable* pool_worker::steal_from(pool_worker& victim, std::uint32_t least) noexcept {
    if (victim.ring.size() < least) return nullptr;
    const std::uint32_t count = victim.ring.steal(loot_);
    if (count == 0) return nullptr;
    for (std::uint32_t i = 1; i < count; ++i) put_in_ring(loot_[i], std::memory_order_release);
    steals.add(1);
    stolen.add(count);
    return loot_[0];
}

// The one in the slot of a busy worker is left to that worker, whose caches it is hot in, unless
// that does not get to it: the same dispatch seen at both ends of the grace.
bool pool_worker::slot_is_stuck(pool_worker& victim) noexcept {
    if (victim.slot.load(std::memory_order_seq_cst) == nullptr) return false;
    const std::uint64_t seen = victim.slot_changes.get();
    const auto until = now() + grace;
    do {
        pause();
        if (victim.slot_changes.get() != seen ||
            victim.slot.load(std::memory_order_relaxed) == nullptr)
            return false;
    } while (now() < until);
    runnable* const r = victim.slot.exchange(nullptr, std::memory_order_acquire);
    if (r == nullptr) return false;
    put_in_ring(r, std::memory_order_release);
    steals.add(1);
    stolen.add(1);
    return true;
}

// After having said that it searches no more, or that it sleeps (seq_cst, all of it).
bool pool_worker::is_work_visible() const noexcept {
    if (!core.overflow.empty()) return true;
    for (const auto& one : core.workers)
        if (!one->ring.empty() || one->slot.load(std::memory_order_seq_cst) != nullptr) return true;
    return false;
}

// The same for one that is about to sleep. A slot whose worker goes on dispatching needs nobody:
// what stood there was taken, or displaced to the ring.
bool pool_worker::is_help_needed() noexcept {
    if (!core.overflow.empty()) return true;
    for (const auto& one : core.workers)
        if (!one->ring.empty()) return true;
    for (const auto& one : core.workers)
        if (one.get() != this && slot_is_stuck(*one)) return true;
    return false;
}

// --- sleeping

void pool_worker::attach(std::unique_ptr<driver> attached) noexcept {
    WEFT_ASSERT(reactor == nullptr, "pool: a second reactor is attached");
    reactor = std::move(attached);
    sleeps_in.store(reactor.get(), std::memory_order_release);
}

void pool_worker::sleep(bool was_searching) noexcept {
    core.times_parked.fetch_add(1, std::memory_order_seq_cst);
    core.parked.park(index, was_searching);
    // False: something came for this worker.
    const bool asleep = mail.fall_asleep();
    WEFT_TEST_POINT("pool: parked, about to look again");
    if (asleep && !is_help_needed() && !core.stop.load(std::memory_order_seq_cst)) {
        core.tell_if_quiet();
        std::chrono::nanoseconds limit = std::chrono::nanoseconds::max();
        const time_point deadline = own_timers.earliest();
        if (deadline != no_deadline && core.clock.moves())
            limit = std::max(deadline - core.clock.now(), std::chrono::nanoseconds::zero());
        if (limit.count() != 0) {
            parks.add(1);
            at.store(activity_of_worker::asleep, std::memory_order_relaxed);
            const auto before = now();
            sleeps_in.load(std::memory_order_relaxed)->wait(limit);
            idle_time.add((now() - before).count());
        }
    }
    core.parked.unpark(index);
}

}  // namespace weft::inline v0::detail
