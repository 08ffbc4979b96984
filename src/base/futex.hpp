// futex.hpp - sleeping until a word changes.
//
// The raw system call: std::atomic::wait of libstdc++ goes through a shared table and spins on its
// own.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include <weft/base/version.hpp>

namespace weft::inline v0::detail {

/// Sleeps while the word has this value. May return early: look again.
void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t value) noexcept;

/// The same for no longer than this; nanoseconds::max(): without limit.
void futex_wait_for(std::atomic<std::uint32_t>& word, std::uint32_t value,
                    std::chrono::nanoseconds limit) noexcept;

/// Wakes one sleeper. The word may be gone by now: its address is only a key.
void futex_wake_one(std::atomic<std::uint32_t>* word) noexcept;

}  // namespace weft::inline v0::detail
