// executor.cpp - what an executor does unless it says otherwise.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/exec/executor.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>

#include <weft/exec/worker.hpp>

namespace weft::inline v0 {

executor::executor() noexcept
    : random_(
          reinterpret_cast<std::uintptr_t>(this) ^
          static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count())) {
}

executor::~executor() { delete residents_.load(std::memory_order_acquire); }

random_source& executor::random() noexcept { return random_; }

void executor::unhandled(std::exception_ptr error, runnable&) noexcept {
    std::rethrow_exception(std::move(error));  // noexcept: terminate, which names the exception
}

bool executor::attach(std::unique_ptr<driver>) { return false; }

// After as many dispatches as fit into time_between, by what the last took; but what has become
// fast is trusted slowly. Those that begin after it had nothing to do are not known: so the clock
// is asked after the first of them (renew_ticks()).
//
// It is asked at each look with timers, which ask it anyway, or a reactor. Else only posts from
// outside may have come, and of fast dispatches it is asked at every eighth look: at each that
// would be a tenth of the time of the fastest. And not where there is nothing to do: workers that
// hand something to each other look around at each time.
[[gnu::noinline]] void detail::worker::adapt_ticks() noexcept {
    constexpr std::uint32_t at_first_with_reactor = 16;
    using std::chrono::nanoseconds;
    bool is_idle = ticks.load(std::memory_order_relaxed) != 0;
    if (is_idle && !is_timed()) {
        has_rested = true;
        unasked = 0;
        return set_ticks(ticks_between, ticks_at_first);
    }
    const time_point now = home.clock().now();
    const std::uint32_t before = span.load(std::memory_order_relaxed);
    const bool is_known = !std::exchange(has_rested, false);
    const nanoseconds took = is_known ? (now - looked) / (looks - asked_at) : nanoseconds::zero();
    asked_at = looks;
    looked = now;
    if (unasked != 0 && !is_idle && reactor == nullptr && took <= time_between) {  // as ever
        unasked = looks_unasked - 1;
        return ticks.store(before, std::memory_order_relaxed);
    }
    // Perhaps it had nothing to do when ticks were to be renewed.
    is_idle |= later_ticks.load(std::memory_order_relaxed) != 0 && took < time_between;
    std::uint32_t fit = before;
    if (is_idle && reactor != nullptr)
        fit = std::min(before, at_first_with_reactor);
    else if (!is_idle && took > time_between)
        fit = static_cast<std::uint32_t>(counted_ticks() * nanoseconds(time_between) / took);
    else if (!is_idle && is_known)
        fit = std::min(2 * before, ticks_between);
    fit = std::max(fit, 1U);
    const bool is_fast = fit == ticks_between && !is_idle && is_known && reactor == nullptr;
    unasked = is_fast ? looks_unasked - 1 : 0;
    if (reactor != nullptr)
        set_ticks(fit, std::min(fit, ticks_unasked));
    else
        set_ticks(fit, is_idle || !is_known ? std::min(fit, ticks_at_first) : fit);
}

void detail::worker::set_ticks(std::uint32_t all, std::uint32_t first) noexcept {
    span.store(all, std::memory_order_relaxed);
    later_ticks.store(all - first, std::memory_order_relaxed);
    ticks.store(first, std::memory_order_relaxed);
}

// For one more, which is counted. False: they, or time_between, are over. Who follows those that
// were fast may be slow: without this, so many of the slow ones as there was time for fast ones.
[[gnu::noinline]] bool detail::worker::renew_ticks() noexcept {
    const std::uint32_t later = later_ticks.load(std::memory_order_relaxed);
    if (later == 0) return false;
    const time_point now = home.clock().now();
    if (has_rested) {  // its time is counted from here on
        has_rested = false;
        looked = now;
        asked_at = looks;
    } else if (now - looked >= time_between) {
        return false;
    }
    const std::uint32_t some =
        std::min(later, reactor != nullptr ? ticks_unasked : counted_ticks());
    later_ticks.store(later - some, std::memory_order_relaxed);
    ticks.store(some - 1, std::memory_order_relaxed);
    return true;
}

// Those who wake each other in turn are in the cache. With many ready, whoever comes in between is
// not, nor are they afterwards; and for one of many it makes no difference whether 64 come first or
// some hundred. So there a chain of short turns goes on for a while. By the executor's clock: where
// a test moves that, the order does not depend on how fast the machine is.
[[gnu::noinline]] bool detail::worker::has_slot_had_its_time(bool many_are_ready) noexcept {
    slot_left = slot_limit;
    if (!many_are_ready) return true;
    const time_point now = home.clock().now();
    if (++slot_limits < most_slot_limits && now - slot_since < slot_time) return false;
    slot_limits = 0;
    slot_since = now;
    return true;
}

[[gnu::noinline]] void detail::worker::displace() noexcept {
    while (front != nullptr) {
        runnable* const displaced = front;
        front = displaced->next_node;
        ready.push(displaced);
    }
}

[[gnu::noinline]] runnable* detail::worker::ask() noexcept {
    if (!renew_ticks()) return home.next();
    runnable* const r = take();
    if (r == nullptr) count_missed();
    return r;
}

}  // namespace weft::inline v0
