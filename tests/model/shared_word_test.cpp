// shared_word_test.cpp - readers and writers at the word of a shared_mutex: a writer is alone, and
// no wake is lost.
//
// The word and its queues are shared_mutex's own. How one waits is repeated from shared_mutex.cpp,
// with a waiter that is claimed by its event or by whoever makes it give up. Whoever starves does
// so at once, for there is no clock: when it was woken and is beaten.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/sync/detail/shared_word.hpp>

#include <array>

#include "model_atomic.hpp"
#include "model_test.hpp"
#include "mortal_atomic.hpp"

using namespace weft_model;

namespace {

// Who waits: its word says who ended the wait.
struct model_waiter {
    enum : unsigned { runs, waits, event, gave_up };

    bool claim(unsigned outcome = event) {
        unsigned seen = waits;
        return state.compare_exchange_strong(seen, outcome);
    }
    void wake() { sleep.wake(); }

    model_waiter* next = nullptr;
    model_waiter* previous = nullptr;
    model_atomic<unsigned> state{runs};
    model_atomic<bool> is_cancelled{false};
    model_sleep sleep;
};

using mortals = mortal<model_atomic>;
using base_word = weft::detail::basic_wait_word<mortals::atomic, model_waiter, model_spin>;

template <class Word = base_word>
struct word_over : weft::detail::basic_shared_word<Word> {
    [[nodiscard]] bool owes_nothing() const { return this->admitted_ == 0 && !this->handed_; }
};
using model_word = word_over<>;

// --- the lock

template <class Word, bool Starves>
struct model_shared_mutex {
    Word word;
    std::array<model_waiter, 4> waiters;

    // False: it gave up.
    bool lock(unsigned me) {
        if (word.take()) return true;
        model_waiter& self = waiters[me];
        for (bool was_woken = false;; was_woken = true) {
            if (was_woken && word.arrive()) return true;
            if (!begin(self)) return false;
            if (!word.enqueue(self, was_woken, Starves && was_woken)) return end_ready(self);
            if (!wait(self)) {
                word.withdraw(self);
                return false;
            }
        }
    }
    bool lock_shared(unsigned me) {
        if (word.take_shared()) return true;
        model_waiter& self = waiters[me];
        for (bool was_woken = false;; was_woken = true) {
            if (was_woken && word.arrive_shared()) return true;
            if (!begin(self)) return false;
            if (!word.enqueue_shared(self, was_woken, Starves && was_woken)) return end_ready(self);
            if (!wait(self)) {
                word.withdraw_shared(self);
                return false;
            }
        }
    }
    void unlock() {
        if (!word.give()) word.give_slowly();
    }
    void unlock_shared() {
        if (!word.give_shared()) word.give_shared_slowly();
    }
    void cancel(unsigned who) {
        waiters[who].is_cancelled.store(true);
        if (waiters[who].claim(model_waiter::gave_up)) waiters[who].wake();
    }

private:
    // False: it is cancelled already, and was not published.
    static bool begin(model_waiter& self) {
        self.state.store(model_waiter::waits);
        if (!self.is_cancelled.load() || !self.claim(model_waiter::gave_up)) return true;
        self.state.store(model_waiter::runs);
        return false;
    }
    // It has what it wanted, so it goes on, and a canceller that came first wakes it in vain.
    static bool end_ready(model_waiter& self) {
        if (!self.claim()) self.sleep.wait();
        return true;
    }
    static bool wait(model_waiter& self) {
        self.sleep.wait();
        return self.state.load() == model_waiter::event;
    }
};

// --- scenarios

// A letter an actor: w writes, r reads, each so many times; c makes the first actor give up. W and
// R are inside when it begins.
template <unsigned N>
struct cast {
    constexpr cast(const char (&letters)[N]) {
        for (unsigned i = 0; i < N; ++i) who[i] = letters[i];
    }
    char who[N];
    static constexpr unsigned actors = N - 1;
};

template <cast Cast, bool Starves = false, class Word = model_word, unsigned Times = 1>
struct crowd : scenario {
    model_shared_mutex<Word, Starves> m;
    unsigned writers = 0;
    unsigned readers = 0;
    unsigned in_vain = 0;
    unsigned turns = 0;
    model_atomic<unsigned> count{0};

    crowd() {
        mortals::is_gone = false;
        for (const char who : Cast.who) {
            if (who == 'W') check(m.word.take(), "it is not free at first");
            if (who == 'R') check(m.word.take_shared(), "it is not free at first");
        }
    }

