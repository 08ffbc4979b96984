// wait_state_test.cpp - the word of a wait: its event, its deadline and a canceller against the
// one that publishes it.
//
// Actor a is the waiter: it begins its waits as a fiber does on a pool (others may resume it) or on
// a loop (its own thread does), and when it was resumed, withdraws from the list and goes on. The
// others are an event, a timer and a canceller, as fiber and sync use the word: the event claims
// under the lock of the list, the timer under its own, the canceller in wait_state::cancel().
//
// What must hold: a wait is resumed once, never before it is published, by the one whose outcome
// it gets; and no wait that was cancelled sleeps on.
//
// Long, for all that may end a wait stands in one scenario, and each mutant beside what it breaks.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/fiber/detail/wait_state.hpp>

#include <mutex>
#include <utility>

#include "model_atomic.hpp"
#include "model_test.hpp"
#include "store_buffer.hpp"

using namespace weft_model;
using weft::wait_outcome;

namespace {

// The plain store of a waiter is seen by others late: not before it takes the lock of the list, or
// somebody passes the heavy barrier.
using late_word = late_atomic<std::uint32_t>;

struct model_barrier {
    static bool available() { return true; }
    static void light() {}
    static void heavy() {
        explorer::here()->step();
        late_word::write_late();
    }
};
struct no_barrier : model_barrier {
    static bool available() { return false; }
};
struct lame_barrier : model_barrier {
    static void heavy() { explorer::here()->step(); }
};

template <class T>
struct word_or_flag : model_atomic<T> {
    using model_atomic<T>::model_atomic;
};
template <>
struct word_or_flag<std::uint32_t> : late_word {
    using late_word::late_word;
};

template <class Barrier>
using state_with = weft::detail::basic_wait_state<word_or_flag, model_spin, Barrier>;
using model_state = state_with<model_barrier>;

enum class place { pool, loop };

template <class State>
struct waiting : scenario {
    waiting() { late_word::forget(); }

    // The waiter.
    State state;
    word_or_flag<bool> closed{false};
    model_atomic<unsigned> flag{0};  // cancelled, and not shielded
    model_lock block;                // guards the flag, the reason and the shield
    bool reason = false;
    bool shielded = false;
    bool is_published = false;  // it may be resumed
    bool is_resumed = false;
    bool was_there = false;  // the event, when it was to be published
    wait_outcome resumed_by{};
    // Its primitive: events that have come, and whether it stands in the list.
    model_lock list;
    unsigned events = 0;
    unsigned signals = 0;
    unsigned received = 0;
    bool listed = false;
    // Its timer.
    model_lock timer;
    bool armed = false;
    bool is_over = false;  // and will not be armed again

    // --- the waiter

    // The timer is that of the publisher's worker, which looks at it no earlier than this.
    wait_outcome wait_in_pool() {
        is_resumed = is_published = false;
        const bool waits = state.begin_and_publish([this] { return flag.load() != 0; },
                                                   [this] {
                                                       armed = true;
                                                       return publish();
                                                   });
        is_published = true;  // in one step with the last store
        if (waits) wait_until("being resumed", [this] { return is_resumed; });
        return waits ? ended() : check_outcome(state.outcome());
    }

    // Whoever claims it may say so at once: its thread comes to that when it has left. The timer is
    // that thread's, too.
    wait_outcome wait_in_loop() {
        is_resumed = false;
        is_published = true;
        was_there = false;
        if (!state.begin(closed, [this] { return flag.load() != 0; }))
            return check_outcome(wait_outcome::cancelled);
        was_there = !publish();
        if (was_there && state.end_ready(closed)) return check_outcome(wait_outcome::ready);
        armed = !was_there;
        wait_until("being resumed", [this] { return is_resumed; });
        return ended();
    }

