// shared_word.hpp - the word of a shared_mutex, and its two queues.
//
// The number in the word (wait_word.hpp):
//
//     writing          a writer holds it
//     writer_starves   the next to unlock hands it over to a writer; only while it is held
//     reader_starves   the same for readers
//     reader * n       n readers hold it
//
// The word's `queued` says that whoever frees the lock has to wake somebody: it is set only while
// the lock is held, and not while somebody who was woken is on its way.
//
// Two queues, both guarded by the word's bit: nobody else writes the word while somebody has it.
//
//   waits                                       unlocks, so that it is free
//   CAS of a word that lets it in  (acquire)    CAS to 0 of a word without `queued`     (release)
//   enter()                        (acquire)
//   cannot have it: into the queue              with `queued`: enter()                  (acquire)
//   leave(), `queued` unless                      takes out whom it wakes, coming_ += n
//     somebody is coming           (release)      leave(0)                              (release)
//                                                 wakes them
//   woken: enter(), --coming_      (acquire)
//     takes it, or is beaten and comes back to the front of its queue
//     leave(), `queued` if nobody is coming and others are in a queue                   (release)
//
// Who is woken: after a writer all readers who wait, or else the eldest writer; after the last
// reader the eldest writer, or else all readers. While any of them is on its way the word says
// nothing of those who wait, so whoever runs locks and unlocks as if it were alone.
//
// No wake is lost. Somebody goes to a queue only while the lock is held, and leaves `queued` behind
// unless others are coming; the last of those puts it there when it comes, with the lock held by it
// or by another. Readers alone in a queue never wait for readers: leave() wakes them, for the last
// writer before them may have given up.
//
// No writer waits for an endless stream of readers: `queued` keeps new ones out while readers hold
// the lock. One that was woken and is beaten more than `patience` after it began says that its side
// starves. Then whoever frees the lock hands it over instead: to all readers who wait (admitted_)
// or to the eldest writer (handed_), which are holders from then on, and learn that when they come.
// If both starve, the readers come after a writer, the writer after readers. Others of the same
// side may be coming meanwhile; then whoever comes first takes what was handed over, and the other
// counts as the one that was coming.
//
// The last touch of the lock is the operation that gives it up, and waking comes after it: whoever
// has it next may destroy it.
//
// Does not know how one waits: that is shared_mutex.cpp's. Written over its word, which is written
// over its atomic type, so that tests/model can walk all interleavings.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <weft/base/assert.hpp>
#include <weft/sync/detail/wait_word.hpp>

namespace weft::inline v0::detail {

template <class Word>
class basic_shared_word {
public:
    using waiter_type = typename Word::waiter_type;

    constexpr basic_shared_word() noexcept = default;
    basic_shared_word(const basic_shared_word&) = delete;
    basic_shared_word& operator=(const basic_shared_word&) = delete;

    // The fast ways.

    /// If it can be had at once. The first CAS guesses that nobody is there: to look first would be
    /// slow, for that load waits for the locked instruction before it.
    [[nodiscard, gnu::always_inline]] bool take() noexcept {
        std::uint64_t seen = 0;
        while (seen == 0)
            if (word_.change(seen, writing * Word::unit, std::memory_order_acquire)) [[likely]]
                return true;
        return false;
    }
    [[nodiscard, gnu::always_inline]] bool take_shared() noexcept {
        std::uint64_t seen = 0;
        do {
            if (word_.change(seen, seen + reader * Word::unit, std::memory_order_acquire))
                [[likely]]
                return true;
        } while ((seen & (Word::busy | (writing | starving) * Word::unit)) == 0);
        return false;
    }
    /// False: give_slowly() has to follow.
    [[nodiscard, gnu::always_inline]] bool give() noexcept {
        std::uint64_t held = writing * Word::unit;
        return word_.change(held, 0, std::memory_order_release);
    }
    /// False: give_shared_slowly() has to follow.
    [[nodiscard, gnu::always_inline]] bool give_shared() noexcept {
        std::uint64_t seen = reader * Word::unit;  // a guess: to look first would be slow
        do {
            // release: readers change one word in turn, so the writer after them sees all they did
            if (word_.change(seen, seen - reader * Word::unit, std::memory_order_release))
                [[likely]]
                return true;
        } while (may_just_leave(seen));
        return false;
    }
    /// Whether a look says that it is worth trying.
    [[nodiscard]] bool may_be_had() const noexcept {
        return (word_.load(std::memory_order_relaxed) & (writing | starving) * Word::unit) == 0;
    }

