// quick_word_test.cpp - a mutex whose holder leaves by a plain store, against those who go to its
// queue: one is inside at a time, and no wake is lost.
//
// The mutex is mutex_core.cpp's, step by step; whoever starves does so as soon as it was beaten,
// for there is no clock. The store that says that the holder leaves may stay in its processor's
// buffer until that writes something else, or until the heavy barrier: which is what the barrier is
// for, and a mutant has none.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/sync/detail/quick_word.hpp>

#include <array>
#include <deque>

#include "model_atomic.hpp"
#include "model_test.hpp"
#include "mortal_atomic.hpp"
#include "store_buffer.hpp"

using namespace weft_model;

namespace {

struct model_barrier {
    static bool available() noexcept { return true; }
    static void heavy() { write_buffers(); }
    static void light() noexcept {}
};

struct no_barrier : model_barrier {
    static void heavy() noexcept {}
};

// Whoever asks once looks once more without waiting for a change: there may be none.
struct second_spin {
    void once() {
        if (again) explorer::here()->pause();
        again = true;
    }
    bool again = false;
};

using mortals = mortal<ordered_atomic>;

template <class Barrier>
using word_with = weft::detail::basic_quick_word<mortals::atomic, Barrier, second_spin>;

// Quick from the beginning, or about to be.
template <class Barrier>
struct word_starting : word_with<Barrier> {
    using base = word_with<Barrier>;
    using base::careful, base::word_, base::mode_, base::left_;
    using mode = typename base::mode;
    void start_quick() {
        word_.store(0);
        mode_.store(mode::quick);
        left_.store(0);
    }
    void start_careful() { left_.store(1); }
    [[nodiscard]] bool is_free() const { return (word_.peek() & ~careful) == 0; }
};
using model_word = word_starting<model_barrier>;

// Leaves without a second look.
struct looks_once : model_word {
    bool leave() {
        if (mode_.load() != mode::quick) return model_word::leave();
        leaving_.store(true);
        word_.store(0);
        return true;
    }
};

// Says that it leaves after it has looked.
struct says_it_late : model_word {
    bool leave() {
        if (mode_.load() != mode::quick || mode_.load() != mode::quick) return model_word::leave();
        leaving_.store(true);
        word_.store(0);
        return true;
    }
};

// Takes leaving_ away itself.
struct tidies_up : model_word {
    bool leave() {
        if (mode_.load() != mode::quick || !model_word::leave()) return model_word::leave();
        leaving_.store(false);
        return true;
    }
};

// Does not wait for the holder who is about to leave.
struct does_not_wait : model_word {
    void make_careful(unsigned) {
        mode now = mode::quick;
        mode_.compare_exchange_strong(now, mode::asked);
        now = mode::asked;
        if (!mode_.compare_exchange_strong(now, mode::revoked))
            return wait_until("careful", [this] { return (word_.peek() & careful) != 0; });
        mode_.store(mode::careful);
        word_.fetch_or(careful);
    }
};

// Says careful in the word before it has won the right to.
struct answers_twice : model_word {
    bool answer() {
        if (mode_.load() == mode::quick || mode_.load() == mode::careful) return false;
        mode_.store(mode::careful);
        word_.store(careful);
        return true;
    }
};

template <class Word, unsigned Asks, bool Starves = false>
struct model_mutex {
    static constexpr std::uint32_t locked = model_word::locked;
    static constexpr std::uint32_t careful = model_word::careful;
    static constexpr std::uint32_t guarded = 4;
    static constexpr std::uint32_t awaited = 8;
    static constexpr std::uint32_t starving = 16;

    Word word;
    bool coming = false;         // under the guard
    std::deque<unsigned> queue;  // under the guard
    std::array<model_sleep, 3> sleepers;

    [[nodiscard]] std::uint32_t awaited_now() const {
        return queue.empty() || coming ? 0 : awaited;
    }