    // It hears no canceller; once it is in the list its event may resume it.
    wait_outcome wait_deaf(bool has_deadline) {
        is_resumed = false;
        is_published = true;
        state.begin_deaf(has_deadline);
        was_there = !publish();
        if (was_there) {
            check(state.end_ready(closed), "claimed, and it is in no list");
        } else {
            armed = has_deadline;
            wait_until("being resumed", [this] { return is_resumed; });
        }
        const wait_outcome outcome = state.outcome();
        check(was_there || outcome == resumed_by, "resumed by another than the word says");
        if (got_event(outcome)) ++received;
        withdraw();
        return outcome;
    }

    wait_outcome wait(place where) {
        const wait_outcome outcome = where == place::pool ? wait_in_pool() : wait_in_loop();
        if (got_event(outcome)) ++received;
        withdraw();
        return outcome;
    }

    static bool got_event(wait_outcome outcome) {
        return outcome == wait_outcome::event || outcome == wait_outcome::ready;
    }

    bool publish() {
        const std::lock_guard guard(list);
        late_word::write_late();  // to take a lock is a read-modify-write
        if (events != 0) {
            --events;
            return false;
        }
        listed = true;
        return true;
    }

    void withdraw() {
        {
            const std::lock_guard guard(list);
            listed = false;
        }
        const std::lock_guard guard(timer);
        armed = false;
    }

    wait_outcome ended() {
        const wait_outcome outcome = state.outcome();
        check(outcome == (was_there ? wait_outcome::ready : resumed_by),
              "resumed by another than the word says");
        return outcome;
    }
    wait_outcome check_outcome(wait_outcome outcome) {
        check(!is_resumed, "went on by itself, and was resumed");
        return outcome;
    }

    void at_end() override { check(signals == events + received, "an event is lost"); }

    // --- the sources

    void resume(wait_outcome outcome) {
        check(is_published, "resumed before it was published");
        check(!is_resumed, "resumed twice");
        late_word::write_late();  // before what makes it run
        is_resumed = true;
        resumed_by = outcome;
    }

    void signal() {
        ++signals;
        bool won = false;
        {
            const std::lock_guard guard(list);
            if (listed) {
                listed = false;
                won = state.claim(wait_outcome::event, closed);
            }
            if (!won) ++events;       // it stays for the next wait
            late_word::write_late();  // before the lock is given up
        }
        if (won) resume(wait_outcome::event);
    }

    void expire() {
        wait_until("an armed timer", [this] { return armed || is_over; });
        const std::lock_guard guard(timer);
        if (!std::exchange(armed, false)) return;
        if (state.claim(wait_outcome::timed_out, closed)) resume(wait_outcome::timed_out);
    }

    void cancel() {
        {
            const std::lock_guard guard(block);
            reason = true;
            set_flag();
        }
        const bool won = state.cancel(
            closed, [this] { return flag.load() != 0; }, [this] { return std::lock_guard(block); },
            [] { return true; });
        if (won) resume(wait_outcome::cancelled);
    }

