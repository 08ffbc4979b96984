// steal_slot.hpp - the place for the one that was woken last; its worker runs it next.
//
// It is hot in that worker's caches, so others leave it there, unless the worker does not get to
// it. Whoever is about to sleep looks, and looks again a moment later:
//
//   owner fills it                                another, which has said that it sleeps
//   changes + 1                                   somebody there?                 (seq_cst)
//   puts it there             (RMW, seq_cst)      reads changes
//   what stood there goes to the ring             a moment later: the same? takes it    (RMW)
//   somebody sleeps? wakes him                    else sleeps, or is woken
//
// By exchanges, so that one of them has it. Whether it is the same one does not matter to who takes
// it, only whether its owner goes on: then what stood there runs, or is in the ring, of which
// others were told. One that the owner takes out, looks at and puts back was out of sight for a
// moment: so others are told again, see parking.hpp.
//
// Written over its atomic type, so that tests/model can walk all interleavings.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include <weft/base/version.hpp>

namespace weft::inline v0::detail {

template <class T, template <class> class Atomic = std::atomic>
class steal_slot {
public:
    // The owner.

    /// Returns what stood there. Tell others afterwards.
    [[nodiscard]] T* put(T* item) noexcept {
        count();  // before: whoever sees the item there sees this, too
        return place_.exchange(item, std::memory_order_seq_cst);
    }
    [[nodiscard]] T* take() noexcept {
        if (is_empty()) return nullptr;
        T* const item = place_.exchange(nullptr, std::memory_order_acquire);
        if (item != nullptr) count();
        return item;
    }
    /// What was just taken. Tell others afterwards.
    void put_back(T* item) noexcept {
        count();
        place_.store(item, std::memory_order_seq_cst);  // the owner alone fills it
    }
    [[nodiscard]] bool is_empty() const noexcept {
        return place_.load(std::memory_order_relaxed) == nullptr;
    }

    // Others.

    /// After having said that one searches no more, or sleeps.
    [[nodiscard]] bool is_seen_filled() const noexcept {
        return place_.load(std::memory_order_seq_cst) != nullptr;
    }
    /// How often its owner has filled or emptied it.
    [[nodiscard]] std::uint64_t changes() const noexcept {
        return changes_.load(std::memory_order_relaxed);
    }
    [[nodiscard]] T* steal() noexcept {
        return place_.exchange(nullptr, std::memory_order_acquire);
    }

protected:  // tests/model breaks it in derived classes
    void count() noexcept {
        changes_.store(changes_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    }

    Atomic<T*> place_{nullptr};
    Atomic<std::uint64_t> changes_{0};  // written by the owner
};

}  // namespace weft::inline v0::detail
