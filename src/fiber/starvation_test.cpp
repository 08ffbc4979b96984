// starvation_test.cpp - two fibers that wake each other for ever leave turns to everybody else: to
// those who are ready, to timers and to what other threads post.
//
// Whoever is woken runs next, from the slot, so two could keep their worker for themselves. They
// may so many times in a row (worker::slot_limit), and every so many dispatches the worker looks
// around (worker::ticks_between). All of it is counted in turns of the two, on one thread: of a
// pool of two workers the other one is held, so that it cannot help.
//
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <optional>
#include <thread>
#include <vector>

#include <weft/exec/post.hpp>

#include "loops.hpp"
#include "pools.hpp"

using namespace weft;
using namespace std::chrono_literals;

namespace {

constexpr long in_a_row = detail::worker::slot_limit;
constexpr long until_look = detail::worker::ticks_between;
// Once more when the one that leaves the slot, and then the others, stand in two queues that have
// turns.
constexpr long most_when_ready = 2 * in_a_row + 2;
// Where many are ready the two have the slot for longer, and some of the others are put where every
// worker finds them (pool_worker::mix()), so that they miss a round or two.
constexpr long most_with_many = 3 * (detail::worker::most_slot_limits * in_a_row + 1);
constexpr long most_from_outside = until_look + most_when_ready;

// Where the two run, and whom they must not starve.
struct place {
    const char* name;
    unsigned workers;  // 0: a loop
    bool pair_is_bound = false;
    bool others_are_bound = false;
};

constexpr place places[] = {
    {"a loop with a wake slot", 0},
    {"a pool of one", 1},
    {"a pool of one, all bound", 1, true, true},
    {"a pool of two", 2},
    {"a pool of two, the others bound", 2, false, true},
    {"a pool of two, the pair bound", 2, true, false},
    {"a pool of two, all bound", 2, true, true},
};

// The two, and what a test needs to follow them. Their turns count from the moment at which
// somebody else is due, and end when he was served, or when he starves.
class scene {
public:
    explicit scene(const place& where) : where_(where) {}

    // In a fiber, on the thread of which all the others shall be.
    std::function<void()> begin;
    std::function<bool()> is_due = [] { return true; };
    std::function<bool()> is_served;
    manual_clock clock;

    [[nodiscard]] long turns() const { return turns_; }
    [[nodiscard]] long turns_since_due() const { return since_due_; }
    [[nodiscard]] fiber_options others() const { return options(where_.others_are_bound); }

    template <class Meanwhile>
    void run(Meanwhile meanwhile) {
        if (where_.workers == 0) {
            loop s({.wake_slot = true, .clock = &clock});
            go(s, [this] { start(); });
            std::thread other([&] { meanwhile(s); });
            CHECK(!s.run());
            other.join();
        } else {
            pool p({.workers = where_.workers, .clock = &clock});
            if (where_.workers == 2) go(p, {.worker = 1}, [this] { hold_worker(); });
            go(p, {.worker = 0}, [this] { start(); });
            meanwhile(p);
            p.drain();
        }
    }
    void run() {
        run([](executor&) {});
    }

private:
    static constexpr long starved = 10'000;

    [[nodiscard]] static fiber_options options(bool bound) {
        fiber_options wanted;
        if (bound) wanted.worker = 0;
        return wanted;
    }

    void hold_worker() {
        is_held_ = true;
        while (!is_over_) std::this_thread::yield();
    }

    void start() {
        while (where_.workers == 2 && !is_held_) yield();
        begin();
        for (std::size_t i = 0; i < 2; ++i)
            go(options(where_.pair_is_bound), [this, i] {
                pair_[i] = this_fiber::handle();
                while (!pair_[1 - i]) yield();
                take_turns(*pair_[1 - i]);
            });
    }

    void take_turns(fiber_handle& other) {
        while (!is_over_) {
            ++turns_;
            if (since_due_ != 0 || is_due()) ++since_due_;
            if (is_served() || since_due_ == starved) is_over_ = true;
            unpark(other);
            if (!is_over_) static_cast<void>(park());
        }
        unpark(other);
    }

    const place& where_;
    std::optional<fiber_handle> pair_[2];
    std::atomic<long> turns_ = 0;
    std::atomic<long> since_due_ = 0;
    std::atomic<bool> is_held_ = false;
    std::atomic<bool> is_over_ = false;
};

// With every fiber sent elsewhere at each stop there is no slot in a pool of two.
void on_each_place(const std::function<void(scene&)>& test) {
    const bool all_are_sent = std::getenv("WEFT_FORCE_MIGRATE") != nullptr;
    for (const place& where : places) {
        if (all_are_sent && where.workers == 2) continue;
        SCOPED_TRACE(where.name);
        scene here(where);
        test(here);
    }
}

// The most turns that the two had from one turn of another to his next, while so many are ready.
long turns_between(scene& here, std::size_t others) {
    constexpr int wanted = 20;
    std::atomic<std::size_t> ended = 0;
    std::vector<long> longest(others);
    here.begin = [&] {
        for (std::size_t i = 0; i < others; ++i)
            go(here.others(), [&, i] {
                yield();  // the two are ready now, too
                for (int n = 0; n < wanted; ++n) {
                    const long before = here.turns();
                    yield();
                    longest[i] = std::max(longest[i], here.turns() - before);
                }
                ++ended;
            });
    };
    here.is_served = [&] { return ended == others; };
    here.run();
    return std::ranges::max(longest);
}

}  // namespace

WEFT_TEST("starvation: two that wake each other for ever leave turns to one that is ready") {
    on_each_place([](scene& here) {
        const long longest = turns_between(here, 1);
        EXPECT_GE(longest, in_a_row);  // else nothing is tested
        EXPECT_LE(longest, most_when_ready);
    });
}

WEFT_TEST("starvation: two that wake each other for ever leave turns to many who are ready") {
    on_each_place([](scene& here) { EXPECT_LE(turns_between(here, 400), most_with_many); });
}

WEFT_TEST("starvation: two that wake each other for ever leave turns to one whose time comes") {
    on_each_place([](scene& here) {
        std::atomic<bool> rang = false;
        here.begin = [&] {
            go(here.others(), [&] {
                CHECK(sleep_for(1ms));
                rang = true;
            });
        };
        here.is_due = [&here] {
            if (here.turns() < 100) return false;
            here.clock.advance(1ms);
            return true;
        };
        here.is_served = [&] { return rang.load(); };
        here.run();
        EXPECT_GT(here.turns(), 100);
        EXPECT_LE(here.turns_since_due(), most_from_outside);
    });
}

WEFT_TEST("starvation: two that wake each other for ever leave turns to what a thread posts") {
    on_each_place([](scene& here) {
        std::atomic<bool> posted = false;
        std::atomic<int> ran = 0;
        here.begin = [] {};
        here.is_due = [&] { return posted.load(); };
        here.is_served = [&] { return ran == 2; };
        here.run([&](executor& where) {
            while (here.turns() < 100) std::this_thread::yield();
            go(where, here.others(), [&] { ++ran; });
            post(where, [&] { ++ran; });
            posted = true;
        });
        EXPECT_GE(here.turns(), 100);
        EXPECT_LE(here.turns_since_due(), most_from_outside + until_look);  // one by one
    });
}
