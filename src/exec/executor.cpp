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
[[gnu::noinline]] void detail::worker::adapt_span() noexcept {
    constexpr std::uint32_t ticks_at_first = 16;
    const time_point now = home.clock().now();
    const std::uint32_t before = span.load(std::memory_order_relaxed);
    if (ticks.load(std::memory_order_relaxed) != 0) {  // it had nothing to do
        span.store(std::min(before, ticks_at_first), std::memory_order_relaxed);
    } else {
        const std::chrono::nanoseconds took = now - looked;
        std::uint32_t fit = std::min(2 * before, ticks_between);
        if (took > time_between)
            fit = static_cast<std::uint32_t>(std::max<std::int64_t>(
                1, before * (time_between / std::chrono::nanoseconds(1)) / took.count()));
        span.store(fit, std::memory_order_relaxed);
    }
    looked = now;
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

[[gnu::noinline]] runnable* detail::worker::ask() noexcept { return home.next(); }

}  // namespace weft::inline v0
