// process_barrier.cpp - see process_barrier.hpp.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/base/process_barrier.hpp>

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <weft/base/assert.hpp>

namespace weft::inline v0::detail {

namespace {

bool membarrier(int command) noexcept { return ::syscall(SYS_membarrier, command, 0, 0) == 0; }

// When the program starts: later, with several threads, the kernel takes its time to register it.
const bool registered = membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);

}  // namespace

bool process_barrier::available() noexcept { return registered; }

void process_barrier::heavy() noexcept {
    WEFT_ASSERT(membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED),
                "membarrier(2) fails, which was there when the program started");
}

}  // namespace weft::inline v0::detail
