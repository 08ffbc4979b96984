// permit_test.cpp - park against unpark, a deadline and a canceller: no permit is lost, and no
// unpark ends another wait.
//
// The fiber parks, and then waits for something else that nobody but its own event ends. The steps
// of a wait are wait_state.hpp's; those of park are park_until()'s in src/fiber/this_fiber.cpp.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/fiber/detail/permit.hpp>

#include "model_atomic.hpp"
#include "model_test.hpp"

using namespace weft_model;
using weft::wait_outcome;

namespace {

struct barrier {
    static void light() noexcept {}
    static void heavy() noexcept {}
    static bool available() noexcept { return false; }
};
using model_state = weft::detail::basic_wait_state<model_atomic, model_spin, barrier>;
using model_permit = weft::detail::basic_permit<model_atomic, model_spin>;

// a parks `rounds` times. b, and c if it does so, unpark it. If `late`, c's part is a deadline.
template <class Permit, unsigned Rounds, bool Late>
struct parking_fiber : scenario {
    Permit permit;
    model_state state;
    model_atomic<bool> closed{false};
    model_sleep sleeper;
    unsigned given = 0;
    unsigned taken = 0;
    bool parks = false;  // the wait that it is in is for the permit

    void act(unsigned actor) override {
        if (actor == 0) return lives();
        if (actor == 2 && Late) {
            if (state.claim(wait_outcome::timed_out, closed)) sleeper.wake();
            return;
        }
        ++given;
        const bool won = permit.give([this] {
            const bool claimed = state.claim(wait_outcome::event, closed);
            check(!claimed || parks, "an unpark has ended another wait");
            return claimed;
        });
        if (won) sleeper.wake();
    }

    void lives() {
        for (unsigned i = 0; i < Rounds; ++i) park();
        if (Late) wait_for_something_else();
    }

    void park() {
        if (permit.take()) {
            ++taken;
            return;
        }
        parks = true;
        const bool waits =
            state.begin_and_publish([] { return false; }, [this] { return permit.await(); });
        if (waits) sleeper.wait();
        const bool came = !waits || state.outcome() == wait_outcome::event;
        if (!came) permit.withdraw();
        parks = false;
        if (came) {
            static_cast<void>(permit.take());
            ++taken;
        }
    }

    // Its event is there from the beginning, but not before the word says that it waits.
    void wait_for_something_else() {
        const bool waits = state.begin_and_publish([] { return false; }, [] { return true; });
        check(waits, "it waits");
        if (state.claim(wait_outcome::event, closed)) return;
        check(state.outcome() == wait_outcome::timed_out, "an unpark has ended another wait");
        sleeper.wait();
    }

    void at_end() override {
        check(taken <= given, "more permits were taken than given");
        const bool is_left = permit.take();
        if (!Late) check(taken + (is_left ? 1U : 0U) >= 1, "the permit is lost");
        if (Late) check(taken == 1 || is_left, "the permit is lost");
    }
};

// --- mutants

// As if there were no `claiming`: the fiber goes on while an unpark has yet to claim it.
struct does_not_wait_for_the_claim : model_permit {
    void withdraw() {
        std::uint8_t seen = awaited;
        word_.compare_exchange_strong(seen, none);
    }
};

// Looks, then stores: one that is given in between is lost.
struct awaits_in_two_steps : model_permit {
    bool await() {
        if (word_.load() == given) return false;
        word_.store(awaited);
        return true;
    }
};

// Whoever gives one that is awaited leaves it at that.
struct forgets_the_claim : model_permit {
    template <class Claim>
    bool give(Claim) {
        word_.exchange(given);
        return false;
    }
};

// It lost to a deadline, and does not say that the permit is there.
struct loses_what_it_could_not_give : model_permit {
    template <class Claim>
    bool give(Claim claim) {
        std::uint8_t seen = awaited;
        if (!word_.compare_exchange_strong(seen, claiming)) return model_permit::give(claim);
        const bool won = claim();
        word_.store(none);
        return won;
    }
};

}  // namespace

WEFT_TEST("permit model: parked, and unparked by one and by two") {
    expect_holds<parking_fiber<model_permit, 1, false>>({.actors = 2, .preemptions = 4});
    expect_holds<parking_fiber<model_permit, 1, false>>({.actors = 3, .preemptions = 3});
}

WEFT_TEST("permit model: unparked while its deadline comes, and another wait follows") {
    expect_holds<parking_fiber<model_permit, 1, true>>({.actors = 3, .preemptions = 3});
}

WEFT_TEST("permit model: mutants are caught") {
    const limits two{.actors = 2, .preemptions = 2};
    const limits three{.actors = 3, .preemptions = 2};
    expect_caught<parking_fiber<does_not_wait_for_the_claim, 1, true>>(
        three, "an unpark has ended another wait");
    expect_caught<parking_fiber<awaits_in_two_steps, 1, false>>(two, "deadlock: a waits");
    expect_caught<parking_fiber<forgets_the_claim, 1, false>>(two, "deadlock: a waits");
    expect_caught<parking_fiber<loses_what_it_could_not_give, 1, true>>(three,
                                                                        "the permit is lost");
}
