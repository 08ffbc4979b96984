// runnable.hpp - one unit of work.
//
// A fiber is one kind of runnable, a posted callable another. Read executor.hpp next.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include <weft/base/assert.hpp>
#include <weft/base/intrusive_node.hpp>

namespace weft::inline v0 {

class runnable : public intrusive_node {
public:
    /// Does its work and says what this thread runs next: itself, another, or nullptr for whatever
    /// is ready. Executors loop over what is returned; they never recurse.
    virtual runnable* run() noexcept = 0;

    /// For whoever recognises its own runnables without a virtual call. 0: nobody's.
    std::uint8_t kind = 0;
    /// In builds with WEFT_CHECKS: it was posted, and has not run since.
    std::atomic<bool> is_posted = false;
    /// Where, from its own address, it holds a pointer to memory that it will touch first when it
    /// runs: long queues fetch that ahead. 0: nowhere.
    std::uint16_t touches_offset = 0;
    /// The number, from 1, of the one worker of a pool that may run it; 0: any may.
    std::uint16_t bound_to = 0;

protected:
    runnable() noexcept = default;
    ~runnable() = default;
};

namespace detail {

/// Of a loop or pool, in builds with checks: a runnable is in one queue at most, so whoever posts
/// one that is in a queue already resumes it for the second time.
[[gnu::always_inline]] inline void note_posted([[maybe_unused]] runnable& r) noexcept {
#if defined(WEFT_CHECKS) && WEFT_CHECKS
    WEFT_ASSERT(!r.is_posted.exchange(true, std::memory_order_relaxed),
                "executor: a runnable is posted that is queued already, or resumed twice");
#endif
}
/// It is out of the queue, and runs.
[[gnu::always_inline]] inline void note_runs([[maybe_unused]] runnable& r) noexcept {
#if defined(WEFT_CHECKS) && WEFT_CHECKS
    r.is_posted.store(false, std::memory_order_relaxed);
#endif
}

[[nodiscard]] inline runnable* run_one(runnable& r) noexcept {
    note_runs(r);
    return r.run();
}

}  // namespace detail

}  // namespace weft::inline v0
