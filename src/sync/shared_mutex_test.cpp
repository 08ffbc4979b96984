// shared_mutex_test.cpp - shared_mutex and shared_timed_mutex.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/sync/shared_mutex.hpp>

#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>

#include <weft/fiber/cancel.hpp>

#include "crowd.hpp"

using namespace weft;
using namespace std::chrono_literals;
using weft_test::with_test_points;

MATRIX_TEST("shared_mutex: readers hold it at once, a writer alone") {
    shared_mutex m;
    std::string log;
    for (const char name : {'a', 'b'})
        spawn([&, name] {
            const std::shared_lock lock(m);
            log += name;
            yield();
            yield();
            log += name;
        });
    spawn([&] {
        const std::unique_lock lock(m);
        log += 'w';
        yield();
        log += 'w';
    });
    run();
    CHECK(log == "ababww");
    CHECK(m.try_lock_shared());
    CHECK(m.try_lock_shared());
    CHECK(!m.try_lock());
    m.unlock_shared();
    m.unlock_shared();
    CHECK(m.try_lock());
    CHECK(!m.try_lock_shared());
    m.unlock();
}

MATRIX_TEST("shared_mutex: neither readers nor writers starve") {
    shared_mutex m;
    std::string log;
    const auto reader = [&](char name) {
        spawn([&, name] {
            const std::shared_lock lock(m);
            log += name;
            yield();
        });
    };
    const auto writer = [&](char name) {
        spawn([&, name] {
            const std::unique_lock lock(m);
            log += name;
            yield();
        });
    };
    m.lock_shared();
    writer('A');
    reader('r');  // comes after the writer
    writer('B');
    reader('s');
    run_until_blocked();
    CHECK(log.empty());
    CHECK(!m.try_lock_shared());
    m.unlock_shared();
    run();
    CHECK(log == "ArsB");  // all readers who waited, then the next writer
}

MATRIX_TEST("shared_mutex: a newcomer may take a free lock ahead of those who are woken") {
    shared_mutex m;
    std::string log;
    m.lock();
    for (const char name : {'a', 'b'})
        spawn([&, name] {
            const std::shared_lock lock(m);
            log += name;
        });
    run_until_blocked();
    m.unlock();
    REQUIRE(m.try_lock());
    run_until_blocked();
    CHECK(log.empty());
    m.unlock();
    spawn([&] {
        const std::unique_lock lock(m);
        log += 'w';
    });
    run();
    CHECK(log.size() == 3);  // among readers there is no order
    CHECK(log.back() == 'w');
}

MATRIX_TEST("shared_mutex: a writer that readers beat for a millisecond is handed the lock") {
    shared_mutex m;
    std::string log;
    m.lock_shared();
    for (const char name : {'a', 'b'})
        spawn([&, name] {
            const std::unique_lock lock(m);
            log += name;
            yield();
        });
    run_until_blocked();
    for (int i = 0; i < 3; ++i) {  // beaten, but not for long
        CHECK(!m.try_lock_shared());
        m.unlock_shared();
        REQUIRE(m.try_lock_shared());
        run_until_blocked();
    }
    advance(1ms + 1ns);
    m.unlock_shared();
    REQUIRE(m.try_lock_shared());
    run_until_blocked();  // it notes that it starves
    m.unlock_shared();
    CHECK(!m.try_lock_shared());  // the lock is its already
    CHECK(!m.try_lock());
    run();
    CHECK(log == "ab");
    CHECK(m.try_lock());
    m.unlock();
}

MATRIX_TEST("shared_mutex: readers that writers beat for a millisecond are handed the lock") {
    shared_mutex m;
    std::string log;
    m.lock();
    for (const char name : {'a', 'b', 'c'})
        spawn([&, name] {
            const std::shared_lock lock(m);
            log += name;
            yield();
            log += name;
        });
    run_until_blocked();
    advance(1ms + 1ns);
    m.unlock();
    REQUIRE(m.try_lock());
    run_until_blocked();  // they note that they starve
    spawn([&] {
        const std::unique_lock lock(m);
        log += 'w';
    });
    run_until_blocked();
    m.unlock();
    CHECK(!m.try_lock());  // it is theirs already
    run();
    CHECK(log.size() == 7);
    CHECK(log.back() == 'w');
    CHECK(m.try_lock());
    m.unlock();
}