    void set_flag() {
        if (reason && !shielded)
            flag.fetch_or(1);
        else
            flag.fetch_and(0);
    }
    void shield(bool on) {
        const std::lock_guard guard(block);
        shielded = on;
        set_flag();
    }
};

// One wait, and one of each source: any of them may win.
template <class State, place Where>
struct all_sources : waiting<State> {
    void act(unsigned actor) override {
        switch (actor) {
            case 0:
                static_cast<void>(this->wait(Where));
                this->is_over = true;
                break;
            case 1:
                this->signal();
                break;
            case 2:
                this->cancel();
                break;
            default:
                this->expire();
                break;
        }
    }
};

// Two waits and one event: so the canceller must end one of them, and every wait after that. On a
// loop one that finds its event there ends by it even so, while the canceller is at work.
template <class State, place Where>
struct cancelled_in_the_end : waiting<State> {
    void act(unsigned actor) override {
        if (actor == 1) return this->cancel();
        if (actor == 2) return this->signal();
        const wait_outcome first = this->wait(Where);
        const wait_outcome second = this->wait(Where);
        check(first == wait_outcome::cancelled || second == wait_outcome::cancelled,
              "two waits, one event, and no wait was cancelled");
        check(first != wait_outcome::cancelled || second == wait_outcome::cancelled ||
                  (Where == place::loop && this->was_there),
              "cancelled, and the next wait was not");
    }
};

// A wait behind a shield ends by its event alone, the one after it is cancelled.
template <class State, place Where>
struct shielded_once : waiting<State> {
    void act(unsigned actor) override {
        if (actor == 1) return this->cancel();
        if (actor == 2) return this->signal();
        this->shield(true);
        check(this->got_event(this->wait(Where)), "cancelled behind a shield");
        this->shield(false);
        check(this->wait(Where) == wait_outcome::cancelled, "ended by what did not happen");
    }
};

// Two waits, one event, and a timer that may fire twice.
template <class State, place Where>
struct two_timeouts : waiting<State> {
    void act(unsigned actor) override {
        if (actor == 1) return this->signal();
        if (actor == 2) {
            while (!this->is_over) this->expire();
            return;
        }
        check(this->wait(Where) != wait_outcome::cancelled, "cancelled by nobody");
        check(this->wait(Where) != wait_outcome::cancelled, "cancelled by nobody");
        this->is_over = true;
    }
};

// Two waits that ignore cancellation; events for both, and a timer for the first.
template <class State>
struct deaf : waiting<State> {
    void act(unsigned actor) override {
        if (actor == 1) {
            this->signal();
            return this->signal();
        }
        if (actor == 2) return this->cancel();
        if (actor == 3) return this->expire();
        check(this->wait_deaf(true) != wait_outcome::cancelled, "cancelled, though it is deaf");
        this->is_over = true;
        check(this->got_event(this->wait_deaf(false)), "not ended by its event");
    }
};

// As a channel does from hand to hand: one step if that will do, and else the long way.
template <class State>
struct at_once : State {
    bool claim(wait_outcome outcome, const word_or_flag<bool>& open) {
        if (outcome == wait_outcome::event && this->claim_at_once(open)) return true;
        return State::claim(outcome, open);
    }
};
using claims_at_once = at_once<model_state>;

// --- mutants

// Says that it waits before it is published, as on a loop.
struct without_preparing : model_state {
    template <class IsCancelled, class Publish>
    bool begin_and_publish(IsCancelled is_cancelled, Publish publish) {
        word_or_flag<bool> open{false};
        if (!begin(open, is_cancelled)) return false;
        return publish() || !claim(wait_outcome::event, open);
    }
};

struct looks_before_it_says_so : model_state {
    template <class IsCancelled, class Publish>
    bool begin_and_publish(IsCancelled is_cancelled, Publish publish) {
        const bool cancelled = is_cancelled();
        return model_state::begin_and_publish([cancelled] { return cancelled; }, publish);
    }
    template <class IsCancelled>
    bool begin(const word_or_flag<bool>& open, IsCancelled is_cancelled) {
        const bool cancelled = is_cancelled();
        return model_state::begin(open, [cancelled] { return cancelled; });
    }
};

// Comes once: if it is being published, that was it.
struct cancels_once : model_state {
    template <class IsCancelled, class Guard, class IsElsewhere>
    bool cancel(const word_or_flag<bool>& open, IsCancelled is_cancelled, Guard guard,
                IsElsewhere) {
        const auto lock = guard();
        return is_cancelled() && claim(wait_outcome::cancelled, open);
    }
};

struct cancels_without_lock : model_state {
    template <class IsCancelled, class Guard, class IsElsewhere>
    bool cancel(const word_or_flag<bool>& open, IsCancelled is_cancelled, Guard, IsElsewhere) {
        static_cast<void>(when_published());
        return is_cancelled() && claim(wait_outcome::cancelled, open);
    }
};

struct cancels_the_deaf : model_state {
    template <class IsCancelled, class Guard, class IsElsewhere>
    bool cancel(const word_or_flag<bool>&, IsCancelled, Guard, IsElsewhere) {
        std::uint32_t seen = when_published();
        const std::uint32_t now = seen & state_mask;
        if (now != waiting && now != waiting_deaf) return false;
        const std::uint32_t won = seen - now + static_cast<std::uint32_t>(wait_outcome::cancelled);
        return word_.compare_exchange_strong(seen, won);
    }
};

struct claims_in_two_steps : model_state {
    bool claim(wait_outcome outcome, const word_or_flag<bool>&) {
        const std::uint32_t seen = when_published();
        if ((seen & state_mask) != waiting) return false;
        word_.store((seen & ~state_mask) | static_cast<std::uint32_t>(outcome));
        return true;
    }
};

// At once, by a look and a store: as if nobody else could claim it.
struct claims_at_once_as_if_alone : model_state {
    bool claim_at_once(const word_or_flag<bool>&) {
        const std::uint32_t seen = word_.load();
        if ((seen & state_mask) != waiting) return false;
        word_.store(seen + (static_cast<std::uint32_t>(wait_outcome::event) - waiting));
        return true;
    }
};

// At once, whether or not it is published.
struct claims_at_once_too_early : model_state {
    bool claim_at_once(const word_or_flag<bool>& open) {
        std::uint32_t seen = word_.load();
        if ((seen & state_mask) != preparing) return model_state::claim_at_once(open);
        return word_.compare_exchange_strong(
            seen, (seen & ~state_mask) | static_cast<std::uint32_t>(wait_outcome::event));
    }
};

// At once, of whoever is still there after another has claimed it.
struct claims_at_once_what_is_claimed : model_state {
    bool claim_at_once(const word_or_flag<bool>&) {
        std::uint32_t seen = word_.load();
        return (seen & state_mask) != running && (seen & state_mask) != preparing &&
               word_.compare_exchange_strong(
                   seen, (seen & ~state_mask) | static_cast<std::uint32_t>(wait_outcome::event));
    }
};

// Takes one that cannot be claimed at once for one that does not wait any more.
struct claims_at_once_or_never : model_state {
    bool claim(wait_outcome outcome, const word_or_flag<bool>& open) {
        if (outcome == wait_outcome::event) return claim_at_once(open);
        return model_state::claim(outcome, open);
    }
};

// Begins by a plain store, and nobody knows.
struct plain_in_secret : model_state {
    template <class IsCancelled>
    bool begin(const word_or_flag<bool>& open, IsCancelled is_cancelled) {
        word_.store((next_epoch() & ~plain) | waiting, std::memory_order_relaxed);
        return !is_cancelled() || !claim(wait_outcome::cancelled, open);
    }
};

// The event that publish has taken is forgotten if a canceller was first.
struct forgets_what_it_took : model_state {
    bool end_ready(const word_or_flag<bool>& open) { return claim(wait_outcome::event, open); }
};

}  // namespace