    void act(unsigned actor) override {
        const char who = Cast.who[actor];
        if (who == 'c') return m.cancel(0);
        for (unsigned i = 0; i < Times; ++i) {
            ++turns;
            if (who == 'w' || who == 'W')
                write(actor, who == 'W' && i == 0);
            else
                read(actor, who == 'R' && i == 0);
        }
    }
    void write(unsigned actor, bool has_it) {
        if (!has_it && !m.lock(actor)) return gave_up(actor);
        check(++writers == 1 && readers == 0, "a writer is not alone");
        count.store(count.load() + 1);  // steps, at which others may come
        check(writers == 1 && readers == 0, "somebody came to a writer");
        --writers;
        m.unlock();
    }
    void read(unsigned actor, bool has_it) {
        if (!has_it && !m.lock_shared(actor)) return gave_up(actor);
        ++readers;
        check(writers == 0, "a reader is inside with a writer");
        count.fetch_add(1);
        if (has_it) read_on();
        check(writers == 0, "a writer came to a reader");
        --readers;
        m.unlock_shared();
    }
    virtual void read_on() {}
    void gave_up(unsigned actor) {
        check(m.waiters[actor].is_cancelled.peek(), "gave up for no reason");
        ++in_vain;
    }
    void at_end() override {
        check(count.peek() + in_vain == turns, "a count is lost");
        check(m.word.is_unused(), "it is not free, or somebody is queued or coming");
        check(m.word.owes_nothing(), "it is handed over to nobody");
    }
};

template <cast Cast, class Word = model_word, bool Starves = false>
using mutant = crowd<Cast, Starves, Word>;

// A reader that stays inside until another has been there: the writer between them gives up.
template <class Word = model_word>
struct in_company : crowd<"wRrc", false, Word> {
    void read_on() override {
        wait_until("another reader", [this] { return this->count.peek() == 2; });
    }
};

// Whoever is the last to come destroys it, when it has been alone inside.
template <cast Cast, class Word = model_word>
struct destroyed : crowd<Cast, false, Word> {
    model_atomic<unsigned> left{Cast.actors};

    void act(unsigned actor) override {
        const bool writes = Cast.who[actor] == 'w';
        check(writes ? this->m.lock(actor) : this->m.lock_shared(actor), "gave up for no reason");
        const bool last = left.fetch_sub(1) == 1;
        if (writes)
            this->m.unlock();
        else
            this->m.unlock_shared();
        if (!last) return;
        if (!writes) {  // other readers may have been inside
            static_cast<void>(this->m.lock(actor));
            this->m.unlock();
        }
        check(this->m.word.is_unused(), "it is not free, or somebody is queued or coming");
        mortals::is_gone = true;
    }
    void at_end() override {}
};

// --- mutants

// Goes to the queue without a look whether it is still held.
struct does_not_look_again : model_word {
    bool enqueue(model_waiter& me, bool was_woken, bool) {
        const std::uint64_t number = word_.enter();
        if (was_woken)
            word_.queue().push_front(me);
        else
            word_.queue().push_back(me);
        woken_type nobody;
        leave(number, nobody);
        return true;
    }
};

// Says what the word is to say before it stands in the queue.
struct queues_too_late : model_word {
    bool enqueue(model_waiter& me, bool was_woken, bool starves) {
        const std::uint64_t number = word_.enter();
        woken_type nobody;
        leave(number == 0 ? writing : number, nobody);
        if (number == 0) return false;
        static_cast<void>(was_woken || starves);
        word_.queue().push_back(me);
        return true;
    }
};

// A look and a store, and no CAS.
struct gives_in_two_steps : model_word {
    bool give() {
        if (word_.load(std::memory_order_relaxed) != writing * base_word::unit) return false;
        word_.leave(0, false);
        return true;
    }
};

// The same for the bit.
struct two_step_word : base_word {
    std::uint64_t enter() {
        model_spin spin;
        std::uint64_t seen = word_.load();
        for (; (seen & guarded) != 0; seen = word_.load()) spin.once();
        word_.store(seen | guarded);
        return seen / unit;
    }
};

// Was woken, and does not tell whoever unlocks of the others.
struct keeps_the_wake : model_word {
    bool arrive() {
        std::uint64_t number = word_.enter();
        --coming_;
        const bool mine = number == 0;
        if (mine) number = writing;
        word_.leave(number, false);
        return mine;
    }
};

// A writer gives up, and the readers behind it are not let in to those who read.
struct leaves_readers_behind : model_word {
    void withdraw(model_waiter& me) {
        const std::uint64_t number = word_.enter();
        word_.queue().remove(me);
        word_.leave(number, !word_.queue().empty() || !readers_.empty());
    }
};

// Hands it over, and says that it is free.
struct frees_what_it_handed_over : model_word {
    void give_slowly() {
        const std::uint64_t number = word_.enter();
        woken_type woken;
        if (hand_over(number & starving, true, woken) == 0 && coming_ == 0)
            static_cast<void>(wake_readers(woken) || wake_writer(woken));
        leave(0, woken);
        woken.wake();
    }
};

// Looks for those who wait after it has given it up.
struct looks_when_it_has_left : model_word {
    bool give() {
        const bool given = model_word::give();
        static_cast<void>(word_.load(std::memory_order_relaxed));
        return given;
    }
};

}  // namespace

WEFT_TEST("shared_word model: a reader and a writer, twice each") {
    expect_holds<crowd<"rw", false, model_word, 2>>({.actors = 2, .preemptions = 4, .in_soak = 6});
    expect_holds<crowd<"rw", true, model_word, 2>>({.actors = 2, .preemptions = 4, .in_soak = 6});
}

