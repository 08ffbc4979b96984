// biased_lock.cpp - the barrier that revokes a bias: see biased_lock.hpp.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/sync/detail/biased_lock.hpp>

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <weft/base/assert.hpp>

#include "sync/spinning.hpp"

namespace weft::inline v0::detail {

namespace {

bool membarrier(int command) noexcept { return ::syscall(SYS_membarrier, command, 0, 0) == 0; }

// When the program starts: later, with several threads, the kernel takes its time to register it.
const bool registered = membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);

}  // namespace

bool process_barrier::available() noexcept { return registered; }

void process_barrier::heavy() noexcept {
    WEFT_ASSERT(membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED),
                "sync: membarrier(2) fails, which was there when the program started");
}

void lock_spin::once() noexcept { spin_once(rounds); }

}  // namespace weft::inline v0::detail