    // Writers.

    /// Was woken. False: it is beaten.
    [[nodiscard, gnu::noinline]] bool arrive() noexcept {
        std::uint64_t number = word_.enter();
        bool mine = handed_;
        if (mine) {
            handed_ = false;
        } else {
            --coming_;
            mine = number == 0;
            if (mine) number = writing;
        }
        woken_type woken;
        leave(number, woken);
        woken.wake();
        return mine;
    }
    /// False: it was free, and is taken.
    [[nodiscard, gnu::noinline]] bool enqueue(waiter_type& me, bool was_woken,
                                              bool starves) noexcept {
        std::uint64_t number = word_.enter();
        const bool must_wait = number != 0;
        if (!must_wait) number = writing;
        if (must_wait && was_woken) word_.queue().push_front(me);
        if (must_wait && !was_woken) word_.queue().push_back(me);
        if (must_wait && starves) number |= writer_starves;
        woken_type nobody;
        leave(number, nobody);
        return must_wait;
    }
    /// Came to its deadline, or was cancelled.
    [[gnu::noinline]] void withdraw(waiter_type& me) noexcept { withdraw(word_.queue(), me); }
    [[gnu::noinline]] void give_slowly() noexcept {
        const std::uint64_t number = word_.enter();
        WEFT_ASSERT((number & writing) != 0, "shared_mutex: unlocked while no writer holds it");
        free(number & starving, true);
    }

    // Readers.

    [[nodiscard, gnu::noinline]] bool arrive_shared() noexcept {
        std::uint64_t number = word_.enter();
        bool mine = admitted_ != 0;
        if (mine) {
            --admitted_;
        } else {
            --coming_;
            mine = (number & writing) == 0;
            if (mine) number += reader;
        }
        woken_type woken;
        leave(number, woken);
        woken.wake();
        return mine;
    }
    /// False: it could be had, and is taken. A writer that waits for readers comes before those who
    /// come later, but not if it was woken or others were: then it has to contend.
    [[nodiscard, gnu::noinline]] bool enqueue_shared(waiter_type& me, bool was_woken,
                                                     bool starves) noexcept {
        std::uint64_t number = word_.enter();
        const bool writer_first =
            number != 0 && !word_.queue().empty() && (coming_ == 0 || (number & starving) != 0);
        const bool must_wait = (number & writing) != 0 || writer_first;
        if (!must_wait) number += reader;
        if (must_wait && was_woken) readers_.push_front(me);
        if (must_wait && !was_woken) readers_.push_back(me);
        if (must_wait && starves) number |= reader_starves;
        woken_type nobody;
        leave(number, nobody);
        return must_wait;
    }
    [[gnu::noinline]] void withdraw_shared(waiter_type& me) noexcept { withdraw(readers_, me); }
    [[gnu::noinline]] void give_shared_slowly() noexcept {
        const std::uint64_t number = word_.enter();
        WEFT_ASSERT(number >= reader && (number & writing) == 0,
                    "shared_mutex: unlocked while no reader holds it");
        if (number < 2 * reader) return free(number & starving, false);
        woken_type nobody;
        leave(number - reader, nobody);
    }

    /// Neither held nor waited for.
    [[nodiscard]] bool is_unused() noexcept {
        return word_.load(std::memory_order_acquire) == 0 && word_.queue().empty() &&
               readers_.empty() && coming_ == 0;
    }

protected:  // tests/model breaks it in derived classes
    using queue_type = basic_waiter_queue<waiter_type>;
    using woken_type = basic_woken_list<waiter_type>;

