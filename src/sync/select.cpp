// select.cpp - one of several cases.
//
// First every case that may be ready is tried, from a random one on, each as an ordinary try of its
// channel. If none can be done, select waits in all channels at once:
//
//   select                                            whoever comes to one of the channels
//   publish: lock all its channels, by address        lock that channel
//            is one ready? unlock all, try again      unlink the first waiter
//            link into each                           claim it: the first among all its cases,
//                                                     and then the waiter's word, decide
//            unlock all, in the same order            unlock; move; write the verdict; wake()
//   woken:   lock each, unlink what is still there
//            the one with a verdict was taken
//
// All locks are held from the look to the last link, so no item can come in between and find it
// half linked; and whoever comes is itself linked nowhere, so it needs to win one claim only. Two
// selects that face each other take the locks that they share one after the other: the first links
// itself, the second finds it, claims it, and that is the one pair. Rejected: links one by one and
// claims of both sides, where a select that has claimed itself must be able to take that back.
//
// The order of addresses is common to all, so nobody waits in a circle for locks.
//
// Unlocking publishes: after the first unlock another thread may claim and wake this select. It
// cannot end, though, before it has taken each lock once more, and so not before the last unlock
// here, after which nothing of it is touched.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/fiber/cancel.hpp>
#include <weft/sync/select.hpp>

#include <algorithm>
#include <chrono>
#include <functional>

#include <weft/base/assert.hpp>
#include <weft/base/random_source.hpp>
#include <weft/base/test_point.hpp>
#include <weft/fiber/detail/swapped.hpp>
#include <weft/fiber/suspend.hpp>

#include "sync/channel_lock.hpp"

namespace weft::inline v0::detail {

namespace {

constexpr wait_reason selects{"selects"};
constexpr std::size_t nowhere = static_cast<std::size_t>(-1);

// A number below `limit`; from the executor, or in a plain thread from the clock.
std::size_t random_below(std::size_t limit) noexcept {
    if (this_fiber::get_id()) return this_fiber::executor().random().next() % limit;
    const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
    seeded_random here(static_cast<std::uint64_t>(now) ^ reinterpret_cast<std::uintptr_t>(&now));
    return here.next() % limit;
}

// --- the waiters of one select, sorted by channel

// The first of each channel.
bool is_first(channel_waiter* const* sorted, std::size_t i) noexcept {
    return i == 0 || sorted[i]->where != sorted[i - 1]->where;
}
// The last of each channel.
bool is_last(channel_waiter* const* sorted, std::size_t count, std::size_t i) noexcept {
    return i + 1 == count || sorted[i]->where != sorted[i + 1]->where;
}

void lock_all(channel_waiter* const* sorted, std::size_t count) noexcept {
    for (std::size_t i = 0; i < count; ++i)
        if (is_first(sorted, i)) {
            sorted[i]->where->lock();
            WEFT_TEST_POINT("select: a channel is locked");
        }
}

// Looks ahead before it unlocks: nothing of the select is read after the last one.
void unlock_all(channel_waiter* const* sorted, std::size_t count) noexcept {
    for (std::size_t i = 0; i < count; ++i)
        if (is_last(sorted, count, i)) {
            sorted[i]->where->unlock();
            WEFT_TEST_POINT("select: a channel is unlocked");
        }
}

bool publish(channel_waiter* const* sorted, std::size_t count, waiter& who) noexcept {
    lock_all(sorted, count);
    const bool ready = std::any_of(sorted, sorted + count, [](const channel_waiter* one) {
        return one->where->is_ready(*one);
    });
    if (!ready)
        for (std::size_t i = 0; i < count; ++i) sorted[i]->where->enqueue(*sorted[i], who);
    unlock_all(sorted, count);
    return !ready;
}

void withdraw(channel_waiter* const* sorted, std::size_t count) noexcept {
    for (std::size_t i = 0; i < count; ++i) {
        if (is_first(sorted, i)) sorted[i]->where->lock();
        sorted[i]->where->dequeue(*sorted[i]);
        if (is_last(sorted, count, i)) sorted[i]->where->unlock();
    }
}

wait_outcome wait_among(channel_waiter* const* sorted, std::size_t count, time_point deadline) {
    const wait_outcome ended = wait(
        selects, deadline,
        [sorted, count](waiter& who) noexcept { return publish(sorted, count, who); },
        [sorted, count](waiter&) noexcept { withdraw(sorted, count); });
    if (ended == wait_outcome::event) withdraw(sorted, count);
    return ended;
}

wait_outcome wait_among(std::span<channel_waiter*> sorted, time_point deadline) {
    std::ranges::sort(sorted, std::less<>(), &channel_waiter::where);
    std::atomic<bool> taken = false;
    for (channel_waiter* one : sorted) {
        one->what = verdict::none;
        one->taken = &taken;
        refuse_on_shared_stack(one->where, "select: waits on a channel on a swapped fiber's stack");
    }
    if (!running_is_swapped()) [[likely]]
        return wait_among(sorted.data(), sorted.size(), deadline);
    heap_parking parked(sorted);
    const wait_outcome ended = wait_among(parked.waiters(), sorted.size(), deadline);
    parked.bring_back();
    return ended;
}

}  // namespace

// --- the cases of one select

struct select_access {
    using kind = select_case::kind;

