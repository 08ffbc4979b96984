// pool_search.cpp - what a worker does that has nothing to do: it looks for work, and then sleeps.
//
//   find:  look around -> its inbox, closely -> others' rings, for some time -> sleep -> again
//
// Who searches and who sleeps is counted in parking.hpp, which has the protocol.
//
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <utility>

#include <weft/base/assert.hpp>
#include <weft/base/test_point.hpp>

#include "base/pause.hpp"
#include "exec/pool_worker.hpp"

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

time_point now() noexcept { return steady_clock_source().now(); }

}  // namespace

// --- searching

// nullptr: the pool is at its end.
runnable* pool_worker::find() noexcept {
    bool searching = false;
    for (;;) {
        at.store(activity_of_worker::searching, std::memory_order_relaxed);
        runnable* r = look_around();
        const bool has_awaited = std::exchange(awaited_in_vain_, false);
        if (r == nullptr && lives_by_mail_ && !has_awaited && !searching && !core.one_cpu)
            r = await_mail();
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

// The same before a fiber leaves. Each time counts as a dispatch, so that timers, the reactor and
// those who wait elsewhere have their turn.
bool worker::await_closely(come_function has_come, const void* what) noexcept {
    return shared->await_for_running(has_come, what);
}

bool pool_worker::await_for_running(come_function has_come, const void* what) noexcept {
    if (!lives_by_mail_ || core.one_cpu || !is_bare() || !core.overflow.empty()) return false;
    if (!count_transfer()) return false;
    for (unsigned i = 1; i <= looks_at_mail; ++i) {
        if (has_come(what)) return true;
        if (!mail.empty()) break;
        if (i % 16 == 0) pause();
    }
    count_missed();
    awaited_in_vain_ = true;
    return false;
}

// Whether its own queues are empty.
bool pool_worker::is_bare() const noexcept {
    return idle() && slot.is_empty() && ring.size() == 0 &&
           !keeps_back.load(std::memory_order_relaxed);
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
    if (!victim.slot.is_seen_filled()) return false;
    const std::uint64_t seen = victim.slot.changes();
    const auto until = now() + grace;
    do {
        pause();
        if (victim.slot.changes() != seen || victim.slot.is_empty()) return false;
    } while (now() < until);
    runnable* const r = victim.slot.steal();
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
        if (!one->ring.empty() || one->slot.is_seen_filled()) return true;
    return has_others_reserve();
}

bool pool_worker::has_others_reserve() const noexcept {
    bool kept = false;
    for (const auto& one : core.workers)
        kept |= one.get() != this && one->keeps_back.load(std::memory_order_seq_cst);
    if (!kept) return false;
    process_barrier::heavy();
    for (const auto& one : core.workers)
        if (one.get() != this && !one->kept_back.empty()) return true;
    return false;
}

// From one whose worker does not get to it.
bool pool_worker::take_others_reserve() noexcept {
    if (!has_others_reserve()) return false;
    for (const auto& one : core.workers) {
        if (one.get() == this || one->kept_back.empty()) continue;
        const std::uint32_t count = one->kept_back.claim(loot_);
        if (count == 0) continue;
        for (std::uint32_t i = 0; i < count; ++i) put_in_ring(loot_[i], std::memory_order_release);
        steals.add(1);
        stolen.add(count);
        break;
    }
    return true;
}

// The same for one that is about to sleep. A slot whose worker goes on dispatching needs nobody:
// what stood there was taken, or displaced to the ring.
bool pool_worker::is_help_needed() noexcept {
    if (!core.overflow.empty()) return true;
    for (const auto& one : core.workers)
        if (!one->ring.empty()) return true;
    for (const auto& one : core.workers)
        if (one.get() != this && slot_is_stuck(*one)) return true;
    return take_others_reserve();
}

// --- sleeping

void pool_worker::attach(std::unique_ptr<driver> attached) noexcept {
    WEFT_ASSERT(reactor == nullptr, "pool: a second reactor is attached");
    reactor = std::move(attached);
    begin_ticks();  // what runs now may take long
    sleeps_in.store(reactor.get(), std::memory_order_release);
}

void pool_worker::sleep(bool was_searching) noexcept {
    WEFT_TEST_POINT("pool: has found nothing, about to park");
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
            idle_time.begin(now());
            sleeps_in.load(std::memory_order_relaxed)->wait(limit);
            idle_time.end(now());
        }
    }
    core.parked.unpark(index);
}

}  // namespace weft::inline v0::detail
