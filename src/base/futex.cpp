// futex.cpp - see futex.hpp.
//
// SPDX-License-Identifier: Apache-2.0
#include "base/futex.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace weft::inline v0::detail {

void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t value) noexcept {
    ::syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);
}

void futex_wake_one(std::atomic<std::uint32_t>* word) noexcept {
    ::syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

}  // namespace weft::inline v0::detail
