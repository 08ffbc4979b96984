// executor.cpp - what an executor does unless it says otherwise.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/exec/executor.hpp>

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

[[gnu::noinline]] void detail::worker::displace() noexcept {
    while (front != nullptr) {
        runnable* const displaced = front;
        front = displaced->next_node;
        ready.push(displaced);
    }
}

[[gnu::noinline]] runnable* detail::worker::ask() noexcept { return home.next(); }

}  // namespace weft::inline v0
