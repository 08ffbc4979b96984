// mutex_test.cpp - mutex, timed_mutex, the recursive ones, fair_mutex: order, deadlines, misuse.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/sync/mutex.hpp>

#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include <weft/fiber/cancel.hpp>
#include <weft/sync/fair_mutex.hpp>
#include <weft/sync/recursive_mutex.hpp>

#include "crowd.hpp"

using namespace weft;
using namespace std::chrono_literals;

namespace {

// As often as makes a mutex quick (quick_word.hpp).
template <class Mutex>
void lock_often(Mutex& m) {
    for (int i = 0; i < 1000; ++i) {
        CHECK(m.try_lock());
        m.unlock();
    }
}

template <class Mutex>
void in_the_order_they_asked(weft_test::loop_fixture& test, bool locked_often = false) {
    Mutex m;
    std::string order;
    if (locked_often) lock_often(m);
    m.lock();
    for (const char name : {'a', 'b', 'c'})
        test.spawn([&, name] {
            const std::lock_guard lock(m);
            order += name;
            yield();
        });
    test.run_until_blocked();
    CHECK(order.empty());
    m.unlock();
    test.run();
    CHECK(order == "abc");
    CHECK(m.try_lock());
    m.unlock();
}

template <class Mutex>
void deadlines_and_cancellation(weft_test::loop_fixture& test, bool locked_often = false) {
    Mutex m;
    std::string log;
    if (locked_often) lock_often(m);
    m.lock();
    fiber f(test.s, test.options(), [&] {
        log += m.try_lock_for(5ms) ? '?' : 'l';
        log += m.try_lock_until(test.clock.now() + 5ms) ? '?' : 'm';
        log += m.try_lock_for(1h) ? '?' : 'c';
        log += m.try_lock_for(1h) ? '?' : 'd';  // at once
        m.lock();                               // ignores it
        log += 'e';
        m.unlock();
        log += m.try_lock_for(0s) ? 'f' : '?';  // it happens
        m.unlock();
    });
    test.run_until_blocked();
    test.advance(5ms);
    CHECK(log == "l");
    test.advance(5ms);
    CHECK(log == "lm");
    f.request_stop();
    test.run_until_blocked();
    CHECK(log == "lmcd");
    m.unlock();
    test.run();
    CHECK(log == "lmcdef");
    f.detach();
}

}  // namespace

MATRIX_TEST("mutex: waiters get the lock in the order they asked") {
    in_the_order_they_asked<mutex>(*this);
}
MATRIX_TEST("mutex: waiters get a lock that was quick in the order they asked") {
    in_the_order_they_asked<mutex>(*this, true);
}
MATRIX_TEST("timed_mutex: deadlines and cancellation end a timed lock that was quick") {
    deadlines_and_cancellation<timed_mutex>(*this, true);
}
MATRIX_TEST("timed_mutex: waiters get the lock in the order they asked") {
    in_the_order_they_asked<timed_mutex>(*this);
}
MATRIX_TEST("recursive_mutex: waiters get the lock in the order they asked") {
    in_the_order_they_asked<recursive_mutex>(*this);
}
MATRIX_TEST("fair_mutex: waiters get the lock in the order they asked") {
    in_the_order_they_asked<fair_mutex>(*this);
}

MATRIX_TEST("timed_mutex: deadlines and cancellation end a timed lock, by false") {
    deadlines_and_cancellation<timed_mutex>(*this);
}
MATRIX_TEST("recursive_timed_mutex: deadlines and cancellation end a timed lock, by false") {
    deadlines_and_cancellation<recursive_timed_mutex>(*this);
}
MATRIX_TEST("fair_mutex: deadlines and cancellation end a timed lock, by false") {
    deadlines_and_cancellation<fair_mutex>(*this);
}

MATRIX_TEST("mutex: a newcomer may take a free lock ahead of one that is woken") {
    mutex m;
    std::string order;
    m.lock();
    spawn([&] {
        const std::lock_guard lock(m);
        order += 'w';
    });
    run_until_blocked();
    m.unlock();
    CHECK(m.try_lock());
    run_until_blocked();
    CHECK(order.empty());
    m.unlock();
    run();
    CHECK(order == "w");
}

MATRIX_TEST("mutex: one that is woken takes a lock that is quick again, and wakes the next") {
    mutex m;
    std::string order;
    lock_often(m);
    m.lock();
    for (const char name : {'a', 'b'})
        spawn([&, name] {
            const std::lock_guard lock(m);
            order += name;
        });
    run_until_blocked();
    m.unlock();     // wakes the first
    lock_often(m);  // while that is on its way
    run();
    CHECK(order == "ab");
}

MATRIX_TEST("mutex: hands over to one that was beaten after a millisecond") {
    mutex m;
    std::string order;
    m.lock();
    for (const char name : {'a', 'b'})
        spawn([&, name] {
            const std::lock_guard lock(m);
            order += name;
            yield();
        });
    run_until_blocked();
    for (int i = 0; i < 3; ++i) {  // beaten, but not for long
        m.unlock();
        REQUIRE(m.try_lock());
        run_until_blocked();
    }
    advance(1ms + 1ns);
    m.unlock();
    REQUIRE(m.try_lock());
    run_until_blocked();  // it notes that it starves
    m.unlock();
    CHECK(!m.try_lock());  // the lock is its already
    run();
    CHECK(order == "ab");
    CHECK(m.try_lock());
    m.unlock();
}

