// isolation_test.cpp - a second kind of isolation, built outside of the library.
//
// A room has one writer or many readers inside; both are let go while their fiber waits, and taken
// again when it is about to run. It is made of suspend(), runnable and suspend_hook alone: that
// such a thing can be added after the fact is what this tests.
//
// Whoever stands in the room is a visit: the hook of its fiber, and the runnable that wakers post
// in the fiber's stead. Its run() takes the room, and only then goes on to the fiber; if it cannot,
// it stands in line and lets the thread go.
//
// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>

#include <weft/exec/executor.hpp>
#include <weft/exec/runnable.hpp>
#include <weft/fiber/suspend.hpp>
#include <weft/fiber/suspend_hook.hpp>
#include <weft/fiber/this_fiber.hpp>
#include <weft/sync/event.hpp>

#include "crowd.hpp"

using namespace weft;
using namespace std::chrono_literals;
using weft_test::with_test_points;

namespace {

enum class access : bool { reads, writes };

class visit;

class room {
public:
    [[nodiscard]] bool enter_or_queue(visit& who);
    void leave(access how);

private:
    [[nodiscard]] bool is_open_to(access how) const {
        return how == access::reads ? !writer_ : !writer_ && readers_ == 0;
    }

    std::mutex guard_;  // for a few instructions
    int readers_ = 0;
    bool writer_ = false;
    std::deque<visit*> line_;
};

/// Inside the room from its construction to its end, but for the waits of its fiber. On the heap,
/// for others reach it while a swapped fiber is parked.
class visit final : public suspend_hook, public runnable {
public:
    visit(room& where, access how) : where_(where), how_(how), home_(this_fiber::executor()) {
        weft::suspend([this](runnable* fiber) noexcept -> runnable* { return come(fiber); });
        this_fiber::set_suspend_hook(this);
    }
    visit(const visit&) = delete;
    visit& operator=(const visit&) = delete;
    ~visit() override {
        this_fiber::set_suspend_hook(below());
        where_.leave(how_);
    }

    // Off the fiber's stack: it leaves the room, and is to be resumed through the door.
    runnable* suspended(runnable* fiber) noexcept override {
        fiber_ = fiber;
        bound_to = fiber->bound_to;
        where_.leave(how_);
        return suspend_hook::suspended(this);
    }
    // Its fiber is about to run.
    runnable* run() noexcept override { return come(fiber_); }

    [[nodiscard]] access how() const { return how_; }
    void try_again() { home_.post(this); }

private:
    // The fiber, once it is inside; nullptr: somebody will call run() again.
    runnable* come(runnable* fiber) noexcept {
        fiber_ = fiber;
        bound_to = fiber->bound_to;
        return where_.enter_or_queue(*this) ? fiber : nullptr;
    }

    room& where_;
    const access how_;
    executor& home_;
    runnable* fiber_ = nullptr;
};

bool room::enter_or_queue(visit& who) {
    const std::lock_guard lock(guard_);
    if (!is_open_to(who.how())) {
        line_.push_back(&who);
        return false;
    }
    if (who.how() == access::reads)
        ++readers_;
    else
        writer_ = true;
    return true;
}

// All of those in line may try, in their order; whoever is late stands in line again.
void room::leave(access how) {
    std::deque<visit*> woken;
    {
        const std::lock_guard lock(guard_);
        if (how == access::reads)
            --readers_;
        else
            writer_ = false;
        if (readers_ == 0) woken.swap(line_);
    }
    for (visit* one : woken) one->try_again();
}

auto enter(room& where, access how) { return std::make_unique<visit>(where, how); }

}  // namespace

MATRIX_TEST("own isolation: readers are inside together, a writer alone") {
    room here;
    std::string log;
    event go_on(event_reset::manual);
    spawn([&] {
        const auto inside = enter(here, access::reads);
        log += 'r';
        const auto again = enter(here, access::reads);
        log += 'R';
    });
    spawn([&] {
        const auto inside = enter(here, access::writes);
        log += 'w';
    });
    run();
    CHECK(log == "rRw");
}

MATRIX_TEST("own isolation: let go over a wait, taken again before the fiber goes on") {
    room here;
    std::string log;
    event first(event_reset::manual);
    event second(event_reset::manual);
    spawn([&] {
        const auto inside = enter(here, access::writes);
        log += 'a';
        first.wait();
        log += 'A';
    });
    spawn([&] {
        const auto inside = enter(here, access::reads);
        log += 'b';
        second.wait();
        log += 'B';
    });
    run_until_blocked();
    CHECK(log == "ab");
    first.set();
    run_until_blocked();
    CHECK(log == "abA");
    second.set();
    run();
    CHECK(log == "abAB");
}

MATRIX_TEST("own isolation: deadlines, cancellation and exceptions go through the door, too") {
    room here;
    std::string log;
    fiber f(s, options(), [&] {
        try {
            const auto inside = enter(here, access::writes);
            CHECK(!park_until(clock.now() + 1ms));
            log += 't';
            CHECK(!sleep_for(1h));
            log += 'c';
            throw std::runtime_error("out");
        } catch (const std::runtime_error&) { log += 'e'; }
        const auto inside = enter(here, access::writes);
        log += 'w';
    });
    run_until_blocked();
    advance(1ms);
    f.request_stop();
    run();
    CHECK(log == "tcew");
    f.detach();
}

POOL_TEST("own isolation: stress, writers are alone, with waits in between") {
    const with_test_points points;
    const long rounds = weft_test::stress_count(kind == stack_kind::thread ? 5'000 : 25'000);
    room here;
    std::atomic<int> readers = 0;
    std::atomic<int> writers = 0;
    std::atomic<long> entered = 0;
    const auto touch = [&](access how) {
        std::atomic<int>& mine = how == access::reads ? readers : writers;
        const int before = mine.fetch_add(1);
        if (how == access::writes ? before != 0 || readers != 0 : writers != 0)
            ADD_FAILURE() << "a writer is not alone";
        WEFT_TEST_POINT("own isolation: inside");
        mine.fetch_sub(1);
    };
    for (int i = 0; i < 8; ++i)
        spawn([&, i] {
            const access how = i % 4 == 0 ? access::writes : access::reads;
            for (long round = 0; round < rounds; ++round) {
                const auto inside = enter(here, how);
                touch(how);
                if (round % 2 == 0) yield();
                if (round % 8 == 1) sleep_for(1us);
                touch(how);
                ++entered;
            }
        });
    p.drain();
    CHECK(entered == 8 * rounds);
}