    bool take() {
        std::uint32_t seen = word.load();
        while ((seen & locked) == 0)
            if (word.take_from(seen)) return true;
        return false;
    }
    bool take_woken() {
        std::uint32_t seen = word.load();
        for (model_spin spinning; (seen & locked) == 0;) {
            if ((seen & guarded) != 0) {
                spinning.once();
                seen = word.load();
            } else if ((seen & careful) == 0) {
                if (!word.take_from(seen)) continue;
                arrive_quickly();
                return true;
            } else if (word.take_from(seen, guarded)) {
                coming = false;
                word.bits().store(locked | careful | awaited_now());
                return true;
            }
        }
        return false;
    }
    void arrive_quickly() {
        if (word.stop()) {
            coming = false;
            if (queue.empty())
                word.go_on();
            else
                word.be_careful(awaited);
            return;
        }
        const std::uint32_t seen = guard();
        coming = false;
        word.bits().store(locked | careful | awaited_now() | (seen & starving));
    }
    std::uint32_t guard(std::uint32_t with = 0) {
        std::uint32_t seen = word.load();
        for (model_spin spinning;;) {
            if ((seen & guarded) != 0) {
                spinning.once();
                seen = word.load();
            } else if ((seen & careful) == 0) {
                word.make_careful(0);
                seen = word.load();
            } else if (word.bits().compare_exchange_weak(seen, seen | guarded | with)) {
                return seen;
            }
        }
    }
    // False: it was free, and is taken.
    bool enqueue(unsigned me, bool was_woken) {
        std::uint32_t seen = word.load();
        for (model_spin spinning;;) {
            if ((seen & locked) == 0) {
                if (was_woken ? take_woken() : take()) return false;
                seen = word.load();
            } else if ((seen & guarded) != 0) {
                spinning.once();
                seen = word.load();
            } else if ((seen & careful) == 0) {
                word.make_careful(Asks);
                seen = word.load();
            } else if (word.bits().compare_exchange_weak(seen, seen | guarded)) {
                break;
            }
        }
        if (was_woken) {
            coming = false;
            queue.push_front(me);
        } else {
            queue.push_back(me);
        }
        const std::uint32_t kept = seen & starving;
        word.bits().store(locked | careful | awaited_now() |
                          (Starves && was_woken ? starving : kept));
        return true;
    }
    void lock(unsigned me) {
        if (word.take()) return;
        for (bool was_woken = false; enqueue(me, was_woken); was_woken = true) {
            sleepers[me].wait();
            if (was_handed_over()) return;
        }
    }
    bool was_handed_over() {
        const std::uint32_t seen = word.load();
        if ((seen & starving) == 0) return false;
        if ((seen & awaited) == 0) word.bits().fetch_and(~starving);
        return true;
    }
    // Goes to the queue, and gives up unless it was woken: then it passes the wake on.
    bool lock_or_withdraw(unsigned me) {
        if (word.take() || !enqueue(me, false)) return true;
        guard();
        const bool waits = std::erase(queue, me) != 0;
        word.bits().fetch_and(~(guarded | (queue.empty() ? awaited : 0U)));
        if (waits) return false;
        sleepers[me].wait();
        return was_handed_over() || pass_wake_on();
    }
    bool pass_wake_on() {
        const std::uint32_t seen = guard(locked);
        coming = false;
        word.bits().store(locked | careful | awaited_now() | (seen & starving));
        return (seen & locked) == 0;
    }
    void unlock() {
        if (!word.leave()) unlock_slowly();
    }
    void unlock_slowly() {
        std::uint32_t seen = word.load();
        for (model_spin spinning;;) {
            check((seen & locked) != 0, "unlocked while nobody holds it");
            if ((seen & careful) == 0 && word.answer()) return;
            if ((seen & guarded) != 0) {
                spinning.once();
                seen = word.load();
            } else if ((seen & awaited) == 0) {
                if (word.bits().compare_exchange_weak(seen, seen & careful)) return;
            } else if (word.bits().compare_exchange_weak(seen, seen | guarded)) {
                break;
            }
        }
        const unsigned next = queue.empty() ? 3 : queue.front();
        std::uint32_t left = careful;
        if (next != 3) {
            queue.pop_front();
            if ((seen & starving) != 0)
                left = locked | careful | starving | awaited_now();
            else
                coming = true;
        }
        word.bits().store(left);
        if (next != 3) sleepers[next].wake();
    }
};

enum class start { quick, careful };

template <class Word, start From, unsigned Asks, unsigned Actors, unsigned Times,
          bool Withdraws = false, bool Starves = false>
struct one_inside : scenario {
    model_mutex<Word, Asks, Starves> m;
    unsigned inside = 0;
    unsigned in_vain = 0;
    model_atomic<unsigned> count{0};

