// condition_variable_test.cpp - condition_variable and condition_variable_any.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/sync/condition_variable.hpp>

#include <deque>
#include <memory>
#include <optional>
#include <string>

#include <weft/fiber/cancel.hpp>
#include <weft/sync/fair_mutex.hpp>

#include "crowd.hpp"

using namespace weft;
using namespace std::chrono_literals;
using weft_test::crowd_fixture;
using weft_test::with_test_points;

namespace {

template <class Condition>
void woken_in_order(weft_test::loop_fixture& test) {
    mutex m;
    Condition changed;
    std::string log;
    for (const char name : {'a', 'b', 'c', 'd'})
        test.spawn([&, name] {
            std::unique_lock lock(m);
            changed.wait(lock);
            CHECK(lock.owns_lock());
            log += name;
        });
    test.run_until_blocked();
    changed.notify_one();
    test.run_until_blocked();
    CHECK(log == "a");
    CHECK(m.try_lock());
    m.unlock();
    changed.notify_one();
    changed.notify_one();
    test.run_until_blocked();
    CHECK(log == "abc");
    changed.notify_all();
    test.run();
    CHECK(log == "abcd");
    changed.notify_all();  // nobody
}

template <class Condition>
void ended_otherwise(weft_test::loop_fixture& test) {
    mutex m;
    Condition changed;
    std::string log;
    fiber f(test.s, test.options(), [&] {
        std::unique_lock lock(m);
        log += changed.wait_for(lock, 5ms) == cv_status::timeout ? 't' : '?';
        CHECK(lock.owns_lock());
        log += changed.wait_until(lock, test.clock.now() + 5ms, [] { return false; }) ? '?' : 'p';
        try {
            changed.wait(lock);
        } catch (const cancelled&) { log += lock.owns_lock() ? 'c' : '?'; }
        try {
            changed.wait_for(lock, 1h, [] { return false; });
        } catch (const cancelled&) { log += lock.owns_lock() ? 'd' : '?'; }
        lock.unlock();
        lock.lock();
        changed.wait(lock, [] { return true; });  // has happened
        log += 'e';
    });
    test.run_until_blocked();
    test.advance(5ms);
    CHECK(log == "t");
    test.advance(5ms);
    CHECK(log == "tp");
    f.request_stop();
    test.run();
    CHECK(log == "tpcde");
    CHECK(m.try_lock());
    m.unlock();
    f.detach();
}

// Items from producers to consumers through a bounded buffer: nothing is lost, nobody sleeps on.
template <class Condition>
void items_arrive(const crowd_fixture& test, bool with_deadlines) {
    const with_test_points points;
    // With deadlines everybody tries over and over, and holds up whoever could go on.
    const long each = test.rounds(with_deadlines ? 15'000 : 150'000);
    mutex m;
    Condition not_empty;
    Condition not_full;
    std::deque<long> buffer;
    long received = 0;
    long sum = 0;
    const auto wait_until = [&](Condition& what, std::unique_lock<mutex>& lock, auto predicate) {
        if (!with_deadlines) return what.wait(lock, predicate);
        while (!what.wait_for(lock, 2us, predicate)) {}
    };
    test.crowd(6, [&](int i) {
        for (long j = 0; j < each; ++j) {
            std::unique_lock lock(m);
            if (i % 2 == 0) {
                wait_until(not_full, lock, [&] { return buffer.size() < 2; });
                buffer.push_back(j);
                not_empty.notify_one();
            } else {
                wait_until(not_empty, lock, [&] { return !buffer.empty(); });
                sum += buffer.front();
                buffer.pop_front();
                ++received;
                lock.unlock();
                not_full.notify_one();
            }
        }
    });
    CHECK(received == each * 3);
    CHECK(sum == 3 * (each * (each - 1) / 2));
}

}  // namespace

MATRIX_TEST("condition_variable: wakes in the order they came, one or all") {
    woken_in_order<condition_variable>(*this);
}
MATRIX_TEST("condition_variable_any: wakes in the order they came, one or all") {
    woken_in_order<condition_variable_any>(*this);
}
MATRIX_TEST("condition_variable: a deadline and cancellation end it, with the lock held") {
    ended_otherwise<condition_variable>(*this);
}
MATRIX_TEST("condition_variable_any: a deadline and cancellation end it, with the lock held") {
    ended_otherwise<condition_variable_any>(*this);
}

MATRIX_TEST("condition_variable: a notification for one that is late goes to another") {
    mutex m;
    condition_variable changed;
    std::string log;
    spawn([&] {
        std::unique_lock lock(m);
        log += changed.wait_for(lock, 1ms) == cv_status::timeout ? 't' : '?';
    });
    spawn([&] {
        std::unique_lock lock(m);
        changed.wait(lock);
        log += 'n';
    });
    run_until_blocked();
    clock.advance(1ms);
    s.step();  // the first is late, and has not run yet
    changed.notify_one();
    run();
    CHECK(log == "tn");
}

MATRIX_TEST("condition_variable_any: works with any lock, and a stop wakes it") {
    fair_mutex m;
    condition_variable_any changed;
    std::stop_source source;
    std::string log;
    bool ready = false;
    for (const char name : {'a', 'b'})
        spawn([&, name] {
            m.lock();
            const bool was = changed.wait(m, source.get_token(), [&] { return ready; });
            log += name;
            log += was ? '+' : '-';
            m.unlock();
        });
    spawn([&] {
        m.lock();
        log += changed.wait_for(m, source.get_token(), 1ms, [&] { return ready; }) ? '+' : '-';
        m.unlock();
    });
    run_until_blocked();
    advance(1ms);
    CHECK(log == "-");
    source.request_stop();
    run();
    CHECK(log == "-a-b-");
    spawn([&] {
        m.lock();
        CHECK(!changed.wait(m, source.get_token(), [&] { return ready; }));  // at once
        m.unlock();
    });
    run();
}

