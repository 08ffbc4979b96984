// pool_visibility_test.cpp - what is ready is run by somebody, however long a worker is held, and
// whoever waits for the end of everything waits long enough.
//
// In each, one fiber holds its worker until another has run: the thread itself, without letting
// go. If the other is where nobody looks, the test does not end.
//
// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <cstdlib>
#include <latch>
#include <mutex>
#include <new>
#include <string_view>
#include <thread>

#include <weft/base/errc.hpp>
#include <weft/base/test_point.hpp>
#include <weft/exec/pool.hpp>
#include <weft/exec/post.hpp>
#include <weft/stack/stack_depot.hpp>

#include "pools.hpp"

using namespace weft;
using namespace std::chrono_literals;

namespace {

void hold_until(const std::atomic<bool>& flag) {
    while (!flag) std::this_thread::yield();
}

// In this mode every fiber is sent to one worker, and nothing is taken from that, held or not.
bool all_are_sent() { return std::getenv("WEFT_FORCE_MIGRATE") != nullptr; }

// As many stacks as one.
class one_stack final : public stack_source {
public:
    [[nodiscard]] stack take(std::size_t size) override {
        const std::lock_guard lock(mutex_);
        if (out_) throw std::bad_alloc();
        const stack taken = shared_stacks().take(size);
        out_ = true;
        return taken;
    }
    void give_back(stack taken) noexcept override {
        const std::lock_guard lock(mutex_);
        out_ = false;
        shared_stacks().give_back(taken);
    }

private:
    std::mutex mutex_;
    bool out_ = false;
};

}  // namespace

WEFT_TEST("pool: one that was started is seen when its starter's wait ends at once") {
    pool p({.workers = 2});
    std::atomic<bool> ran = false;
    go(p, [&] {
        go(p, [&] { ran = true; });
        static constexpr wait_reason reason{"waits for what is there"};
        wait(reason, no_deadline, [](waiter&) noexcept { return false; });
        hold_until(ran);
    });
    p.drain();
    CHECK(ran);
}

WEFT_TEST("pool: one that yields to a bound one is seen while that holds the worker") {
    if (all_are_sent()) return;
    pool p({.workers = 2});
    std::atomic<bool> went_on = false;
    std::atomic<bool> started = false;
    for (const unsigned worker : {0U, 1U})  // it is on one of the two
        go(p, {.worker = worker}, [&, worker] {
            started = true;
            if (worker == 0) hold_until(went_on);
        });
    go(p, [&] {
        while (!started) yield();
        yield();
        went_on = true;
    });
    p.drain();
    CHECK(went_on);
}

#if defined(WEFT_CHECKS) && WEFT_CHECKS

namespace {

// A fiber of a pool of two leaves by a yield while the other worker, which searches, finds nothing
// and goes to sleep:
//
//   one worker                               the other
//                                            has searched, and is kept from parking
//   posts, and nobody is told
//   yields: takes what it has posted
//   has left, and is in no queue             parks, looks, sleeps
//   is put into its queue
class yield_beside_sleep {
public:
    explicit yield_beside_sleep(const pool& p) {
        of_ = &p;
        is_armed_ = is_parking_ = has_left_ = false;
        detail::at_test_points = &pass;
    }
    yield_beside_sleep(const yield_beside_sleep&) = delete;
    yield_beside_sleep& operator=(const yield_beside_sleep&) = delete;
    ~yield_beside_sleep() { detail::at_test_points = nullptr; }

    /// By the one of them that will park next.
    static void arm() { is_armed_ = true; }
    [[nodiscard]] static const std::atomic<bool>& is_parking() { return is_parking_; }

private:
    [[nodiscard]] static std::uint64_t parks() {
        return of_->counters(0).parks + of_->counters(1).parks;
    }
    static void pass(const char* name) noexcept {
        if (!is_armed_ || has_left_) return;
        if (std::string_view(name) == "pool: has found nothing, about to park") {
            is_parking_ = true;
            hold_until(has_left_);
        } else if (std::string_view(name) == "fiber: has left, by a yield") {
            const std::uint64_t before = parks();
            has_left_ = true;
            while (parks() == before) std::this_thread::yield();
        }
    }