WEFT_TEST("shared_word model: readers and a writer") {
    expect_holds<crowd<"rrw">>({.actors = 3, .preemptions = 3, .in_soak = 4});
    expect_holds<crowd<"rrrw">>({.actors = 4, .preemptions = 2, .in_soak = 3});
    expect_holds<crowd<"Rrw", false, model_word, 2>>({.actors = 3, .preemptions = 2, .in_soak = 3});
}

WEFT_TEST("shared_word model: two writers and a reader, three writers") {
    expect_holds<crowd<"wwr">>({.actors = 3, .preemptions = 3, .in_soak = 4});
    expect_holds<crowd<"www">>({.actors = 3, .preemptions = 3, .in_soak = 4});
    expect_holds<crowd<"wwrr">>({.actors = 4, .preemptions = 2, .in_soak = 3});
    expect_holds<crowd<"Wwr", false, model_word, 2>>({.actors = 3, .preemptions = 2, .in_soak = 3});
}

WEFT_TEST("shared_word model: sides that starve are handed the lock") {
    expect_holds<crowd<"Rrw", true, model_word, 2>>({.actors = 3, .preemptions = 2, .in_soak = 3});
    expect_holds<crowd<"Wwr", true, model_word, 2>>({.actors = 3, .preemptions = 2, .in_soak = 3});
    expect_holds<crowd<"Wrr", true, model_word, 2>>({.actors = 3, .preemptions = 2, .in_soak = 3});
    expect_holds<crowd<"Wwrr", true>>({.actors = 4, .preemptions = 2, .in_soak = 3});
}

WEFT_TEST("shared_word model: a writer that gives up") {
    expect_holds<crowd<"wrrc">>({.actors = 4, .preemptions = 2, .in_soak = 3});
    expect_holds<crowd<"wWrc">>({.actors = 4, .preemptions = 2, .in_soak = 3});
    expect_holds<crowd<"wRwc", true, model_word, 2>>({.actors = 4, .preemptions = 2, .in_soak = 3});
}

WEFT_TEST("shared_word model: a reader that gives up") {
    expect_holds<crowd<"rwwc">>({.actors = 4, .preemptions = 2, .in_soak = 3});
    expect_holds<crowd<"rWrc">>({.actors = 4, .preemptions = 2, .in_soak = 3});
    expect_holds<crowd<"rWwc", true, model_word, 2>>({.actors = 4, .preemptions = 2, .in_soak = 3});
}

WEFT_TEST("shared_word model: readers behind a writer that gives up are let in to those who read") {
    expect_holds<in_company<>>({.actors = 4, .preemptions = 2, .in_soak = 3});
}

WEFT_TEST("shared_word model: whoever was the last inside may destroy it") {
    expect_holds<destroyed<"rrw">>({.actors = 3, .preemptions = 3, .in_soak = 4});
    expect_holds<destroyed<"wwr">>({.actors = 3, .preemptions = 3, .in_soak = 4});
    expect_holds<destroyed<"www">>({.actors = 3, .preemptions = 3, .in_soak = 4});
}

WEFT_TEST("shared_word model: who does not look again whether it is held is caught") {
    expect_caught<mutant<"rw", does_not_look_again>>({.actors = 2, .preemptions = 2},
                                                     "waits for a wake-up");
}

WEFT_TEST("shared_word model: a word that is stored before its queue is looked at is caught") {
    expect_caught<mutant<"rw", queues_too_late>>({.actors = 2, .preemptions = 2},
                                                 "waits for a wake-up");
}

WEFT_TEST("shared_word model: a look and a store in place of a CAS are caught") {
    expect_caught<mutant<"wr", gives_in_two_steps>>({.actors = 2, .preemptions = 2},
                                                    "waits for a wake-up");
    expect_caught<mutant<"wwr", word_over<two_step_word>>>({.actors = 3, .preemptions = 2},
                                                           "waits for a wake-up");
}

WEFT_TEST("shared_word model: a wake that is not passed on is caught") {
    expect_caught<mutant<"www", keeps_the_wake>>({.actors = 3, .preemptions = 2},
                                                 "waits for a wake-up");
    expect_caught<mutant<"wwr", keeps_the_wake>>({.actors = 3, .preemptions = 2},
                                                 "waits for a wake-up");
}

WEFT_TEST("shared_word model: who leaves others behind when it gives up is caught") {
    expect_caught<in_company<leaves_readers_behind>>({.actors = 4, .preemptions = 2},
                                                     "c waits for a wake-up");
}

WEFT_TEST("shared_word model: a lock that is handed over and said to be free is caught") {
    expect_caught<crowd<"Www", true, frees_what_it_handed_over, 2>>({.actors = 3, .preemptions = 2},
                                                                    "a writer");
}

WEFT_TEST("shared_word model: a look after it was given up is caught") {
    expect_caught<destroyed<"wwr", looks_when_it_has_left>>({.actors = 3, .preemptions = 2},
                                                            "touched after it was destroyed");
}
