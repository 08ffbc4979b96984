// parking.hpp - which workers of a pool sleep and which look for work, and who wakes whom.
//
// One word counts both, {parked, searching}; a list says who is parked, the last one on top.
// Whoever adds work wakes a worker, unless one is searching already: that one will find it, or pass
// it on.
//
//   adds work                                  goes to sleep
//   publishes it            (seq_cst)          parked + 1, searching - 1   (RMW, seq_cst)
//   reads the word          (seq_cst)          looks at all queues again   (seq_cst)
//   none searching, one parked? wake it        something there? back to searching; else sleeps
//
// Both write, then read what the other writes, all seq_cst: at least one of them sees the other.
// And because a post that saw a searcher went away without waking anybody:
//
//   finds work
//   searching - 1  (RMW, seq_cst); was it the last?  Then look at all queues again, and if there is
//   more, wake another.
//
// A worker that is woken counts as searching before it runs, so a burst of posts makes one wake.
//
// What was out of sight for a moment is added anew, and told of: the rest of a batch that was taken
// from the overflow list; and one that yields, for what it leaves for is taken before it is put
// back, so that whoever looked between the two saw neither.
//
// Knows no queue and no thread: whoever calls does the looking, the sleeping and the waking.
// Written over its atomic type and its lock, so that tests/model can walk all interleavings.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include <weft/base/test_point.hpp>
#include <weft/base/version.hpp>

#include "base/spin_lock.hpp"

namespace weft::inline v0::detail {

template <template <class> class Atomic, class Lock>
class basic_parking {
public:
    static constexpr unsigned nobody = ~0U;

    explicit basic_parking(unsigned workers) : workers_(workers) { list_.reserve(workers); }

    /// After work was published: the worker to be woken, or nobody. It is searching now.
    [[nodiscard]] unsigned to_wake() noexcept {
        const std::uint64_t seen = word_.load(std::memory_order_seq_cst);
        if (searching(seen) != 0 || parked(seen) == 0) [[likely]]
            return nobody;
        const std::lock_guard guard(lock_);
        if (searching(word_.load(std::memory_order_seq_cst)) != 0 || list_.empty()) return nobody;
        const unsigned woken = list_.back();
        list_.pop_back();
        word_.fetch_add(one_searching - one_parked, std::memory_order_seq_cst);
        return woken;
    }

    /// Whether it would be one. For whoever has a light barrier before this: a worker that parks,
    /// or is the last to search, has the heavy one before it looks. seq_cst, for a worker that need
    /// not look passes none.
    [[nodiscard]] bool would_wake() const noexcept {
        const std::uint64_t seen = word_.load(std::memory_order_seq_cst);
        return searching(seen) == 0 && parked(seen) != 0;
    }

    /// One that has nothing to do wants to look around. False: enough others do.
    [[nodiscard]] bool start_searching() noexcept {
        std::uint64_t seen = word_.load(std::memory_order_relaxed);
        do {
            const std::uint32_t busy = workers_ - parked(seen);
            const std::uint32_t most = busy / 2 > 1 ? busy / 2 : 1;
            if (searching(seen) >= most) return false;
        } while (!word_.compare_exchange_weak(seen, seen + one_searching, std::memory_order_seq_cst,
                                              std::memory_order_relaxed));
        return true;
    }

    /// A searching one has found work. True: it was the last, and has to look whether there is
    /// more.
    [[nodiscard]] bool stop_searching() noexcept {
        const std::uint64_t before = word_.fetch_sub(one_searching, std::memory_order_seq_cst);
        return searching(before) == 1 && parked(before) != 0;
    }

    /// Goes on the list. Look at everything after this, before sleeping.
    void park(unsigned worker, bool was_searching) noexcept {
        const std::lock_guard guard(lock_);
        list_.push_back(worker);
        word_.fetch_add(was_searching ? one_parked - one_searching : one_parked,
                        std::memory_order_seq_cst);
        WEFT_TEST_POINT("parking: parked");
    }

    /// It runs again, for whatever reason, and is searching. False: somebody has taken it off the
    /// list already, and wakes it, or will.
    bool unpark(unsigned worker) noexcept {
        const std::lock_guard guard(lock_);
        for (auto at = list_.rbegin(); at != list_.rend(); ++at) {
            if (*at != worker) continue;
            list_.erase(std::next(at).base());
            word_.fetch_add(one_searching - one_parked, std::memory_order_seq_cst);
            return true;
        }
        return false;
    }

    [[nodiscard]] bool all_parked() const noexcept {
        return parked(word_.load(std::memory_order_seq_cst)) == workers_;
    }

protected:  // tests/model breaks it in derived classes
    static constexpr std::uint64_t one_searching = 1;
    static constexpr std::uint64_t one_parked = std::uint64_t{1} << 32;
    static std::uint32_t searching(std::uint64_t word) noexcept {
        return static_cast<std::uint32_t>(word);
    }
    static std::uint32_t parked(std::uint64_t word) noexcept {
        return static_cast<std::uint32_t>(word >> 32);
    }

    const unsigned workers_;
    Atomic<std::uint64_t> word_{0};
    Lock lock_;
    std::vector<unsigned> list_;  // guarded by the lock; never grows beyond what was reserved
};

using parking = basic_parking<std::atomic, spin_lock>;

}  // namespace weft::inline v0::detail
