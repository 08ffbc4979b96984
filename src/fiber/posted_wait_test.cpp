// posted_wait_test.cpp - what waits on an executor's thread outside any fiber aborts, by its name.
//
// SPDX-License-Identifier: Apache-2.0
#include <thread>

#include <weft/exec/pool.hpp>
#include <weft/exec/post.hpp>

#include "loops.hpp"

using namespace weft;
using namespace std::chrono_literals;

WEFT_TEST("wait misuse: in a callable posted to a loop it aborts, and says what it was to be") {
    const auto post_and_run = [](auto callable) {
        loop s;
        fiber parked(s, [] { static_cast<void>(park()); });
        post(s, [&] { callable(parked); });
        s.run();
    };
    EXPECT_DEATH(post_and_run([](fiber& parked) { parked.join(); }),
                 "outside any fiber.*joins a fiber");
    EXPECT_DEATH(post_and_run([](fiber& parked) { const fiber gone(std::move(parked)); }),
                 "outside any fiber.*joins a fiber in its destructor");
    EXPECT_DEATH(post_and_run([](fiber&) { static_cast<void>(sleep_for(1ms)); }),
                 "outside any fiber.*sleeps");
}

WEFT_TEST("wait misuse: in a callable posted to a pool, or in one of suspend, it aborts") {
    weft_test::allow_threads_in_death_tests();
    EXPECT_DEATH(
        {
            pool p({.workers = 2});
            post(p, [] { static_cast<void>(sleep_for(1ms)); });
            p.drain();
        },
        "outside any fiber.*sleeps");
    EXPECT_DEATH(
        {
            loop s;
            go(s, [] {
                suspend([](runnable* r) noexcept {
                    static_cast<void>(sleep_for(1ms));
                    return r;
                });
            });
            s.run();
        },
        "outside any fiber.*sleeps");
}

WEFT_TEST("wait: in a posted callable one that need not wait is as good as anywhere") {
    loop s({.external_wakes = false});
    fiber ended(s, [] {});
    post(s, [&] {
        ended.join();
        CHECK(sleep_for(0s));
    });
    CHECK(!s.run());
    CHECK(!ended.joinable());
}
