// futex.cpp - see futex.hpp.
//
// SPDX-License-Identifier: Apache-2.0
#include "base/futex.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ctime>

namespace weft::inline v0::detail {

void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t value) noexcept {
    ::syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);
}

void futex_wait_for(std::atomic<std::uint32_t>& word, std::uint32_t value,
                    std::chrono::nanoseconds limit) noexcept {
    using namespace std::chrono;
    if (limit == nanoseconds::max()) return futex_wait(word, value);
    if (limit <= nanoseconds::zero()) return;
    const auto whole = duration_cast<seconds>(limit);
    const timespec time{.tv_sec = whole.count(), .tv_nsec = (limit - whole).count()};
    ::syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, &time, nullptr, 0);
}

void futex_wake_one(std::atomic<std::uint32_t>* word) noexcept {
    ::syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

}  // namespace weft::inline v0::detail