    std::span<select_case* const> cases;
    std::size_t otherwise = nowhere;
    std::size_t moment = nowhere;
    time_point deadline = no_deadline;

    void begin() {
        for (std::size_t i = 0; i < cases.size(); ++i) {
            time_point until = no_deadline;
            cases[i]->begin(until);
            cases[i]->waiter_.first = false;
            if (cases[i]->what_ == kind::otherwise) otherwise = i;
            if (cases[i]->what_ == kind::moment && until < deadline) {
                moment = i;
                deadline = until;
            }
        }
    }

    [[nodiscard]] bool may_be_ready(std::size_t i) const noexcept {
        const channel_waiter& one = cases[i]->waiter_;
        return one.where != nullptr && one.where->may_be_ready(one.sends);
    }

    // Which of those that may be ready is the first to be tried: each as likely as the others.
    [[nodiscard]] std::size_t first_to_try() const noexcept {
        std::size_t ready = 0;
        std::size_t first = nowhere;
        for (std::size_t i = 0; i < cases.size(); ++i)
            if (may_be_ready(i)) {
                if (ready++ == 0) first = i;
            }
        if (ready < 2) return first;
        for (std::size_t skip = random_below(ready), i = first;; ++i)
            if (i == cases.size() || (may_be_ready(i) && skip-- == 0)) return i % cases.size();
    }

    // Does what can be done at once, and says which; nowhere: nothing can.
    [[nodiscard]] std::size_t attempt() const {
        const std::size_t first = first_to_try();
        if (first == nowhere) return nowhere;
        for (std::size_t i = first; i < first + cases.size(); ++i) {
            const std::size_t index = i % cases.size();
            if (may_be_ready(index) && cases[index]->attempt()) return index;
        }
        return nowhere;
    }

    // Waits, and says which was done meanwhile; nowhere: try again.
    [[nodiscard]] std::expected<std::size_t, std::error_code> wait_for_one(
        std::span<channel_waiter*> scratch) const {
        std::size_t count = 0;
        for (select_case* const one : cases)
            if (one->what_ == kind::channel) scratch[count++] = &one->waiter_;
        const wait_outcome ended = wait_among(scratch.first(count), deadline);
        for (std::size_t i = 0; i < cases.size(); ++i) {
            if (cases[i]->what_ != kind::channel || cases[i]->waiter_.what == verdict::none)
                continue;
            return cases[i]->conclude() ? i : nowhere;
        }
        if (ended == wait_outcome::event) return nowhere;
        if (ended == wait_outcome::timed_out) return moment;
        return std::unexpected(error_code_of(this_fiber::stop_reason()));
    }

    [[nodiscard]] std::expected<std::size_t, std::error_code> take_one(
        std::span<channel_waiter*> scratch) {
        begin();
        for (;;) {
            const std::size_t done = attempt();
            if (done != nowhere) return done;
            if (otherwise != nowhere) return otherwise;
            const auto waited = wait_for_one(scratch);
            if (!waited || *waited != nowhere) return waited;
        }
    }

    void call(std::size_t index) const { cases[index]->call(); }
};

std::expected<std::size_t, std::error_code> select_among(std::span<select_case* const> cases,
                                                         std::span<channel_waiter*> scratch) {
    select_access all{cases};
    const auto taken = all.take_one(scratch);
    if (taken) all.call(*taken);
    return taken;
}

}  // namespace weft::inline v0::detail
