// busy_worker_test.cpp - timers and posts from outside while there is always somebody ready: how
// late they are, by dispatches and by the executor's clock.
//
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <thread>

#include <weft/exec/loop.hpp>
#include <weft/exec/pool.hpp>
#include <weft/exec/post.hpp>
#include <weft/fiber/go.hpp>
#include <weft/fiber/this_fiber.hpp>

#include "loops.hpp"

using namespace weft;
using namespace std::chrono_literals;

namespace {

// Fibers that are always ready, and one that sleeps. The clock is moved by their turns alone.
struct crowd {
    executor& home;
    manual_clock& clock;
    fiber_options options{};
    std::chrono::nanoseconds most_late{};  // of the sleeps
    int slept = 0;
    int sleeps = 20;

    // Runs turn() over and over, until nobody sleeps any more.
    template <class Turn>
    void add_busy(int count, Turn turn) {
        for (int i = 0; i < count; ++i)
            go(home, options, [this, turn]() mutable {
                while (slept < sleeps) turn();
            });
    }
    void add_sleeper(std::chrono::nanoseconds wait) {
        go(home, options, [this, wait] {
            while (slept < sleeps) {
                const time_point due = clock.now() + wait;
                REQUIRE(sleep_until(due));
                most_late = std::max<std::chrono::nanoseconds>(most_late, clock.now() - due);
                ++slept;
            }
        });
    }
};

// Says how often it is asked, and stands still.
class counted_clock final : public clock_source {
public:
    [[nodiscard]] time_point now() noexcept override {
        ++asked;
        return time_point{};
    }
    int asked = 0;
};

}  // namespace

MATRIX_TEST("busy: fibers that take a millisecond each make a deadline late by some turns") {
    crowd all{s, clock, options()};
    all.add_sleeper(1ms);
    all.add_busy(3, [&all] {
        all.clock.advance(1ms);
        yield();
    });
    run();
    CHECK(all.most_late <= 8ms);  // of which it stands in the queue for 3
}

MATRIX_TEST("busy: one alone that yields every millisecond makes a deadline late by a few turns") {
    crowd all{s, clock, options()};
    all.add_sleeper(1ms);
    all.add_busy(1, [&all] {
        all.clock.advance(1ms);
        yield();
    });
    run();
    CHECK(all.most_late <= 5ms);
}

MATRIX_TEST("busy: after turns that took no time a deadline is late by 61 that do, once") {
    crowd all{s, clock, options()};
    all.sleeps = 2;
    all.add_busy(2, [&all, quick = 1000]() mutable {
        if (quick-- <= 0) all.clock.advance(1ms);
        yield();
    });
    spawn([&all] {
        for (int i = 0; i < 1000; ++i) yield();
        all.add_sleeper(1ms);
    });
    run();
    CHECK(all.most_late <= 2 * 61ms);
    all.most_late = {};
    all.slept = 0;
    all.add_sleeper(1ms);
    all.add_busy(2, [&all] {
        all.clock.advance(1ms);
        yield();
    });
    run();
    CHECK(all.most_late <= 8ms);
}

MATRIX_TEST("busy: with yield_if_due a deadline is late by the slices of those before it") {
    crowd all{s, clock, options()};
    all.sleeps = 100;
    all.add_sleeper(1ms);
    all.add_busy(3, [&all] {
        all.clock.advance(10us);
        yield_if_due();
    });
    run();
    CHECK(all.most_late <= 4 * 1260us);
}

WEFT_TEST("busy: on a pool deadlines are late by some turns of a millisecond, too") {
    for (const bool asks : {false, true}) {
        manual_clock clock;
        pool p({.workers = 1, .clock = &clock});
        crowd all{p, clock};
        all.add_sleeper(1ms);
        all.add_busy(3, [&all, asks] {
            all.clock.advance(1ms);
            asks ? yield_if_due() : yield();
        });
        p.drain();
        CHECK(all.most_late <= 8ms);
    }
}

namespace {

// How many turns of a millisecond pass until somebody runs who was posted from another thread.
int turns_until_post_runs(executor& home, manual_clock& clock) {
    int turns = 0;
    bool has_run = false;
    for (int i = 0; i < 2; ++i)
        go(home, [&, is_first = i == 0] {
            for (int n = 0; n < 1000; ++n) yield();  // it knows that they take no time
            for (int n = 0; n < 1000; ++n) {         // and then that they do
                clock.advance(1ms);
                yield();
            }
            if (is_first) std::thread([&] { post(home, [&] { has_run = true; }); }).join();
            while (!has_run) {
                ++turns;
                clock.advance(1ms);
                yield();
            }
        });
    if (auto* const s = dynamic_cast<loop*>(&home))
        s->run();
    else
        static_cast<pool&>(home).drain();
    return turns;
}

}  // namespace

WEFT_TEST("busy: a post from outside is run after some turns of a millisecond") {
    manual_clock clock;
    loop s({.clock = &clock});
    CHECK(turns_until_post_runs(s, clock) <= 4);
    pool p({.workers = 1, .clock = &clock});
    CHECK(turns_until_post_runs(p, clock) <= 4);
}

WEFT_TEST("busy: of fast turns the clock is asked once in 488") {
    counted_clock clock;
    loop s({.clock = &clock});
    for (int i = 0; i < 2; ++i)
        go(s, [] {
            for (int n = 0; n < 61'000; ++n) yield();
        });
    s.run();
    CHECK(clock.asked <= 2 * 61'000 / (8 * 61) + 10);
}

WEFT_TEST("busy: with a deadline far away the clock is asked once in 61 fast turns") {
    counted_clock clock;
    loop s({.clock = &clock});
    fiber_handle sleeper;
    go(s, [&] {
        sleeper = this_fiber::handle();
        CHECK(park_until(clock.now() + 1h));
    });
    for (int i = 0; i < 2; ++i)
        go(s, [&, is_last = i == 1] {
            for (int n = 0; n < 61'000; ++n) yield();
            if (is_last) unpark(sleeper);
        });
    s.run();
    CHECK(clock.asked <= 2 * 61'000 / 61 + 20);
}
