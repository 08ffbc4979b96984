// spinning.cpp - see spinning.hpp.
//
// SPDX-License-Identifier: Apache-2.0
#include "sync/spinning.hpp"

#include <sched.h>

#include <thread>

#include <weft/sync/detail/lock_spin.hpp>

#include "fiber/fiber_worker.hpp"

namespace weft::inline v0::detail {

void give_way() noexcept { ::sched_yield(); }

void lock_spin::once() noexcept { spin_once(rounds); }

bool spinning_may_help() noexcept {
    static const bool several = std::thread::hardware_concurrency() > 1;
    const fiber_worker* const worker = fiber_worker::here();
    return several && (worker == nullptr || worker->current == nullptr || !worker->exec.local);
}

}  // namespace weft::inline v0::detail
