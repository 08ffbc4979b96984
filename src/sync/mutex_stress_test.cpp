// mutex_stress_test.cpp - the mutexes under fibers and threads at once.
//
// SPDX-License-Identifier: Apache-2.0
#include <mutex>

#include <weft/sync/fair_mutex.hpp>
#include <weft/sync/mutex.hpp>
#include <weft/sync/recursive_mutex.hpp>

#include "crowd.hpp"

using namespace weft;
using namespace std::chrono_literals;
using weft_test::crowd_fixture;
using weft_test::with_test_points;
using weft_test::yield_or_pass;

namespace {

// A number that only whoever holds the lock may touch.
template <class Mutex>
void never_two_inside(const crowd_fixture& test) {
    const with_test_points points;
    const long rounds = test.rounds(150'000);
    Mutex m;
    long inside = 0;
    long total = 0;
    test.crowd(6, [&](int i) {
        for (long round = 0; round < rounds; ++round) {
            m.lock();
            if (++inside != 1) ADD_FAILURE() << "two are inside";
            if ((round + i) % 4 == 0) yield_or_pass();
            --inside;
            ++total;
            m.unlock();
        }
    });
    CHECK(total == rounds * 6);
}

// Half of them with deadlines that are about to pass.
template <class Mutex>
void deadlines_against_unlocks(const crowd_fixture& test) {
    const with_test_points points;
    const long rounds = test.rounds(100'000);
    Mutex first;
    Mutex second;
    long inside = 0;
    long had = 0;
    std::atomic<long> late = 0;
    test.crowd(6, [&](int i) {
        for (long round = 0; round < rounds; ++round) {
            if (i % 2 == 0 && !first.try_lock_for(std::chrono::microseconds(round % 5))) {
                // What came too late for the first must not end a wait for the second.
                const std::lock_guard lock(second);
                ++late;
                continue;
            }
            if (i % 2 != 0) first.lock();
            if (++inside != 1) ADD_FAILURE() << "two are inside";
            if (round % 4 == 0) yield_or_pass();
            --inside;
            ++had;
            first.unlock();
        }
    });
    CHECK(had + late == rounds * 6);
    CHECK(first.try_lock());
    first.unlock();
}

// As often as makes a mutex quick (quick_word.hpp).
template <class Mutex>
void lock_often(Mutex& m) {
    for (int i = 0; i < 300; ++i) {
        m.lock();
        m.unlock();
    }
}

// The last one to hold it destroys it.
template <class Mutex>
void destroyed_by_the_last_one(const crowd_fixture& test, bool locked_often = false) {
    struct shared {
        Mutex m;
        int users = 3;
    };
    const long rounds = test.rounds(300'000);
    std::vector<shared*> all;
    for (long i = 0; i < rounds; ++i) {
        all.push_back(new shared);
        if (locked_often) lock_often(all.back()->m);
    }
    const with_test_points points;  // not before: nobody else was there to yield to
    test.crowd(3, [&](int) {
        for (shared* one : all) {
            one->m.lock();
            const bool last = --one->users == 0;
            if (one->users == 2) yield_or_pass();  // the others come to wait
            one->m.unlock();
            if (last) delete one;
        }
    });
}

}  // namespace

CROWD_TEST("mutex: stress, two are never inside") { never_two_inside<mutex>(*this); }
CROWD_TEST("recursive_mutex: stress, two are never inside") {
    never_two_inside<recursive_mutex>(*this);
}
CROWD_TEST("fair_mutex: stress, two are never inside") { never_two_inside<fair_mutex>(*this); }

CROWD_TEST("mutex: stress, many short turns, and others come to wait") {
    const with_test_points points;
    const long rounds = this->rounds(50'000);
    mutex m;
    long inside = 0;
    long total = 0;
    crowd(4, [&](int i) {
        for (long round = 0; round < rounds; ++round) {
            const long turns = i == 0 ? 40 : 1;  // one makes it quick, the others stop that
            for (long turn = 0; turn < turns; ++turn) {
                const std::lock_guard lock(m);
                if (++inside != 1) ADD_FAILURE() << "two are inside";
                if (i != 0 && round % 8 == 0) yield_or_pass();
                --inside;
                ++total;
            }
            if (i != 0) yield_or_pass();
        }
    });
    CHECK(total == rounds * 43);
}

CROWD_TEST("timed_mutex: stress of deadlines against unlocks") {
    deadlines_against_unlocks<timed_mutex>(*this);
}
CROWD_TEST("fair_mutex: stress of deadlines against unlocks") {
    deadlines_against_unlocks<fair_mutex>(*this);
}

CROWD_TEST("mutex: stress, the last one to hold it destroys it") {
    destroyed_by_the_last_one<mutex>(*this);
}
CROWD_TEST("mutex: stress, the last one to hold a quick one destroys it") {
    destroyed_by_the_last_one<mutex>(*this, true);
}
CROWD_TEST("fair_mutex: stress, the last one to hold it destroys it") {
    destroyed_by_the_last_one<fair_mutex>(*this);
}
