// ending_test.cpp - fibers that are started while their executor is being destroyed.
//
// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <system_error>
#include <thread>

#include <weft/base/errc.hpp>
#include <weft/exec/post.hpp>

#include "loops.hpp"
#include "pools.hpp"

using namespace weft;
using namespace std::chrono_literals;

namespace {

/// What a fiber saw that was started while its executor ended.
struct newcomer {
    std::atomic<int> ran = 0;
    std::atomic<int> waited = 0;  // and no cancellation ended it

    auto body() {
        return [this] {
            ++ran;
            if (park()) ++waited;
        };
    }
};

}  // namespace

WEFT_TEST("loop: a fiber that is the first of a loop that ends is cancelled already") {
    newcomer seen;
    {
        loop s({.external_wakes = false});
        post(s, [&] { go(seen.body()); });
    }
    CHECK(seen.ran == 1);
    CHECK(seen.waited == 0);
}

WEFT_TEST("loop: while it ends, a posted callable and a suspend callback start fibers") {
    newcomer seen;
    {
        loop s({.external_wakes = false});
        go(s, [&] {
            static_cast<void>(park());
            post(s, [&] { go(seen.body()); });
            suspend([&seen](runnable* r) noexcept {
                go(seen.body());
                return r;
            });
        });
        s.run_until_blocked();
    }
    CHECK(seen.ran == 2);
    CHECK(seen.waited == 0);
}

WEFT_TEST(
    "loop: while it ends, no other thread starts fibers, whether there have been some or not") {
    for (const bool inhabited : {false, true}) {
        std::error_code refused;
        const auto start_outside = [&refused](loop& s) {
            std::thread([&] {
                try {
                    go(s, [] {});
                } catch (const std::system_error& error) { refused = error.code(); }
            }).join();
        };
        {
            loop s;
            if (inhabited) go(s, [] {});
            s.run();
            post(s, [&] { start_outside(s); });
        }
        CHECK(refused == errc::shutdown);
    }
}

POOL_TEST("pool: while it ends, a posted callable and a suspend callback start fibers") {
    newcomer seen;
    spawn([&] {
        static_cast<void>(park());
        post(p, [&] { go(p, options(), seen.body()); });
        suspend([this, &seen](runnable* r) noexcept {
            go(p, options(), seen.body());
            return r;
        });
    });
    CHECK(!p.shutdown(60s));
    CHECK(seen.ran == 2);
    CHECK(seen.waited == 0);
}

POOL_TEST("pool: while it ends, a loop that one of its fibers runs starts fibers on it") {
    struct {
        newcomer seen;
        loop inner;
    } all;
    spawn([&] {
        static_cast<void>(park());
        go(all.inner, [&] { go(p, options(), all.seen.body()); });
        all.inner.run();
    });
    CHECK(!p.shutdown(60s));
    CHECK(all.seen.ran == 1);
    CHECK(all.seen.waited == 0);
}
