// suspend_test.cpp - the callback of suspend(): its life, and what it must not do.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/fiber/suspend.hpp>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <thread>
#include <utility>

#include <weft/exec/post.hpp>
#include <weft/fiber/suspend_hook.hpp>

#include "loops.hpp"
#include "pools.hpp"

using namespace weft;

namespace {

// Counts those that hold something: one that was moved from holds nothing.
class counted {
public:
    static inline std::atomic<int> alive = 0;
    static inline std::atomic<int> objects = 0;

    counted() { ++alive, ++objects; }
    counted(counted&& other) noexcept : holds_(std::exchange(other.holds_, false)) { ++objects; }
    counted& operator=(counted&&) = delete;
    ~counted() {
        if (holds_) --alive;
        --objects;
    }

private:
    bool holds_ = true;
};

}  // namespace

MATRIX_TEST("suspend: a callback with a destructor is destroyed once, before the fiber goes on") {
    counted::alive = counted::objects = 0;
    static runnable* parked;
    parked = nullptr;
    static bool went_on;
    went_on = false;
    spawn([] {
        suspend([mine = counted()](runnable* r) noexcept -> runnable* {
            parked = r;
            return nullptr;
        });
        went_on = true;
    });
    run_until_blocked();
    REQUIRE(parked != nullptr);
    CHECK(!went_on);
    CHECK(counted::alive == 0);
    s.post(parked);
    run();
    CHECK(went_on);
    CHECK(counted::alive == 0);
    CHECK(counted::objects == 0);
}

MATRIX_TEST("suspend: a callback that gives the fiber back at once is destroyed, too") {
    counted::alive = counted::objects = 0;
    spawn([] {
        for (int i = 0; i < 3; ++i) suspend([mine = counted()](runnable* r) noexcept { return r; });
    });
    run();
    CHECK(counted::alive == 0);
    CHECK(counted::objects == 0);
}

MATRIX_TEST("suspend: a callback with a destructor goes through hooks") {
    counted::alive = counted::objects = 0;
    static suspend_hook hook;
    spawn([] {
        this_fiber::set_suspend_hook(&hook);
        suspend([mine = counted()](runnable* r) noexcept { return r; });
        this_fiber::set_suspend_hook(nullptr);
    });
    run();
    CHECK(counted::alive == 0);
    CHECK(counted::objects == 0);
}

MATRIX_TEST("suspend: a callback is destroyed when a hook throws before the fiber leaves") {
    counted::alive = counted::objects = 0;
    static struct refuses : suspend_hook {
        void suspend() override { throw std::runtime_error("no"); }
    } hook;
    static bool thrown;
    thrown = false;
    spawn([] {
        this_fiber::set_suspend_hook(&hook);
        try {
            suspend([mine = counted()](runnable* r) noexcept { return r; });
        } catch (const std::runtime_error&) { thrown = true; }
        this_fiber::set_suspend_hook(nullptr);
    });
    run();
    CHECK(thrown);
    CHECK(counted::alive == 0);
    CHECK(counted::objects == 0);
}

POOL_TEST("suspend: stress, callbacks with destructors whose fibers go on elsewhere") {
    counted::alive = counted::objects = 0;
    const long rounds = weft_test::stress_count(20'000) / 4;
    for (int i = 0; i < 4; ++i)
        spawn([rounds, this] {
            for (long round = 0; round < rounds; ++round)
                suspend([mine = counted(), held = std::make_unique<long>(round),
                         to = &p](runnable* r) noexcept -> runnable* {
                    to->post(r);
                    return nullptr;
                });
        });
    p.drain();
    while (counted::objects != 0) std::this_thread::yield();  // the last may still be returning
    CHECK(counted::alive == 0);
}

#if defined(WEFT_CHECKS) && WEFT_CHECKS
MATRIX_TEST("suspend misuse: a second resume aborts") {
    const auto twice = [this] {
        static runnable* parked;
        spawn([] {
            suspend([](runnable* r) noexcept -> runnable* {
                parked = r;
                return nullptr;
            });
        });
        run_until_blocked();
        s.post(parked);
        s.post(parked);
    };
    EXPECT_DEATH(twice(), "a runnable is posted that is queued already, or resumed twice");
}

MATRIX_TEST("suspend misuse: a callback that posts its fiber and returns it aborts") {
    const auto twice = [this] {
        static loop* here;
        here = &s;
        spawn([] {
            suspend([](runnable* r) noexcept -> runnable* {
                here->post(r);
                return r;
            });
        });
        run();
    };
    EXPECT_DEATH(twice(), "what the callback returned is posted, too");
}
#endif