WEFT_TEST("wait_state model: one of event, timeout and cancel wins (pool)") {
    expect_holds<all_sources<model_state, place::pool>>({.actors = 3, .preemptions = 3});
    expect_holds<all_sources<model_state, place::pool>>({.actors = 4, .preemptions = 2});
}

WEFT_TEST("wait_state model: one of event, timeout and cancel wins (loop)") {
    expect_holds<all_sources<model_state, place::loop>>({.actors = 3, .preemptions = 3});
    expect_holds<all_sources<model_state, place::loop>>({.actors = 4, .preemptions = 2});
}

WEFT_TEST("wait_state model: an event that is claimed at once is one of several sources, too") {
    expect_holds<all_sources<claims_at_once, place::pool>>({.actors = 3, .preemptions = 3});
    expect_holds<all_sources<claims_at_once, place::loop>>({.actors = 3, .preemptions = 3});
    expect_holds<all_sources<claims_at_once, place::pool>>(
        {.actors = 4, .preemptions = 2, .in_soak = 3});
    expect_holds<all_sources<claims_at_once, place::loop>>(
        {.actors = 4, .preemptions = 2, .in_soak = 3});
}

WEFT_TEST("wait_state model: claimed at once, against deadlines and cancellers of several waits") {
    expect_holds<two_timeouts<claims_at_once, place::pool>>({.actors = 3, .preemptions = 3});
    expect_holds<two_timeouts<claims_at_once, place::loop>>({.actors = 3, .preemptions = 3});
    expect_holds<cancelled_in_the_end<claims_at_once, place::pool>>(
        {.actors = 3, .preemptions = 3});
    expect_holds<cancelled_in_the_end<claims_at_once, place::loop>>(
        {.actors = 3, .preemptions = 3});
    expect_holds<deaf<claims_at_once>>({.actors = 4, .preemptions = 2, .in_soak = 3});
}