MATRIX_TEST("shared_mutex: if both sides starve they take turns") {
    shared_mutex m;
    std::string log;
    m.lock();
    spawn([&] {
        const std::unique_lock lock(m);
        log += 'w';
    });
    run_until_blocked();
    advance(1ms + 1ns);
    m.unlock();  // wakes the writer
    REQUIRE(m.try_lock());
    spawn([&] {
        const std::shared_lock lock(m);
        log += 'r';
        yield();
    });
    run_until_blocked();  // the writer starves
    m.unlock();
    CHECK(!m.try_lock());
    run();
    CHECK(log == "wr");
}

MATRIX_TEST("shared_timed_mutex: one that starved and gave up leaves the lock to be had") {
    shared_timed_mutex m;
    std::string log;
    m.lock_shared();
    spawn([&] { log += m.try_lock_for(5ms) ? '?' : 'w'; });
    run_until_blocked();
    advance(2ms);
    m.unlock_shared();
    REQUIRE(m.try_lock_shared());
    run_until_blocked();
    spawn([&] {
        const std::shared_lock lock(m);
        log += 'r';
    });
    run_until_blocked();
    CHECK(log.empty());
    advance(5ms);
    CHECK(log == "wr");
    m.unlock_shared();
    CHECK(m.try_lock());
    m.unlock();
    run();
}