    inline static const pool* of_ = nullptr;
    inline static std::atomic<bool> is_armed_ = false;
    inline static std::atomic<bool> is_parking_ = false;
    inline static std::atomic<bool> has_left_ = false;
};

}  // namespace

WEFT_TEST("pool: one that yields is seen by a worker that fell asleep while it left") {
    if (all_are_sent()) return;
    pool p({.workers = 2});
    const yield_beside_sleep here(p);
    std::atomic<bool> went_on = false;
    go(p, [&] {
        post(p, [] { yield_beside_sleep::arm(); });
        hold_until(yield_beside_sleep::is_parking());
        post(p, [&] { hold_until(went_on); });
        yield();
        went_on = true;
    });
    p.drain();
}

#endif

WEFT_TEST("pool: two sleepers that are due at once run beside each other") {
    if (all_are_sent()) return;
    pool p({.workers = 2});
    std::atomic<int> awake = 0;
    std::atomic<bool> both = false;
    const time_point when = p.clock().now() + 2ms;
    for (int i = 0; i < 2; ++i)
        go(p, [&] {
            static_cast<void>(sleep_until(when));
            if (++awake == 2) both = true;
            hold_until(both);
        });
    p.drain();
    CHECK(both);
}

WEFT_TEST("pool: one that found no stack and is bound to its worker runs when there is one") {
    one_stack stacks;
    pool p({.workers = 2});
    for (int round = 0; round < 20; ++round) {
        std::latch held(1);
        std::atomic<bool> go_on = false;
        std::atomic<int> ran = 0;
        go(p, {.stacks = &stacks, .worker = 1}, [&] {
            held.count_down();
            hold_until(go_on);
            ++ran;
        });
        held.wait();
        go(p, {.stacks = &stacks, .worker = 0}, [&] { ++ran; });
        while (p.counters(0).parks < 1) std::this_thread::yield();
        go_on = true;
        p.drain();
        CHECK(ran == 2);
    }
}

WEFT_TEST("pool: nobody tries over and over while there is no stack") {
    one_stack stacks;
    pool p({.workers = 2});
    std::atomic<bool> ran = false;
    fiber holder(p, {.stacks = &stacks}, [] { static_cast<void>(park()); });
    go(p, {.stacks = &stacks}, [&] { ran = true; });
    const auto dispatches = [&] { return p.counters(0).dispatches + p.counters(1).dispatches; };
    while (dispatches() < 2) std::this_thread::yield();
    std::this_thread::sleep_for(20ms);  // what must not happen in this time is what is tested
    CHECK(dispatches() < 10);
    unpark(holder.handle());
    holder.join();
    p.drain();
    CHECK(ran);
}

WEFT_TEST("pool: after shutdown go from outside fails, also if there never was a fiber") {
    pool p({.workers = 2});
    CHECK(!p.shutdown(10s));
    try {
        go(p, [] {});
        CHECK(false);
    } catch (const std::system_error& refused) { CHECK(refused.code() == errc::shutdown); }
}

WEFT_TEST("pool: stress: drain does not return while somebody is alive") {
    const long rounds = weft_test::stress_count(200'000);
    pool p({.workers = 2});
    for (long round = 0; round < rounds; ++round) {
        std::atomic<int> ended = 0;
        fiber first(p, [&] {
            static_cast<void>(park());
            go(p, [&] {
                yield();
                ++ended;
            });
            yield();
            ++ended;
        });
        unpark(first.handle());
        first.detach();
        p.drain();
        REQUIRE(ended == 2);
    }
}

// Asked on the worker itself: for others its count is ahead for a moment, while it looks around.
WEFT_TEST("pool: a yield to one that has not started is one dispatch, not two") {
    pool p({.workers = 1});
    constexpr std::uint64_t rounds = 100;
    std::uint64_t counted = 0;
    go(p, [&] {
        const std::uint64_t before = p.counters(0).dispatches;
        for (std::uint64_t i = 0; i < rounds; ++i) {
            go([] {});
            yield();
        }
        counted = p.counters(0).dispatches - before;
    });
    p.drain();
    CHECK(counted == 2 * rounds);  // each round: the new one, and back
}