MATRIX_TEST("fair_mutex: nobody comes between an unlock and the one that waits") {
    fair_mutex m;
    std::string order;
    m.lock();
    spawn([&] {
        const std::lock_guard lock(m);
        order += 'w';
    });
    run_until_blocked();
    m.unlock();
    CHECK(!m.try_lock());
    run();
    CHECK(order == "w");
}

MATRIX_TEST("timed_mutex: one that was woken and is cancelled passes the wake on") {
    timed_mutex m;
    std::string log;
    m.lock();
    fiber first(s, options(), [&] { log += m.try_lock_for(1h) ? '?' : 'c'; });
    spawn([&] {
        m.lock();
        log += 'b';
        m.unlock();
    });
    run_until_blocked();
    m.unlock();  // wakes the first
    REQUIRE(m.try_lock());
    first.request_stop();
    run_until_blocked();
    CHECK(log == "c");
    m.unlock();
    run();
    CHECK(log == "cb");
    first.detach();
}

MATRIX_TEST("timed_mutex: one that starved and gave up leaves the lock to be had") {
    timed_mutex m;
    std::string log;
    m.lock();
    spawn([&] { log += m.try_lock_for(5ms) ? '?' : 'l'; });
    run_until_blocked();
    advance(2ms);
    m.unlock();
    REQUIRE(m.try_lock());
    run_until_blocked();
    advance(5ms);
    CHECK(log == "l");
    m.unlock();
    CHECK(m.try_lock());
    m.unlock();
    run();
}

MATRIX_TEST("recursive_mutex: its owner may lock it again, others wait for the last unlock") {
    recursive_mutex m;
    std::string log;
    spawn([&] {
        const std::lock_guard outer(m);
        {
            const std::lock_guard inner(m);
            CHECK(m.try_lock());
            m.unlock();
            yield();
            log += 'a';
        }
        yield();
        log += 'b';
    });
    spawn([&] {
        CHECK(!m.try_lock());
        const std::lock_guard lock(m);
        log += 'c';
    });
    run();
    CHECK(log == "abc");
}

MATRIX_TEST("mutex: the guards of the standard library work, and std::lock") {
    mutex a;
    timed_mutex b;
    recursive_timed_mutex c;
    int inside = 0;
    for (int i = 0; i < 4; ++i)
        spawn([&, i] {
            for (int j = 0; j < 5; ++j) {
                if (i % 2 == 0) {
                    const std::scoped_lock lock(a, b, c);
                    CHECK(++inside == 1);
                    yield();
                    --inside;
                } else {
                    std::unique_lock last(c, std::defer_lock);
                    std::unique_lock middle(b, std::defer_lock);
                    std::unique_lock first(a, std::defer_lock);
                    std::lock(last, middle, first);
                    CHECK(++inside == 1);
                    yield();
                    --inside;
                }
                yield();
            }
        });
    run();
    const std::unique_lock held(b);
    const std::unique_lock late(c, 1ms);
    CHECK(late.owns_lock());
    std::thread([&] {
        const std::unique_lock never(b, std::chrono::system_clock::now() + 1ms);
        CHECK(!never.owns_lock());
    }).join();
}

WEFT_TEST("mutex misuse: unlocking one that nobody holds aborts, also if it is quick") {
    mutex m;
    EXPECT_DEATH(m.unlock(), "mutex: unlocked");
    lock_often(m);
    EXPECT_DEATH(m.unlock(), "mutex: unlocked");
}

#if defined(WEFT_CHECKS) && WEFT_CHECKS
WEFT_TEST("mutex misuse: to unlock what another holds, or to lock what one holds, aborts by name") {
    mutex m;
    fair_mutex f;
    recursive_mutex r;
    EXPECT_DEATH(m.unlock(), "mutex: unlocked by a fiber or thread that does not hold it");
    EXPECT_DEATH(f.unlock(), "fair_mutex: unlocked by a fiber or thread that does not hold it");
    EXPECT_DEATH(r.unlock(), "recursive_mutex: unlocked by a fiber or thread that does not");
    m.lock();
    f.lock();
    r.lock();
    EXPECT_DEATH(m.lock(), "mutex: locked again by the fiber or thread that holds it");
    EXPECT_DEATH(f.lock(), "fair_mutex: locked again by the fiber or thread that holds it");
    loop s({.external_wakes = false});
    const auto from_a_fiber = [&s](auto& held) {
        go(s, [&held] { held.unlock(); });
        s.run();
    };
    EXPECT_DEATH(from_a_fiber(m), "mutex: unlocked by a fiber or thread that does not hold it");
    EXPECT_DEATH(from_a_fiber(r), "recursive_mutex: unlocked by a fiber or thread that does not");
    m.unlock();
    f.unlock();
    r.unlock();
}
#endif

WEFT_TEST("mutex misuse: to destroy one that is held, or to wait on a swapped stack, aborts") {
    std::optional<mutex> m(std::in_place);
    m->lock();
    EXPECT_DEATH(m.reset(), "mutex: destroyed while it is held or waited for");
    m->unlock();
    std::optional<fair_mutex> f(std::in_place);
    f->lock();
    EXPECT_DEATH(f.reset(), "fair_mutex: destroyed while it is held or waited for");
    f->unlock();
    const auto on_a_swapped_stack = [] {
        loop s({.external_wakes = false});
        go(s, {.kind = stack_kind::swapped}, [] {
            mutex mine;
            std::thread([&] { mine.lock(); }).join();
            mine.lock();
        });
        s.run();
    };
    EXPECT_DEATH(on_a_swapped_stack(), "mutex: lies in the stack of a swapped fiber");
}
