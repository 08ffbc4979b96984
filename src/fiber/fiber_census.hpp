// fiber_census.hpp - finds the fibers that nobody has listed: those that have not waited yet.
//
// A fiber that never waits must not pay for being found. So nobody is told when one is started:
// whoever wants to know walks the memory that control blocks are cut from (block_depot.hpp), which
// is never freed, and looks at each. Blocks of 256 bytes and more are control blocks or nothing,
// and the word `reason` tells which. A block may end and begin anew while it is looked at:
//
//   start    writes the block; reason = nullptr (release)
//   end      reason = &no_fiber; fence (release); the block is freed, and written anew
//   census   reason (acquire) is not &no_fiber; reads the block; fence (acquire); reads reason and
//            block again: the same? then that is what it was between the two readings
//
// If the census read something of a later life, then the fences make it see &no_fiber, or that
// life, when it reads again. The fields are read as plain memory that others may be writing: none
// is followed that would lead out of that memory, but to what is static. A block that is elsewhere
// (of a large callable), or whose name is, is listed from its birth instead (is_far()).
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <source_location>
#include <vector>

#include "fiber/fiber_block.hpp"

namespace weft::inline v0::detail {

struct fiber_extras;

/// What is known of a fiber, as it was some moment ago.
struct fiber_sight {
    const executor* home = nullptr;
    std::array<char, 16> name{};  // of one that is not listed
    std::source_location site{};
    const wait_reason* reason = nullptr;
    bool started = false;
    bool listed = false;
};

/// Where a fiber was seen.
struct fiber_place {
    const executor* home;
    const fiber_block* block;
};

/// Those of that executor, or of all (nullptr), listed or not. From: any thread.
[[nodiscard]] std::vector<fiber_place> find_fibers(const executor* home);

/// Looks at it. False: it is not a fiber any more. Whether it is listed can be relied on with the
/// lock of its list held. From: any thread, for what find_fibers() found.
[[nodiscard]] bool look_at(const fiber_block& block, fiber_sight& seen) noexcept;
/// Who runs on that worker; nullptr: nobody. From: any thread.
[[nodiscard]] const fiber_block* running_on(const fiber_worker& worker) noexcept;

/// Whether the name lies in the extras themselves.
[[nodiscard]] bool holds_its_name(const fiber_extras& extras) noexcept;

/// After its end: see above.
inline void end_in_census(fiber_block& ended) noexcept {
    ended.reason.store(&no_fiber, std::memory_order_relaxed);
#if WEFT_TSAN
    std::atomic_signal_fence(std::memory_order_release);  // TSan knows no other; nor does it look
#else
    std::atomic_thread_fence(std::memory_order_release);
#endif
}

/// Whether blocks of that size are control blocks.
[[nodiscard]] constexpr bool may_hold_fiber(std::size_t size) noexcept {
    return size >= sizeof(own_fiber);
}
/// For memory that was not used yet.
void mark_no_fiber(void* block) noexcept;

}  // namespace weft::inline v0::detail