MATRIX_TEST("shared_timed_mutex: one that was woken and is cancelled leaves others to be woken") {
    shared_timed_mutex m;
    std::string log;
    m.lock();
    fiber first(s, options(), [&] { log += m.try_lock_for(1h) ? '?' : 'c'; });
    spawn([&] {
        const std::unique_lock lock(m);
        log += 'b';
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

MATRIX_TEST("shared_timed_mutex: deadlines and cancellation, by false") {
    shared_timed_mutex m;
    std::string log;
    m.lock();
    fiber f(s, options(), [&] {
        log += m.try_lock_for(5ms) ? '?' : 'w';
        log += m.try_lock_shared_for(5ms) ? '?' : 'r';
        log += m.try_lock_until(clock.now() + 1h) ? '?' : 'c';
        log += m.try_lock_shared_until(clock.now() + 1h) ? '?' : 'd';
        m.lock_shared();  // ignores it
        log += 'e';
        m.unlock_shared();
    });
    run_until_blocked();
    advance(5ms);
    CHECK(log == "w");
    advance(5ms);
    CHECK(log == "wr");
    f.request_stop();
    run_until_blocked();
    CHECK(log == "wrcd");
    m.unlock();
    run();
    CHECK(log == "wrcde");
    f.detach();
}

MATRIX_TEST("shared_timed_mutex: a writer that gives up lets the readers behind it through") {
    shared_timed_mutex m;
    std::string log;
    m.lock_shared();
    spawn([&] { log += m.try_lock_for(5ms) ? '?' : 'w'; });
    spawn([&] {
        const std::shared_lock lock(m);
        log += 'r';
    });
    run_until_blocked();
    CHECK(log.empty());
    advance(5ms);
    run();
    CHECK(log == "wr");
    m.unlock_shared();
}

CROWD_TEST("shared_mutex: stress, a writer is alone, with deadlines that are about to pass") {
    const with_test_points points;
    const long count = rounds(200'000);
    shared_timed_mutex m;
    std::atomic<int> readers = 0;
    std::atomic<int> writers = 0;
    std::atomic<long> had = 0;
    crowd(6, [&](int i) {
        for (long j = 0; j < count; ++j) {
            const auto limit = std::chrono::microseconds(j % 4);
            if ((i + j) % 3 == 0) {
                if (j % 2 == 0 && !m.try_lock_for(limit)) continue;
                if (j % 2 != 0) m.lock();
                if (++writers != 1 || readers != 0) ADD_FAILURE() << "a writer is not alone";
                if (j % 4 < 2) weft_test::yield_or_pass();
                --writers;
                m.unlock();
            } else {
                if (j % 2 == 0 && !m.try_lock_shared_for(limit)) continue;
                if (j % 2 != 0) m.lock_shared();
                ++readers;
                if (writers != 0) ADD_FAILURE() << "a reader beside a writer";
                if (j % 4 < 2) weft_test::yield_or_pass();
                --readers;
                m.unlock_shared();
            }
            ++had;
        }
    });
    CHECK(had > 0);
    CHECK(m.try_lock());
    m.unlock();
}

// Bounded by what the starved side gets done: whoever streams goes on until it has.
CROWD_TEST("shared_mutex: stress, a stream of readers that overlap does not starve a writer") {
    const long count = rounds(10'000);
    shared_mutex m;
    std::atomic<bool> streams = false;
    std::atomic<bool> done = false;
    long written = 0;
    crowd(6, [&](int i) {
        if (i == 0) {
            while (!streams) weft_test::yield_or_pass();
            for (long j = 0; j < count; ++j) {
                const std::unique_lock lock(m);
                ++written;
            }
            done = true;
            return;
        }
        while (!done) {
            const std::shared_lock lock(m);
            streams = true;
            weft_test::yield_or_pass();
        }
    });
    CHECK(written == count);
}

CROWD_TEST("shared_mutex: stress, a stream of writers does not starve a reader") {
    const long count = rounds(10'000);
    shared_mutex m;
    std::atomic<bool> streams = false;
    std::atomic<bool> done = false;
    long written = 0;
    crowd(6, [&](int i) {
        if (i == 0) {
            while (!streams) weft_test::yield_or_pass();
            for (long j = 0; j < count; ++j) const std::shared_lock lock(m);
            done = true;
            return;
        }
        while (!done) {
            const std::unique_lock lock(m);
            streams = true;
            ++written;
            weft_test::yield_or_pass();
        }
    });
    CHECK(written > 0);
}

CROWD_TEST("shared_mutex: stress, short sections, and everybody comes to an end") {
    const with_test_points points;
    const long count = rounds(1'000'000);
    shared_mutex m;
    long value = 0;
    std::atomic<long> writes = 0;
    crowd(9, [&](int i) {
        long seen = 0;
        for (long j = 0; j < count; ++j) {
            if ((i + j) % 5 == 0) {
                const std::unique_lock lock(m);
                ++value;
                ++writes;
            } else {
                const std::shared_lock lock(m);
                if (value < seen) ADD_FAILURE() << "what was written is not seen";
                seen = value;
            }
        }
    });
    CHECK(value == writes);
}

CROWD_TEST("shared_mutex: stress, the last one to hold it destroys it") {
    struct shared {
        shared_mutex m;
        std::atomic<int> users = 3;
        long value = 0;
    };
    const with_test_points points;
    const long count = rounds(300'000);
    std::vector<shared*> all;
    for (long i = 0; i < count; ++i) all.push_back(new shared);
    crowd(3, [&](int i) {
        for (std::size_t j = 0; j < all.size(); ++j) {
            shared* const one = all[j];
            bool last = false;
            if ((j + static_cast<std::size_t>(i)) % 2 == 0) {
                one->m.lock();
                ++one->value;
                last = --one->users == 0;
                one->m.unlock();
            } else {
                one->m.lock_shared();
                last = --one->users == 0;
                one->m.unlock_shared();
            }
            // A reader is not the last to leave, even if it was the last to count.
            if (last) {
                one->m.lock();
                one->m.unlock();
                delete one;
            }
        }
    });
}

WEFT_TEST("shared_mutex misuse: aborts by name") {
    shared_mutex m;
    EXPECT_DEATH(m.unlock_shared(), "shared_mutex: unlocked while no reader holds it");
    std::optional<shared_mutex> held(std::in_place);
    held->lock_shared();
    EXPECT_DEATH(held.reset(), "shared_mutex: destroyed while it is held or waited for");
    held->unlock_shared();
#if defined(WEFT_CHECKS) && WEFT_CHECKS
    EXPECT_DEATH(m.unlock(), "shared_mutex: unlocked by a fiber or thread that does not hold it");
    m.lock();
    EXPECT_DEATH(m.lock(), "shared_mutex: locked again by the fiber or thread that holds it");
    EXPECT_DEATH(m.lock_shared(), "shared_mutex: locked to read by the fiber or thread that");
    m.unlock();
#endif
}
