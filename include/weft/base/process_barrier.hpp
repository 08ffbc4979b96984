// process_barrier.hpp - store-then-load in order, where one side does it often and the other hardly
// ever.
//
// The frequent one only keeps its compiler from reordering; the rare one makes every thread of the
// process pass a full fence, by a system call of some microseconds.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

#include <weft/base/version.hpp>

namespace weft::inline v0::detail {

struct process_barrier {
    /// Whether heavy() works.
    [[nodiscard]] static bool available() noexcept;
    static void heavy() noexcept;
    static void light() noexcept { std::atomic_signal_fence(std::memory_order_seq_cst); }
};

}  // namespace weft::inline v0::detail
