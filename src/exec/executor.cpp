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
// fast is trusted slowly, and so are those that begin after it had nothing to do.
[[gnu::noinline]] void detail::worker::adapt_ticks() noexcept {
    constexpr std::uint32_t ticks_at_first = 16;
    const time_point now = home.clock().now();
    const std::uint32_t before = span.load(std::memory_order_relaxed);
    std::uint32_t fit = std::min(before, ticks_at_first);
    const std::chrono::nanoseconds took = now - looked;
    // Else it had nothing to do, perhaps when ticks were to be renewed.
    const bool are_over = later_ticks.load(std::memory_order_relaxed) == 0 || took >= time_between;
    if (ticks.load(std::memory_order_relaxed) == 0 && are_over) {
        fit = std::min(2 * before, ticks_between);
        if (took > time_between)
            fit = static_cast<std::uint32_t>(std::max<std::int64_t>(
                1, counted_ticks() * (time_between / std::chrono::nanoseconds(1)) / took.count()));
    }
    const std::uint32_t first = std::min(fit, ticks_unasked);
    span.store(fit, std::memory_order_relaxed);
    later_ticks.store(fit - first, std::memory_order_relaxed);
    ticks.store(first, std::memory_order_relaxed);
    looked = now;
}

// For one more, which is counted. False: they, or time_between, are over. Who follows those that
// were fast may be slow: without this, so many of the slow ones as there was time for fast ones.
[[gnu::noinline]] bool detail::worker::renew_ticks() noexcept {
    const std::uint32_t later = later_ticks.load(std::memory_order_relaxed);
    if (later == 0 || home.clock().now() - looked >= time_between) return false;
    const std::uint32_t some = std::min(later, ticks_unasked);
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