WEFT_TEST("wait_state model: a cancel is never lost") {
    expect_holds<cancelled_in_the_end<model_state, place::pool>>({.actors = 3, .preemptions = 3});
    expect_holds<cancelled_in_the_end<model_state, place::loop>>({.actors = 3, .preemptions = 3});
}

WEFT_TEST("wait_state model: nor where there is no barrier, and no wait begins plainly") {
    using careful = state_with<no_barrier>;
    expect_holds<all_sources<careful, place::loop>>({.actors = 3, .preemptions = 3});
    expect_holds<cancelled_in_the_end<careful, place::loop>>({.actors = 3, .preemptions = 3});
}

WEFT_TEST("wait_state model: a plain wait whose canceller passes no barrier is caught") {
    const limits three{.actors = 3, .preemptions = 2};
    expect_caught<cancelled_in_the_end<state_with<lame_barrier>, place::loop>>(three, "deadlock");
    expect_caught<cancelled_in_the_end<plain_in_secret, place::loop>>(three, "deadlock");
}

WEFT_TEST("wait_state model: a shield holds against a canceller at work") {
    expect_holds<shielded_once<model_state, place::pool>>({.actors = 3, .preemptions = 3});
    expect_holds<shielded_once<model_state, place::loop>>({.actors = 3, .preemptions = 3});
}

WEFT_TEST("wait_state model: a timer ends the wait that it was armed for, and no other") {
    expect_holds<two_timeouts<model_state, place::pool>>({.actors = 3, .preemptions = 3});
    expect_holds<two_timeouts<model_state, place::loop>>({.actors = 3, .preemptions = 3});
}

WEFT_TEST("wait_state model: waits that ignore cancellation") {
    expect_holds<deaf<model_state>>({.actors = 3, .preemptions = 3});
    expect_holds<deaf<model_state>>({.actors = 4, .preemptions = 2});
}

WEFT_TEST("wait_state model: mutants are caught") {
    const limits three{.actors = 3, .preemptions = 2};
    expect_caught<all_sources<without_preparing, place::pool>>(three, "before it was published");
    expect_caught<cancelled_in_the_end<looks_before_it_says_so, place::pool>>(three, "deadlock");
    expect_caught<cancelled_in_the_end<looks_before_it_says_so, place::loop>>(three, "deadlock");
    expect_caught<cancelled_in_the_end<cancels_once, place::pool>>(three, "deadlock");
    expect_caught<shielded_once<cancels_without_lock, place::pool>>(three, "behind a shield");
    expect_caught<all_sources<claims_in_two_steps, place::pool>>(three, "resumed twice");
    expect_caught<deaf<cancels_the_deaf>>(three, "cancelled, though it is deaf");
    expect_caught<all_sources<forgets_what_it_took, place::loop>>(three, "resumed by another");
}

WEFT_TEST("wait_state model: mutants of the claim at once are caught") {
    const limits two{.actors = 2, .preemptions = 2};
    const limits three{.actors = 3, .preemptions = 2};
    using alone = at_once<claims_at_once_as_if_alone>;
    expect_caught<all_sources<alone, place::pool>>(three, "resumed twice");
    expect_caught<all_sources<alone, place::loop>>(three, "resumed twice");
    expect_caught<two_timeouts<alone, place::pool>>(three, "resumed");
    using early = at_once<claims_at_once_too_early>;
    expect_caught<all_sources<early, place::pool>>(two, "resumed before it was published");
    using late = at_once<claims_at_once_what_is_claimed>;
    expect_caught<all_sources<late, place::pool>>(three, "resumed twice");
    expect_caught<all_sources<claims_at_once_or_never, place::pool>>(two, "deadlock");
}