    static constexpr std::uint64_t writing = 1;
    static constexpr std::uint64_t writer_starves = 2;
    static constexpr std::uint64_t reader_starves = 4;
    static constexpr std::uint64_t starving = writer_starves | reader_starves;
    static constexpr std::uint64_t reader = 8;

    /// A reader, which nobody has to be woken after.
    [[nodiscard]] static bool may_just_leave(std::uint64_t seen) noexcept {
        const std::uint64_t number = seen / Word::unit;
        return (seen & Word::guarded) == 0 && number >= reader &&
               (number >= 2 * reader || (seen & Word::queued) == 0);
    }

    // Under the word's bit, which they give up.

    void withdraw(queue_type& from, waiter_type& me) noexcept {
        const std::uint64_t number = word_.enter();
        from.remove(me);
        woken_type woken;
        leave(number, woken);
        woken.wake();
    }
    /// Frees it, or hands it over.
    void free(std::uint64_t starves, bool by_writer) noexcept {
        woken_type woken;
        const std::uint64_t number = hand_over(starves, by_writer, woken);
        if (number == 0 && coming_ == 0) {
            if (by_writer)
                static_cast<void>(wake_readers(woken) || wake_writer(woken));
            else
                static_cast<void>(wake_writer(woken) || wake_readers(woken));
        }
        leave(number, woken);
        woken.wake();
    }
    /// Whoever is woken here has still to come; that is for after it, when all of it may be gone.
    void leave(std::uint64_t number, woken_type& woken) noexcept {
        if (number >= reader && word_.queue().empty() && coming_ == 0)
            static_cast<void>(wake_readers(woken));
        if (word_.queue().empty()) number &= ~writer_starves;
        if (readers_.empty()) number &= ~reader_starves;
        const bool queued = !word_.queue().empty() || !readers_.empty();
        const bool to_be_woken = coming_ == 0 || (number & starving) != 0;
        word_.leave(number, number != 0 && queued && to_be_woken);
    }

    // Under the word's bit.

    /// To those who starve, if they still wait. What the number is then; 0: to nobody.
    [[nodiscard]] std::uint64_t hand_over(std::uint64_t starves, bool by_writer,
                                          woken_type& woken) noexcept {
        const bool to_readers =
            (starves & reader_starves) != 0 && (by_writer || (starves & writer_starves) == 0);
        if (to_readers) {
            starves &= ~reader_starves;
            std::uint64_t held = 0;
            while (waiter_type* const one = readers_.claim_one()) {
                woken.add(*one);
                ++admitted_;
                held += reader;
            }
            if (held != 0) return held | starves;
        }
        if ((starves & writer_starves) != 0)
            if (waiter_type* const one = word_.queue().claim_one()) {
                woken.add(*one);
                handed_ = true;
                return writing | (starves & ~writer_starves);
            }
        return 0;
    }
    [[nodiscard]] bool wake_writer(woken_type& woken) noexcept {
        waiter_type* const one = word_.queue().claim_one();
        if (one == nullptr) return false;
        woken.add(*one);
        ++coming_;
        return true;
    }
    [[nodiscard]] bool wake_readers(woken_type& woken) noexcept {
        while (waiter_type* const one = readers_.claim_one()) {
            woken.add(*one);
            ++coming_;
        }
        return coming_ != 0;
    }

    Word word_;                   // its queue is the writers'
    queue_type readers_;          // this and what follows is guarded by the word's bit
    std::uint32_t coming_ = 0;    // were woken, and have not come yet
    std::uint32_t admitted_ = 0;  // readers to whom it was handed over, the same
    bool handed_ = false;         // it was handed over to a writer, the same
};

using shared_word = basic_shared_word<wait_word>;
extern template class basic_shared_word<wait_word>;

}  // namespace weft::inline v0::detail
