// timer_thread.hpp - the deadlines of those whose executor keeps no time.
//
// A user's executor has post and defer, and no moment at which it would look at a clock. What is
// waited for there with a deadline is armed here: in one queue for the process, and one thread,
// which the first deadline starts, sleeps until the earliest.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <weft/exec/timer_queue.hpp>

namespace weft::inline v0::detail {

/// By the steady clock; what it gives is posted there. timer_queue::disarm() takes it back.
/// From: any thread. Aborts: if there can be no such thread.
void arm_in_timer_thread(timer_node& node, time_point deadline, executor& post_to) noexcept;

}  // namespace weft::inline v0::detail
