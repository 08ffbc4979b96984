// inbox.hpp - runnables from other threads, and whether their reader sleeps.
//
// One word: nullptr (empty), a list with the newest first, or `asleep`.
//
//   poster                                       reader
//   CAS the word to its runnable  (release)      CAS nullptr -> asleep  (acq_rel); fails? read on
//   was the old value `asleep`? wake             sleep until woken
//                                                exchange with nullptr  (acquire): all of it
//
// Both sides change the same word, so either the reader's CAS fails because something came, or the
// poster sees that it sleeps and wakes it: exactly one poster does.
//
// Written over its atomic type, so that tests/model can walk all interleavings.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

#include <weft/base/test_point.hpp>
#include <weft/exec/runnable.hpp>

namespace weft::inline v0::detail {

template <template <class> class Atomic>
class basic_inbox {
public:
    /// From any thread. True: the reader sleeps, and the caller must wake it.
    [[nodiscard]] bool push(runnable* r) noexcept {
        runnable* seen = newest_.load(std::memory_order_relaxed);
        do r->next_node = seen == asleep() ? nullptr : seen;
        while (!newest_.compare_exchange_weak(seen, r, std::memory_order_acq_rel,
                                              std::memory_order_relaxed));
        return seen == asleep();
    }

    /// From any thread: ends a sleep for another reason, which the caller has made known before and
    /// the reader looks at after fall_asleep() (seq_cst, all four). True: the caller must wake it.
    [[nodiscard]] bool rouse() noexcept {
        runnable* seen = asleep();
        return newest_.compare_exchange_strong(seen, nullptr, std::memory_order_seq_cst);
    }

    // The reader.
    [[nodiscard]] bool empty() const noexcept {
        runnable* const seen = newest_.load(std::memory_order_relaxed);
        return seen == nullptr || seen == asleep();
    }

    /// False: something came, or it says `asleep` already and nothing changed.
    [[nodiscard]] bool fall_asleep() noexcept {
        WEFT_TEST_POINT("inbox: about to fall asleep");
        runnable* seen = nullptr;
        return newest_.compare_exchange_strong(seen, asleep(), std::memory_order_seq_cst) ||
               seen == asleep();
    }

    /// All of it, the oldest first, as a list of next_node links. Ends a sleep.
    [[nodiscard]] runnable* take_all() noexcept {
        if (newest_.load(std::memory_order_relaxed) == nullptr) return nullptr;
        runnable* node = newest_.exchange(nullptr, std::memory_order_acquire);
        if (node == asleep()) return nullptr;
        runnable* oldest_first = nullptr;
        while (node != nullptr) {
            runnable* const older = node->next_node;
            node->next_node = oldest_first;
            oldest_first = node;
            node = older;
        }
        return oldest_first;
    }

protected:  // tests/model breaks it in derived classes
    // An address that no runnable has.
    [[nodiscard]] runnable* asleep() const noexcept { return const_cast<sleeper*>(&sleeper_); }

    Atomic<runnable*> newest_ = nullptr;
    struct sleeper final : runnable {
        runnable* run() noexcept override { return nullptr; }
    } sleeper_;
};

using inbox = basic_inbox<std::atomic>;

}  // namespace weft::inline v0::detail
