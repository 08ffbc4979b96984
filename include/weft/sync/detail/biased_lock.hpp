// biased_lock.hpp - a spin lock that costs one thread no locked instruction.
//
// A channel between fibers of one thread is locked by that thread alone, millions of times. After
// 64 times in a row the lock is biased to it: from then on it goes in by two plain stores and a
// look. Another thread that comes revokes the bias, once, by a barrier in all threads of the
// process, which is a system call (some microseconds).
//
//   the thread that has the bias                  another, which holds word_
//   inside_ = true                                owner_ = nullptr
//   light barrier: the compiler keeps the order   heavy barrier: every thread passes a full fence
//   owner_ still it? it is in                     inside_? waits until it is not        (acquire)
//     else inside_ = false, and as all others     it is in
//   out: inside_ = false              (release)   out: word_ = 0                        (release)
//
// The fence comes to the first thread at some point of its program. Before its look: then it sees
// that the bias is gone. After it: then inside_ was stored before the fence, and the other sees it.
// All others exclude each other by word_, an exchange (acquire). The bias is given by its future
// owner while that holds word_, so whoever holds word_ later knows of it.
//
// A bias is given twice to a lock, the second time after many more locks: what is really shared
// pays for two barriers. Without membarrier(2) there is no bias.
//
// Written over its atomic type and its barriers, so that tests/model can walk all interleavings.
// Rejected: plain exchanges (13 of 23 ns of an item through a channel); leaving the lock out on a
// loop (channels are shared by threads).
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include <weft/base/process_barrier.hpp>
#include <weft/base/test_point.hpp>
#include <weft/base/version.hpp>
#include <weft/sync/detail/lock_spin.hpp>

namespace weft::inline v0::detail {

template <template <class> class Atomic, class Barrier, class Spin>
class basic_biased_lock {
public:
    basic_biased_lock() noexcept = default;
    basic_biased_lock(const basic_biased_lock&) = delete;
    basic_biased_lock& operator=(const basic_biased_lock&) = delete;

    /// `me` tells threads apart.
    [[gnu::always_inline]] void lock(const void* me) noexcept {
        if (!lock_biased(me)) lock_shared(me);
    }
    /// For whoever has another way if it is not the owner of the bias.
    [[nodiscard, gnu::always_inline]] bool lock_biased(const void* me) noexcept {
        return owner_.load(std::memory_order_relaxed) == me && enter(me);
    }
    /// After lock_biased().
    [[gnu::always_inline]] void unlock_biased() noexcept {
        inside_.store(false, std::memory_order_release);
    }
    [[gnu::always_inline]] void unlock() noexcept {
        if (by_owner_)
            inside_.store(false, std::memory_order_release);
        else
            word_.store(0, std::memory_order_release);
    }
    /// Whoever holds it asks, and whoever tests it.
    [[nodiscard]] bool is_biased() const noexcept { return by_owner_; }

    static constexpr std::uint32_t first_patience = 64;
    static constexpr std::uint32_t second_patience = 65'536;

protected:  // tests/model breaks it in derived classes
    [[gnu::always_inline]] bool enter(const void* me) noexcept {
        inside_.store(true, std::memory_order_relaxed);
        Barrier::light();
        WEFT_TEST_POINT("biased_lock: inside, about to look");
        if (owner_.load(std::memory_order_relaxed) == me) [[likely]] {
            by_owner_ = true;
            return true;
        }
        inside_.store(false, std::memory_order_release);
        return false;
    }

    [[gnu::always_inline]] void lock_shared(const void* me) noexcept {
        if (word_.exchange(1, std::memory_order_acquire) != 0) [[unlikely]]
            lock_contended();
        if (patience_ != 0) [[unlikely]]
            count(me);
        by_owner_ = false;
    }

    [[gnu::noinline]] void lock_contended() noexcept {
        Spin others;
        do {
            while (word_.load(std::memory_order_relaxed) != 0) others.once();
        } while (word_.exchange(1, std::memory_order_acquire) != 0);
    }

    // With word_ held.
    [[gnu::noinline]] void count(const void* me) noexcept {
        if (owner_.load(std::memory_order_relaxed) != nullptr) revoke();
        if (last_ != me) {
            last_ = me;
            in_a_row_ = 0;
        } else if (++in_a_row_ == patience_) {
            if (Barrier::available())
                owner_.store(me, std::memory_order_relaxed);  // unlock() publishes it
            else
                patience_ = 0;
        }
    }
    void revoke() noexcept {
        owner_.store(nullptr, std::memory_order_relaxed);
        WEFT_TEST_POINT("biased_lock: revoked, about to wait");
        Barrier::heavy();
        Spin inside;
        while (inside_.load(std::memory_order_acquire)) inside.once();
        patience_ = patience_ == first_patience ? second_patience : 0;
    }

    Atomic<std::uint32_t> word_{0};
    Atomic<bool> inside_{false};  // written by the owner of the bias alone
    bool by_owner_ = false;       // guarded by the lock: how it is held
    Atomic<const void*> owner_{nullptr};
    // Guarded by word_.
    const void* last_ = nullptr;
    std::uint32_t in_a_row_ = 0;
    std::uint32_t patience_ = first_patience;  // 0: there will be no bias
};

using biased_lock = basic_biased_lock<std::atomic, process_barrier, lock_spin>;

}  // namespace weft::inline v0::detail
