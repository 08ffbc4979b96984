// pool_worker.cpp - what one thread of a pool does while it has work: run, and look around.
//
//   work:  take from the own queues -> nothing? find (pool_search.cpp) -> run it -> again
//
// SPDX-License-Identifier: Apache-2.0
#include "exec/pool_worker.hpp"

#include <algorithm>
#include <utility>

#include <weft/base/thread_block.hpp>

#include "base/prefetch.hpp"

namespace weft::inline v0::detail {

namespace {

// Now and then a worker with many gives some away.
constexpr std::uint64_t dispatches_between_mixing = 8 * worker::ticks_between;
constexpr std::uint32_t one_mixed_of = 32;
constexpr std::uint32_t least_to_mix = 64;
// Places in the ring.
constexpr std::uint32_t fetched_ahead = 4;
// Of a runnable: a fiber's control block, all of which is written if it starts here, and ends.
constexpr std::size_t fetched_lines = 4;
// Runnables taken from the overflow list. Few while the ring is well filled: what is there is the
// youngest, and if that starts others in turn, few are alive at a time (decisions/0005).
constexpr std::size_t most_at_once = 128;
constexpr std::size_t enough = 256;
constexpr std::size_t some = 4;
// With that many in the ring, which is what a searcher finds worthwhile, children are kept back.
constexpr std::uint32_t well_filled = 8;

// Another processor may have written it last.
[[gnu::always_inline]] inline void fetch(const runnable& ahead) noexcept {
    for (std::size_t i = 0; i < fetched_lines; ++i)
        prefetch_for_write(reinterpret_cast<const std::byte*>(&ahead) + 64 * i);
}

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
    while ((r = run_one(*r)) != nullptr) {
        if (!may_run_next()) {  // a chain of transfers without end: others come first now
            receive(r, std::memory_order_seq_cst);
            return core.notify();
        }
    }
}

void pool_worker::begin_ticks() noexcept {
    dispatched.add(counted_ticks());
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
    if (keeps_back.load(std::memory_order_relaxed)) keep_nothing_back();
    if (reactor != nullptr) reactor->poll();
    collect();
    runnable* r = take_overflow();
    if (r == nullptr) r = take();
    if (r != nullptr) static_cast<void>(count_transfer());
    if (shared != nullptr && dispatched.get() - mixed_at_ >= dispatches_between_mixing) mix();
    return r;
}

// Fibers that only yield never leave nobody with nothing to do, so nothing would be taken from a
// worker that has more of them than another, or less of its processor. A few of the eldest go where
// any worker finds them: of many more than of few, so that in the end all have as many. Fibers that
// are woken stay: they belong to whoever wakes them.
void pool_worker::mix() noexcept {
    mixed_at_ = dispatched.get();
    if (std::exchange(yields, 0) < least_to_mix || ring.size() < least_to_mix) return;
    const std::uint32_t count = ring.pop_some(loot_, ring.size() / one_mixed_of);
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
    // The clock was asked a moment ago, unless a reactor took its time.
    const time_point now = reactor == nullptr ? looked : core.clock.now();
    own_timers.expire(now, [this, &others_may](runnable* due) {
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
    if (keeps_back.load(std::memory_order_relaxed)) [[unlikely]]
        keep_nothing_back();
    if (runnable* const r = slot.take()) return r;
    if (!ready.empty() && (turn_of_bound_ = !turn_of_bound_)) return ready.pop();
    runnable* const r = ring.pop();
    if (r == nullptr) return ready.pop();
    if (runnable* const ahead = ring.peek(fetched_ahead)) fetch(*ahead);
    return r;
}

// seq_cst: whoever sleeps looks at the slot after it said so.
// Now and then one goes to the ring, so that others there, or in `ready`, have their turn. If there
// are none it stays: from the ring it would be stolen, away from the one that it works with.
bool pool_worker::put_in_slot(runnable* r) noexcept {
    if (slot_left == 0 && has_slot_had_its_time(ring.size() >= enough) &&
        (ring.size() != 0 || !ready.empty())) [[unlikely]] {
        put_in_ring(r, std::memory_order_seq_cst);
        return true;
    }
    --slot_left;
    runnable* const displaced = slot.put(r);
    if (displaced == nullptr) return false;
    put_in_ring(displaced, std::memory_order_seq_cst);
    return true;
}

void pool_worker::put_in_full_ring(runnable* r, std::memory_order order) noexcept {
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
    if (young == nullptr) return ready.pop();
    if ((ticks.load(std::memory_order_relaxed) & 7) == 0)  // the elders have their share
        if (runnable* const r = ready.pop()) return r;
    runnable* const r = young;
    young = r->next_node;
    ready.set_others(young != nullptr);
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
    ready.set_others(true);
}

void worker::start_child_shared(runnable* r) noexcept { shared->start_child_of_group(r); }

// What is kept back is younger than what is in the ring.
void pool_worker::start_child_of_group(runnable* r) noexcept {
    if (ring.size() < well_filled) {
        if (!kept_back.empty()) refill_ring();
        if (kept_back.empty()) return start_shared(r);
    }
    if (r->bound_to != 0 || !core.may_keep_back) [[unlikely]]
        return start_shared(r);
    if (!keeps_back.load(std::memory_order_relaxed)) [[unlikely]]
        keeps_back.store(true, std::memory_order_seq_cst);
    while (!kept_back.push(r)) [[unlikely]] show_reserve();
    process_barrier::light();
    if (core.parked.would_wake()) [[unlikely]]
        show_reserve();
}

// Thieves were here, or the owner has come back to what others may take.
void pool_worker::refill_ring() noexcept {
    const std::uint32_t there = ring.size();
    if (there >= well_filled) return;
    const std::uint32_t count = kept_back.take_eldest(loot_, well_filled - there);
    for (std::uint32_t i = 0; i < count; ++i)
        put_in_ring(loot_[i],
                    i + 1 == count ? std::memory_order_seq_cst : std::memory_order_release);
    core.notify();
}

void pool_worker::show_reserve() noexcept {
    const std::uint32_t count = kept_back.take_eldest(loot_, kept_back.capacity);
    if (ring.size() + count > ring.capacity) {
        core.overflow.push(std::span(loot_).first(count));
        overflowed.add(count);
    } else {
        for (std::uint32_t i = 0; i < count; ++i)
            put_in_ring(loot_[i],
                        i + 1 == count ? std::memory_order_seq_cst : std::memory_order_release);
    }
    core.notify();
}

// Others need not look any more: what is kept back later is announced again.
void pool_worker::keep_nothing_back() noexcept {
    if (!kept_back.empty()) show_reserve();
    keeps_back.store(false, std::memory_order_relaxed);
}

runnable* worker::take_back_shared(wanted_function wanted, const void* by) noexcept {
    return shared->take_back_from_queues(wanted, by);
}

// It must be taken out before it can be looked at: whoever takes it may end it. One that is not
// wanted goes back, and others are told, for while it was out nobody saw it.
runnable* pool_worker::take_back_from_queues(wanted_function wanted, const void* by) noexcept {
    if (!kept_back.empty()) {
        if (ring.size() < well_filled) [[unlikely]]
            refill_ring();
        if (runnable* const r = kept_back.take_back(
                [wanted, by](const runnable& youngest) { return wanted(youngest, by); }))
            return r;
    } else if (keeps_back.load(std::memory_order_relaxed)) {
        keep_nothing_back();
    }
    if (runnable* const r = slot.take()) {
        if (wanted(*r, by)) return r;
        slot.put_back(r);
        core.notify();
    }
    runnable* const r = ring.take_back();
    if (r == nullptr || wanted(*r, by)) return r;
    put_in_ring(r, std::memory_order_seq_cst);
    core.notify();
    return nullptr;
}

void pool_worker::start_shared(runnable* r) noexcept {
    if (r->bound_to != 0 || core.options.force_migrate) [[unlikely]]
        return post(r);
    if (slot.is_empty())
        static_cast<void>(put_in_slot(r));
    else
        put_in_ring(r, std::memory_order_seq_cst);
    core.notify();
}

void worker::wake_shared(runnable* r) noexcept {
    pool_worker& me = *shared;
    if (me.core.options.force_migrate) return me.post(r);
    if (r->bound_to != 0) return r->bound_to == number ? wake_here(r) : me.post(r);
    static_cast<void>(me.put_in_slot(r));
    me.core.notify();
}

// What runs next was taken before this one came back, and may run for long: whoever looked between
// the two saw neither, and sleeps. So others are told, as of a post.
void worker::requeue_shared(runnable* r) noexcept {
    pool_worker& me = *shared;
    ++me.yields;
    if (r->bound_to != 0 || me.core.options.force_migrate) return me.post(r);
    // With many elsewhere it goes behind those, not only behind the ones of this worker.
    if (me.ring.size() > 3 * enough && !me.core.overflow.empty()) [[unlikely]]
        me.core.overflow.push(r);
    else
        me.put_in_ring(r, std::memory_order_seq_cst);
    me.core.notify();
}

}  // namespace weft::inline v0::detail
