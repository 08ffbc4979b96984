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
