// semaphore_test.cpp - counting_semaphore, binary_semaphore.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/sync/semaphore.hpp>

#include <memory>
#include <optional>
#include <string>

#include <weft/fiber/cancel.hpp>
#include <weft/sync/mutex.hpp>

#include "crowd.hpp"

using namespace weft;
using namespace std::chrono_literals;
using weft_test::with_test_points;

MATRIX_TEST("semaphore: permits go to those who wait, in order, and the rest is kept") {
    counting_semaphore<10> permits(1);
    std::string log;
    for (const char name : {'a', 'b', 'c'})
        spawn([&, name] {
            permits.acquire();
            log += name;
        });
    run_until_blocked();
    CHECK(log == "a");
    permits.release(4);
    CHECK(permits.try_acquire());  // of the two that are left
    run();
    CHECK(log == "abc");
    CHECK(permits.try_acquire());
    CHECK(!permits.try_acquire());
    CHECK(permits.max() == 10);
}

MATRIX_TEST("semaphore: a deadline ends it by false, cancellation by throwing") {
    binary_semaphore permit(0);
    std::string log;
    fiber f(s, options(), [&] {
        log += permit.try_acquire_for(5ms) ? '?' : 't';
        log += permit.try_acquire_until(clock.now() + 5ms) ? '?' : 'u';
        try {
            permit.acquire();
        } catch (const cancelled&) { log += 'c'; }
        try {
            static_cast<void>(permit.try_acquire_for(1h));
        } catch (const cancelled&) { log += 'd'; }
        permit.release();
        permit.acquire();  // has happened
        log += 'e';
    });
    run_until_blocked();
    advance(5ms);
    advance(5ms);
    CHECK(log == "tu");
    f.request_stop();
    run();
    CHECK(log == "tucde");
    f.detach();
}

MATRIX_TEST("semaphore: a permit for one that is late goes to the next") {
    binary_semaphore permit(0);
    std::string log;
    spawn([&] { log += permit.try_acquire_for(1ms) ? '?' : 't'; });
    spawn([&] {
        permit.acquire();
        log += 'p';
    });
    run_until_blocked();
    clock.advance(1ms);
    s.step();  // the first is late, and has not run yet
    permit.release();
    run();
    CHECK(log == "tp");
    CHECK(!permit.try_acquire());
}

CROWD_TEST("semaphore: stress, permits are conserved, with deadlines and cancellation") {
    const with_test_points points;
    const long count = rounds(200'000);
    weft_test::scope_slots scopes(6);
    std::atomic<int> left = 5;
    counting_semaphore<> permits(2);
    mutex second;
    std::atomic<int> inside = 0;
    std::atomic<long> had = 0;
    crowd(6, [&](int i) {
        for (; i == 5 && left > 0; weft_test::yield_or_pass()) scopes.cancel_one();
        for (long j = 0; j < count && i != 5; ++j) {
            bool taken = true;
            try {
                if (i % 2 == 0) {
                    taken = permits.try_acquire_for(std::chrono::microseconds(j % 4));
                } else {
                    const auto mine = scopes.enter(i);
                    permits.acquire();
                }
            } catch (const cancelled&) { taken = false; }
            if (taken) {
                if (++inside > 2) ADD_FAILURE() << "more than two are inside";
                if (j % 4 == 0) weft_test::yield_or_pass();
                --inside;
                ++had;
                permits.release();
            } else {
                const std::lock_guard lock(second);  // is not ended by what came too late
            }
        }
        --left;
    });
    CHECK(had > 0);
    CHECK(permits.try_acquire());
    CHECK(permits.try_acquire());
    CHECK(!permits.try_acquire());
}

CROWD_TEST("semaphore: stress, whoever acquires destroys it") {
    const with_test_points points;
    const long count = rounds(500'000);
    std::unique_ptr<binary_semaphore> one;
    std::atomic<binary_semaphore*> now = nullptr;
    std::atomic<bool> end = false;
    crowd(2, [&](int i) {
        if (i == 0) {
            for (long j = 0; j < count; ++j) {
                one = std::make_unique<binary_semaphore>(0);
                now = one.get();
                one->acquire();
                one.reset();
            }
            end = true;
        } else {
            while (!end)
                if (binary_semaphore* const given = now.exchange(nullptr))
                    given->release();
                else
                    weft_test::yield_or_pass();
        }
    });
}

WEFT_TEST("semaphore misuse: aborts by name") {
    binary_semaphore full(1);
    EXPECT_DEATH(full.release(), "semaphore: released above max");
    EXPECT_DEATH(counting_semaphore<2>(3), "semaphore: begins with");
    const auto destroy_while_waiting = [] {
        loop s({.external_wakes = false});
        std::optional<binary_semaphore> one(0);
        go(s, [&] { one->acquire(); });
        s.run_until_blocked();
        one.reset();
    };
    EXPECT_DEATH(destroy_while_waiting(), "semaphore: destroyed while somebody waits");
}
