// quick_word.hpp - the word of a mutex, which is given up without a locked instruction.
//
// A locked instruction takes as long as everything else in a lock and unlock. To take the lock
// needs one; to give it up needs one only because others may change the word at the same moment:
// they say in it that they wait. So the word has two modes. While it is careful everybody changes
// it by read-modify-writes, and the bits are the mutex's (mutex_core.hpp). While it is quick it is
// 0 or locked and nothing else, and its holder gives it up by a plain store.
//
// Whoever wants to put another bit into it asks first. A holder that is about to unlock answers: it
// gives the lock up as careful. If none does within some microseconds the other makes it careful
// itself, by a barrier in all threads of the process: a system call, which interrupts them.
//
//   gives it up                                   wants it to be careful
//   mode_ quick? else by a CAS                    CAS mode_: quick -> asked
//   leaving_? nobody holds it; = true             word_ careful, or free? done
//   light barrier: the compiler keeps the order   CAS mode_: asked -> revoked
//   mode_ still quick? word_ = 0      (release)   heavy barrier: every thread passes a full fence
//   else leaving_ = false                         leaving_, and word_ locked?      (acquire)
//                                                   looks again
//   CAS mode_: asked -> careful?                  mode_ = careful
//     word_ = careful                 (release)   word_ |= careful                 (acq_rel)
//   else by a CAS
//   takes it: word_ |= locked         (acquire)
//   leaving_ = false                  (release)
//
// The fence comes to the holder at some point of its program. Before its second look at mode_: then
// it sees that quick is over, and stores no 0 into the word. After it: then leaving_ was stored
// before the fence, and the other sees it, unless a later holder has taken it away: the store of 0
// was before that, and so before what the other does to the word (release, acquire). So when
// leaving_ is away, or the word is free, whoever still is between its looks finds quick gone, and
// what is put into the word then stays there.
//
// The store into the word is the last touch: whoever takes the lock next may destroy it. That is
// why the next holder takes leaving_ away, and not who left.
//
// Two more rules keep the modes apart. The word says careful only while mode_ does. From quick or
// asked one goes on who wins a CAS of mode_, and nobody else changes the mode until that one has
// stored the word. From careful to quick goes the holder: CAS locked + careful -> locked, which
// fails if somebody waits (acquire: what those who waited did is known to it), then mode_ = quick.
//
// When: after `patience` unlocks, or after fewer if it was careful because somebody asked. A
// barrier is paid for by `debt` quick unlocks; a lock that needed one before has to be patient for
// eight times as long, up to 131,072. A new lock is careful, and stays so where membarrier(2) is
// missing.
//
// Written over its atomic type and its barriers, so that tests/model can walk all interleavings.
// Rejected: leaving as a bit of the word (a holder between its first look and that store would
// erase what others put there); a look for those who wait after the store of 0 (the next holder may
// have destroyed the mutex).
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include <weft/base/test_point.hpp>
#include <weft/sync/detail/biased_lock.hpp>

namespace weft::inline v0::detail {

template <template <class> class Atomic, class Barrier, class Spin>
class basic_quick_word {
public:
    static constexpr std::uint32_t locked = 1;
    static constexpr std::uint32_t careful = 2;

    constexpr basic_quick_word() noexcept = default;
    basic_quick_word(const basic_quick_word&) = delete;
    basic_quick_word& operator=(const basic_quick_word&) = delete;

    /// If it is free, whoever waits, by one instruction. To look at the mode first would save
    /// nothing, and to look at the word would be slow: that load waits for the locked instruction
    /// of whoever had it before.
    [[nodiscard, gnu::always_inline]] bool take() noexcept {
        if ((word_.fetch_or(locked, std::memory_order_acquire) & locked) != 0) return false;
        leaving_.store(false, std::memory_order_release);
        return true;
    }
    /// From a word that is not locked; false: it has changed. With other bits if it is careful.
    [[nodiscard]] bool take_from(std::uint32_t& seen, std::uint32_t with = 0) noexcept {
        if (!word_.compare_exchange_weak(seen, seen | locked | with, std::memory_order_acquire,
                                         std::memory_order_relaxed))
            return false;
        leaving_.store(false, std::memory_order_release);
        return true;
    }

    /// False: it is to be given up in another way, for somebody waits; or nobody holds it.
    [[nodiscard, gnu::always_inline]] bool leave() noexcept {
        return leave_quickly() || leave_carefully();
    }
    /// From its holder, after leave(): if somebody asked, it is given up as careful.
    [[nodiscard, gnu::noinline]] bool answer() noexcept {
        mode asked = mode::asked;
        if (!mode_.compare_exchange_strong(asked, mode::careful, std::memory_order_acq_rel,
                                           std::memory_order_relaxed))
            return false;
        left_.store(patience_once_asked, std::memory_order_relaxed);
        WEFT_TEST_POINT("quick_word: about to answer");
        word_.store(careful, std::memory_order_release);
        return true;
    }

