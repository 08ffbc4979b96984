// yield_if_due_test.cpp - a fiber that asks lets others run when its slice is over.
//
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <string>
#include <vector>

#include <weft/exec/loop.hpp>
#include <weft/exec/pool.hpp>
#include <weft/fiber/go.hpp>
#include <weft/fiber/this_fiber.hpp>

#include "loops.hpp"
#include "pools.hpp"

using namespace weft;
using namespace std::chrono_literals;

namespace {

// How long a fiber holds its worker whose calls are so far apart, until another one runs.
std::chrono::nanoseconds held(weft_test::loop_fixture& test, std::chrono::nanoseconds apart) {
    static bool others_ran;
    others_ran = false;
    static std::chrono::nanoseconds computed;
    computed = {};
    manual_clock* const clock = &test.clock;
    test.spawn([clock, apart] {
        while (!others_ran) {
            yield_if_due();
            if (others_ran) break;
            clock->advance(apart);
            computed += apart;
        }
    });
    test.spawn([] { others_ran = true; });
    test.run();
    return computed;
}

}  // namespace

MATRIX_TEST(
    "yield_if_due: is late by a quarter of the slice at most, however far apart the calls") {
    for (const std::chrono::nanoseconds apart : {1ns, 10ns, 333ns, 1000ns, 10'000ns, 100'000ns}) {
        const std::chrono::nanoseconds at = held(*this, apart);
        CHECK(at > 1ms);
        CHECK(at <= 1250us + apart);
    }
    CHECK(held(*this, 700us) == 1400us);
    CHECK(held(*this, 1500us) == 1500us);
    CHECK(held(*this, 20ms) == 20ms);
}

MATRIX_TEST("yield_if_due: the slice of one fiber is not that of the next") {
    static std::vector<char> order;
    order.clear();
    manual_clock* const moved = &clock;
    for (const char name : {'a', 'b'})
        spawn([moved, name] {
            for (int i = 0; i < 4; ++i) {
                order.push_back(name);
                moved->advance(600us);
                yield_if_due();
            }
        });
    run();
    CHECK(std::string(order.begin(), order.end()) == "aabbaabb");
}

MATRIX_TEST("yield_if_due: a slice begins anew after a wait") {
    static int others;
    others = 0;
    manual_clock* const moved = &clock;
    spawn([moved] {
        yield_if_due();
        moved->advance(900us);
        yield();
        CHECK(others == 1);
        moved->advance(900us);
        yield_if_due();
        moved->advance(900us);
        yield_if_due();
        CHECK(others == 1);
        moved->advance(200us);
        yield_if_due();
        CHECK(others == 2);
    });
    spawn([] {
        ++others;
        yield();
        ++others;
    });
    run();
}

MATRIX_TEST("yield_if_due: a slice begins when the fiber goes on, not with its first call") {
    static std::vector<char> order;
    order.clear();
    manual_clock* const moved = &clock;
    for (const char name : {'a', 'b'})
        spawn([moved, name] {
            for (int i = 0; i < 3; ++i) {
                order.push_back(name);
                moved->advance(1100us);
                yield_if_due();
            }
        });
    run();
    CHECK(std::string(order.begin(), order.end()) == "ababab");
}

LOOP_TEST("yield_if_due: with a clock that stands still nobody yields") {
    bool other = false;
    spawn([&] {
        for (int i = 0; i < 10'000; ++i) yield_if_due();
        CHECK(!other);
    });
    spawn([&] { other = true; });
    run();
}

POOL_TEST("yield_if_due: fibers that only compute take turns") {
    std::atomic<int> running = 0;
    const int count = static_cast<int>(p.workers()) + 2;
    for (int i = 0; i < count; ++i)
        spawn([&running, count] {
            ++running;
            while (running < count) yield_if_due();
        });
    p.drain();
    CHECK(running == count);
}

namespace {

// Says itself how long a slice is. Run by hand.
class generous final : public executor {
public:
    void post(runnable* r) override { queue_.push_back(r); }
    void defer(runnable* r) override { post(r); }
    clock_source& clock() noexcept override { return time; }
    bool slice_is_over(std::chrono::nanoseconds held) noexcept override { return held >= slice; }
    void run_all() {
        while (!queue_.empty()) {
            runnable* r = queue_.front();
            queue_.pop_front();
            while (r != nullptr) r = r->run();
        }
    }

    manual_clock time;
    std::chrono::nanoseconds slice;

private:
    std::deque<runnable*> queue_;
};

}  // namespace

WEFT_TEST("yield_if_due: the executor decides how long a slice is") {
    generous e;
    for (const std::chrono::nanoseconds slice : {2'000ns, 10'000'000ns, 3'600'000'000'000ns}) {
        e.slice = slice;
        std::chrono::nanoseconds computed{};
        bool other_ran = false;
        go(e, [&] {
            while (!other_ran && computed < 1s) {
                yield_if_due();
                if (other_ran) break;
                e.time.advance(1us);
                computed += 1us;
            }
        });
        go(e, [&] { other_ran = true; });
        e.run_all();
        CHECK(computed >= std::min<std::chrono::nanoseconds>(slice, 1s));
        CHECK(computed <= std::min<std::chrono::nanoseconds>(slice + slice / 4 + 1us, 1s));
    }
}

namespace {

// How long a fiber holds a worker of that executor that asks every microsecond.
template <class Run>
std::chrono::nanoseconds held_with_slice(executor& e, manual_clock& clock, Run run) {
    std::chrono::nanoseconds computed{};
    bool other_ran = false;
    go(e, [&] {
        go(e, [&] { other_ran = true; });
        while (!other_ran) {
            clock.advance(1us);
            computed += 1us;
            yield_if_due();
        }
    });
    run();
    return computed;
}

}  // namespace

WEFT_TEST("yield_if_due: a loop and a pool have an option that says how long a slice is") {
    for (const std::chrono::nanoseconds slice : {0ns, 2'000ns, 100'000ns, 10'000'000ns}) {
        manual_clock clock;
        loop s({.clock = &clock, .slice = slice});
        const auto on_loop = held_with_slice(s, clock, [&] { s.run(); });
        CHECK(on_loop > slice);
        CHECK(on_loop <= slice + slice / 4 + 2us);
        pool p({.workers = 1, .clock = &clock, .slice = slice});
        const auto on_pool = held_with_slice(p, clock, [&] { p.drain(); });
        CHECK(on_pool > slice);
        CHECK(on_pool <= slice + slice / 4 + 2us);
    }
}

WEFT_TEST("yield_if_due misuse: outside a fiber it aborts by name") {
    EXPECT_DEATH(yield_if_due(), "yield_if_due: called outside any fiber");
}