    one_inside() {
        forget_buffers();
        mortals::is_gone = false;
        if (From == start::quick)
            m.word.start_quick();
        else
            m.word.start_careful();
    }
    void act(unsigned actor) override {
        for (unsigned i = 0; i < Times; ++i) {
            if (Withdraws && actor == 1) {
                if (!m.lock_or_withdraw(actor)) {
                    ++in_vain;
                    continue;
                }
            } else {
                m.lock(actor);
            }
            check(++inside == 1, "two are inside");
            count.store(count.load() + 1);  // steps, at which others may come
            --inside;
            m.unlock();
        }
    }
    void at_end() override {
        check(count.peek() + in_vain == Actors * Times, "a count is lost");
        check(m.word.is_free(), "it is not free");
        check(m.queue.empty() && !m.coming, "somebody is queued, or coming");
    }
};

// Whoever is the last inside destroys it.
template <class Word, start From, unsigned Asks, unsigned Actors>
struct destroyed : one_inside<Word, From, Asks, Actors, 1> {
    void act(unsigned actor) override {
        this->m.lock(actor);
        const bool last = this->count.fetch_add(1) + 1 == Actors;
        this->m.unlock();
        if (last) mortals::is_gone = true;
    }
    void at_end() override {
        mortals::is_gone = false;
        one_inside<Word, From, Asks, Actors, 1>::at_end();
    }
};

template <class Word, unsigned Asks = 0>
using mutant = one_inside<Word, start::quick, Asks, 2, 1>;

}  // namespace

WEFT_TEST("quick_word model: two who lock twice, from a quick word") {
    expect_holds<one_inside<model_word, start::quick, 0, 2, 2>>(
        {.actors = 2, .preemptions = 3, .in_soak = 5});
    expect_holds<one_inside<model_word, start::quick, 1, 2, 2>>(
        {.actors = 2, .preemptions = 3, .in_soak = 5});
}

WEFT_TEST("quick_word model: two who lock twice, from a word that becomes quick") {
    expect_holds<one_inside<model_word, start::careful, 0, 2, 2>>(
        {.actors = 2, .preemptions = 3, .in_soak = 5});
    expect_holds<one_inside<model_word, start::careful, 1, 2, 2>>(
        {.actors = 2, .preemptions = 3, .in_soak = 5});
}

WEFT_TEST("quick_word model: three who lock, from a quick word") {
    expect_holds<one_inside<model_word, start::quick, 0, 3, 1>>(
        {.actors = 3, .preemptions = 3, .in_soak = 4});
    expect_holds<one_inside<model_word, start::quick, 1, 3, 1>>(
        {.actors = 3, .preemptions = 2, .in_soak = 4});
}

WEFT_TEST("quick_word model: three, of whom one gives up") {
    expect_holds<one_inside<model_word, start::quick, 0, 3, 1, true>>(
        {.actors = 3, .preemptions = 3, .in_soak = 4});
}

WEFT_TEST("quick_word model: one that was beaten is handed the lock") {
    expect_holds<one_inside<model_word, start::quick, 0, 3, 2, false, true>>(
        {.actors = 3, .preemptions = 2, .in_soak = 3});
    expect_holds<one_inside<model_word, start::careful, 1, 3, 2, false, true>>(
        {.actors = 3, .preemptions = 2, .in_soak = 3});
    expect_holds<one_inside<model_word, start::quick, 0, 3, 2, true, true>>(
        {.actors = 3, .preemptions = 2, .in_soak = 3});
}

WEFT_TEST("quick_word model: whoever was the last inside may destroy it") {
    expect_holds<destroyed<model_word, start::quick, 0, 2>>(
        {.actors = 2, .preemptions = 3, .in_soak = 5});
    expect_holds<destroyed<model_word, start::quick, 1, 3>>(
        {.actors = 3, .preemptions = 2, .in_soak = 4});
    expect_holds<destroyed<model_word, start::careful, 0, 3>>(
        {.actors = 3, .preemptions = 2, .in_soak = 4});
}

WEFT_TEST("quick_word model: a holder that does not look twice is caught") {
    expect_caught<mutant<looks_once>>({.actors = 2, .preemptions = 3},
                                      "deadlock: b waits for a wake-up");
}

WEFT_TEST("quick_word model: a holder that says too late that it leaves is caught") {
    expect_caught<mutant<says_it_late>>({.actors = 2, .preemptions = 3},
                                        "deadlock: b waits for a wake-up");
}

WEFT_TEST("quick_word model: whoever does not wait for the holder is caught") {
    expect_caught<mutant<does_not_wait>>({.actors = 2, .preemptions = 3},
                                         "deadlock: b waits for a wake-up");
}

WEFT_TEST("quick_word model: an answer without the right to is caught") {
    expect_caught<one_inside<answers_twice, start::quick, 1, 3, 1>>(
        {.actors = 3, .preemptions = 3}, "deadlock: c waits for a wake-up");
}

WEFT_TEST("quick_word model: a word without the heavy barrier is caught") {
    expect_caught<mutant<word_starting<no_barrier>>>({.actors = 2, .preemptions = 3},
                                                     "deadlock: b waits for a wake-up");
}

WEFT_TEST("quick_word model: a holder that tidies up after it has left is caught") {
    expect_caught<destroyed<tidies_up, start::quick, 0, 2>>({.actors = 2, .preemptions = 2},
                                                            "touched after it was destroyed");
}
