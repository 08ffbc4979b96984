// explorer_test.cpp - the explorer itself, on programs whose outcomes are known.
//
// SPDX-License-Identifier: Apache-2.0
#include "explorer.hpp"

#include <mutex>
#include <set>
#include <string>

#include "model_atomic.hpp"
#include "model_test.hpp"

using namespace weft_model;

namespace {

struct two_counts : scenario {
    model_atomic<int> count{0};
    void act(unsigned) override { count.store(count.load() + 1); }
    void at_end() override { check(count.load() == 2, "a count is lost"); }
};

// Two steps each: what happened, as the order of the letters.
struct orders : scenario {
    static inline std::multiset<std::string> seen;
    model_atomic<int> any{0};
    std::string order;
    void act(unsigned actor) override {
        for (int i = 0; i < 2; ++i) {
            any.load();
            order += static_cast<char>('a' + actor);
        }
    }
    void at_end() override { seen.insert(order); }
};

struct peterson : scenario {
    model_atomic<bool> wants[2];
    model_atomic<int> turn{0};
    int inside = 0;
    void act(unsigned me) override {
        wants[me].store(true);
        turn.store(static_cast<int>(1 - me));
        while (wants[1 - me].load() && turn.load() != static_cast<int>(me))
            explorer::here()->pause();
        check(++inside == 1, "two are inside");
        wants[me].store(false);
        --inside;
    }
};

struct peterson_swapped : scenario {
    model_atomic<bool> wants[2];
    model_atomic<int> turn{0};
    int inside = 0;
    void act(unsigned me) override {
        turn.store(static_cast<int>(1 - me));
        wants[me].store(true);
        while (wants[1 - me].load() && turn.load() != static_cast<int>(me))
            explorer::here()->pause();
        check(++inside == 1, "two are inside");
        wants[me].store(false);
        --inside;
    }
};

struct two_locks : scenario {
    model_lock locks[2];
    void act(unsigned me) override {
        const std::lock_guard first(locks[me]);
        const std::lock_guard second(locks[1 - me]);
    }
};

struct waits_for_nobody : scenario {
    model_atomic<bool> never{false};
    void act(unsigned me) override {
        while (me == 0 && !never.load()) explorer::here()->pause();
    }
};

// Each undoes what the other does, for ever.
struct tug_of_war : scenario {
    model_atomic<int> rope{0};
    void act(unsigned me) override {
        const int mine = me == 0 ? 1 : -1;
        while (rope.load() != 2 * mine) {
            rope.store(mine);
            wait_until("the other to pull", [&] { return rope.peek() != mine; });
        }
    }
};

struct rests : scenario {
    model_sleep sleeper;
    void act(unsigned me) override {
        if (me == 0) sleeper.wait();
    }
    bool at_rest() override {
        sleeper.wake_at_rest();
        return true;
    }
};

}  // namespace

WEFT_TEST("explorer: with no preemption each actor runs to its end") {
    orders::seen.clear();
    CHECK(explore<orders>({.preemptions = 0}).passed());
    CHECK(orders::seen == std::multiset<std::string>({"aabb", "bbaa"}));
}

WEFT_TEST("explorer: with enough preemptions it sees every order") {
    orders::seen.clear();
    CHECK(explore<orders>({.preemptions = 8}).passed());
    const std::set<std::string> all(orders::seen.begin(), orders::seen.end());
    CHECK(all == std::set<std::string>({"aabb", "abab", "abba", "baab", "baba", "bbaa"}));
}

WEFT_TEST("explorer: a lost count needs one preemption") {
    CHECK(explore<two_counts>({.preemptions = 0}).passed());
    const report r = explore<two_counts>({.preemptions = 1});
    CHECK(r.failure == "a count is lost");
    CHECK(!r.trace.empty());
    CHECK(replay<two_counts>({}, r.schedule).failure == "a count is lost");
    CHECK(replay<two_counts>({}, "a3 b3").passed());
}

WEFT_TEST("explorer: a schedule that does not fit is refused") {
    CHECK(replay<two_counts>({}, "a9").failure.find("does not fit") != std::string::npos);
}

WEFT_TEST("explorer: it finds the same failure each time") {
    const report one = explore<two_counts>({.preemptions = 2});
    const report two = explore<two_counts>({.preemptions = 2});
    CHECK(one.schedule == two.schedule);
    CHECK(one.trace == two.trace);
    CHECK(one.runs == two.runs);
}

WEFT_TEST("explorer: Peterson's lock holds, and fails with its stores swapped") {
    expect_holds<peterson>({.preemptions = 5});
    expect_caught<peterson_swapped>({.preemptions = 2}, "two are inside");
}

WEFT_TEST("explorer: a deadlock is reported with who waits for what") {
    const report r = explore<two_locks>({.preemptions = 1});
    CHECK(r.failure == "deadlock: a waits for a lock; b waits for a lock");
}

WEFT_TEST("explorer: one that spins for what nobody does is a deadlock") {
    const report r = explore<waits_for_nobody>({.preemptions = 2});
    CHECK(r.failure == "deadlock: a waits for another to move, and spins");
}

WEFT_TEST("explorer: a run without end is a livelock") {
    const report r = explore<tug_of_war>({.preemptions = 0, .steps = 200});
    CHECK(r.failure.starts_with("livelock"));
}

WEFT_TEST("explorer: a scenario may end a rest") { CHECK(explore<rests>({.actors = 2}).passed()); }