CROWD_TEST("condition_variable: stress, every item arrives") {
    items_arrive<condition_variable>(*this, false);
}
CROWD_TEST(
    "condition_variable: stress, every item arrives, with deadlines that are about to pass") {
    items_arrive<condition_variable>(*this, true);
}
CROWD_TEST("condition_variable_any: stress, every item arrives") {
    items_arrive<condition_variable_any>(*this, false);
}

CROWD_TEST("condition_variable: stress, whoever is notified destroys it") {
    struct shared {
        mutex m;
        std::optional<condition_variable> changed{std::in_place};
        bool ready = false;
    };
    const with_test_points points;
    const long count = rounds(300'000);
    std::vector<std::unique_ptr<shared>> all;
    for (long i = 0; i < count; ++i) all.push_back(std::make_unique<shared>());
    crowd(2, [&](int i) {
        for (const auto& one : all) {
            std::unique_lock lock(one->m);
            if (i == 0) {
                one->changed->wait(lock, [&] { return one->ready; });
                one->changed.reset();
            } else {
                one->ready = true;
                one->changed->notify_all();
            }
        }
    });
}

CROWD_TEST("condition_variable: stress of cancellation against notifications") {
    const with_test_points points;
    const long count = rounds(100'000);
    mutex m;
    condition_variable changed;
    long permits = 0;
    long taken = 0;
    long given = 0;
    std::atomic<long> cancellations = 0;
    std::atomic<int> left = 4;
    weft_test::scope_slots scopes(6);
    crowd(6, [&](int i) {
        for (; i == 2 && left > 0; weft_test::yield_or_pass()) {  // a plain thread gives
            const std::lock_guard lock(m);
            if (permits < 2) {
                ++permits;
                ++given;
            }
            changed.notify_one();
        }
        for (; i == 5 && left > 0; weft_test::yield_or_pass()) scopes.cancel_one();
        for (long j = 0; j < count && i % 3 != 2; ++j) {
            const auto mine = scopes.enter(i);
            try {
                std::unique_lock lock(m);
                changed.wait(lock, [&] { return permits > 0; });
                --permits;
                ++taken;
            } catch (const cancelled&) { ++cancellations; }
        }
        if (i % 3 != 2) --left;
    });
    CHECK(given == taken + permits);
    CHECK(taken + cancellations == 4 * count);
}

WEFT_TEST("condition_variable misuse: waiting without the lock aborts, so does destroying it") {
    mutex m;
    condition_variable changed;
    std::unique_lock lock(m);
    lock.unlock();
    EXPECT_DEATH(changed.wait(lock), "condition_variable: waits with a lock that is not locked");
    const auto destroy_while_waiting = [&] {
        loop s({.external_wakes = false});
        std::optional<condition_variable> one(std::in_place);
        go(s, [&] {
            std::unique_lock mine(m);
            one->wait(mine);
        });
        s.run_until_blocked();
        one.reset();
    };
    EXPECT_DEATH(destroy_while_waiting(), "condition_variable: destroyed while somebody waits");
}

WEFT_TEST("condition_variable_any misuse: waiting without the lock aborts, so does destroying it") {
    mutex m;
    condition_variable_any changed;
    std::unique_lock lock(m);
    lock.unlock();
    EXPECT_DEATH(changed.wait(lock),
                 "condition_variable_any: waits with a lock that is not locked");
    const auto destroy_while_waiting = [&] {
        loop s({.external_wakes = false});
        std::optional<condition_variable_any> one(std::in_place);
        go(s, [&] {
            std::unique_lock mine(m);
            one->wait(mine);
        });
        s.run_until_blocked();
        one.reset();
    };
    EXPECT_DEATH(destroy_while_waiting(), "condition_variable_any: destroyed while somebody waits");
}

MATRIX_TEST("condition_variable_any: the fiber's own stop ends the wait as any stop does") {
    mutex m;
    condition_variable_any changed;
    bool over = false;
    std::optional<weft::fiber> worker;
    worker.emplace(s, options(), [&](std::stop_token stop) {
        std::unique_lock lock(m);
        while (changed.wait(lock, stop, [] { return false; })) {}
        over = lock.owns_lock();
    });
    spawn([&] {
        for (int i = 0; i < 3; ++i) yield();
        worker->request_stop();
        worker->join();
    });
    run();
    CHECK(over);
}

// The deadlines of both pass at the same moment, and the sleeper runs first.
LOOP_TEST("condition_variable misuse: a wait that was late is in it until it has returned") {
    const auto destroy_too_early = [this] {
        mutex m;
        std::optional<condition_variable> one(std::in_place);
        spawn([&] {
            sleep_for(1ms);
            one.reset();
        });
        spawn([&] {
            std::unique_lock mine(m);
            one->wait_for(mine, 1ms);
        });
        run_until_blocked();
        advance(1ms);
    };
    EXPECT_DEATH(destroy_too_early(), "condition_variable: destroyed while somebody waits");
}

LOOP_TEST("condition_variable: may be destroyed once a wait that was late has returned") {
    mutex m;
    std::optional<condition_variable> one(std::in_place);
    bool late = false;
    spawn([&] {
        std::unique_lock mine(m);
        late = one->wait_for(mine, 1ms) == cv_status::timeout;
        one.reset();
    });
    run_until_blocked();
    advance(1ms);
    CHECK(late);
}