    /// From whoever does not hold it and wants to set other bits. Asks so many times before it
    /// passes the barrier. After that it may be free and not careful; without it is careful.
    [[gnu::noinline]] void make_careful(unsigned times) noexcept {
        for (Spin answers; times != 0; --times) {
            mode now = mode::quick;
            if (load() == locked)
                mode_.compare_exchange_strong(now, mode::asked, std::memory_order_acq_rel,
                                              std::memory_order_relaxed);
            answers.once();
            if ((load() & careful) != 0) return;
            if (times == 1 && load() == 0) return;
        }
        for (Spin others; (load() & careful) == 0; others.once()) {
            mode now = mode::quick;
            mode_.compare_exchange_strong(now, mode::asked, std::memory_order_acq_rel,
                                          std::memory_order_relaxed);
            now = mode::asked;
            if (!mode_.compare_exchange_strong(now, mode::revoked, std::memory_order_acq_rel,
                                               std::memory_order_relaxed))
                continue;
            WEFT_TEST_POINT("quick_word: about to pass the barrier");
            Barrier::heavy();
            for (Spin holder; is_about_to_leave();) holder.once();
            end_quick();
            mode_.store(mode::careful, std::memory_order_release);
            word_.fetch_or(careful, std::memory_order_acq_rel);
            return;
        }
    }
    /// From its holder: no barrier. True: nobody else changes the mode, nor any other bit, until
    /// go_on() or be_careful(). False: another makes it careful.
    [[nodiscard]] bool stop() noexcept {
        mode now = mode::quick;
        return mode_.compare_exchange_strong(now, mode::revoked, std::memory_order_acq_rel,
                                             std::memory_order_relaxed);
    }
    void go_on() noexcept { mode_.store(mode::quick, std::memory_order_release); }
    void be_careful(std::uint32_t with) noexcept {
        left_.store(patience_once_asked, std::memory_order_relaxed);
        mode_.store(mode::careful, std::memory_order_release);
        word_.fetch_or(careful | with, std::memory_order_acq_rel);
    }

    [[nodiscard]] std::uint32_t load(
        std::memory_order order = std::memory_order_relaxed) const noexcept {
        return word_.load(order);
    }
    /// The word itself, for whoever has seen careful in it.
    [[nodiscard]] Atomic<std::uint32_t>& bits() noexcept { return word_; }
    /// For tests.
    [[nodiscard]] bool is_quick() const noexcept {
        return mode_.load(std::memory_order_relaxed) == mode::quick;
    }

#if defined(WEFT_CHECKS) && WEFT_CHECKS
    static constexpr std::uint32_t patience = 16;  // tests shall see it change
    static constexpr std::uint32_t patience_once_asked = 8;
    static constexpr std::uint8_t most_unpaid = 0;
#else
    static constexpr std::uint32_t patience = 256;
    static constexpr std::uint32_t patience_once_asked = 16;
    static constexpr std::uint8_t most_unpaid = 3;
#endif
    static constexpr std::uint32_t debt = 1024;

protected:  // tests/model breaks it in derived classes
    enum class mode : std::uint8_t { careful, quick, asked, revoked };

    [[nodiscard]] bool is_about_to_leave() const noexcept {
        return leaving_.load(std::memory_order_acquire) &&
               (load(std::memory_order_acquire) & locked) != 0;  // for left_, too
    }
    /// The rest of leave() is not worth the place where it is inlined.
    [[nodiscard, gnu::always_inline]] bool leave_quickly() noexcept {
        if (mode_.load(std::memory_order_relaxed) != mode::quick) return false;
        // Away as long as somebody holds it: whoever took it saw to that. The word itself would say
        // the same, but a load right after the CAS that took the lock waits for it.
        if (leaving_.load(std::memory_order_relaxed)) [[unlikely]]
            return false;
        leaving_.store(true, std::memory_order_relaxed);
        Barrier::light();
        WEFT_TEST_POINT("quick_word: leaving, about to look");
        if (mode_.load(std::memory_order_relaxed) != mode::quick) [[unlikely]] {
            leaving_.store(false, std::memory_order_relaxed);
            return false;
        }
        count();
        WEFT_TEST_POINT("quick_word: about to leave");
        word_.store(0, std::memory_order_release);
        return true;
    }
    [[nodiscard, gnu::noinline]] bool leave_carefully() noexcept {
        if (mode_.load(std::memory_order_relaxed) != mode::careful) return false;
        if (count()) return make_quick() && leave_quickly();
        std::uint32_t mine = locked | careful;
        return word_.compare_exchange_strong(mine, careful, std::memory_order_release,
                                             std::memory_order_relaxed);
    }
    /// One more unlock. True: it was the last of those that were to come.
    [[gnu::always_inline]] bool count() noexcept {
        const std::uint32_t left = left_.load(std::memory_order_relaxed);
        if (left == 0) return false;
        left_.store(left - 1, std::memory_order_relaxed);
        return left == 1;
    }
    /// From its holder.
    [[nodiscard, gnu::noinline]] bool make_quick() noexcept {
        if (!Barrier::available()) return false;  // and never asks again
        std::uint32_t mine = locked | careful;
        if (!word_.compare_exchange_strong(mine, locked, std::memory_order_acquire,
                                           std::memory_order_relaxed)) {
            left_.store(1, std::memory_order_relaxed);
            return false;
        }
        left_.store(debt, std::memory_order_relaxed);
        leaving_.store(false, std::memory_order_relaxed);
        mode_.store(mode::quick, std::memory_order_release);
        return true;
    }
    void end_quick() noexcept {
        if (left_.load(std::memory_order_relaxed) == 0)
            unpaid_ = 0;
        else if (unpaid_ != most_unpaid)
            ++unpaid_;
        left_.store(patience << (3 * unpaid_), std::memory_order_relaxed);
    }

    Atomic<std::uint32_t> word_{careful};
    // Unlocks to come: until it is quick; then, until the next barrier is paid for. Whoever holds
    // the lock, and once whoever makes it careful, when either's number will do.
    Atomic<std::uint32_t> left_{patience};
    Atomic<mode> mode_{mode::careful};
    Atomic<bool> leaving_{false};  // whoever holds the lock
    std::uint8_t unpaid_ = 0;      // barriers in a row; whoever makes it careful
};

using quick_word = basic_quick_word<std::atomic, process_barrier, lock_spin>;

}  // namespace weft::inline v0::detail
