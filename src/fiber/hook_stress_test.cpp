// hook_stress_test.cpp - waits through hooks on a pool, ended by events, deadlines and cancellation
// at once.
//
// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <deque>
#include <memory>
#include <thread>

#include <weft/fiber/cancel.hpp>
#include <weft/fiber/suspend_hook.hpp>

#include "pools.hpp"
#include "test_points.hpp"

using namespace weft;
using namespace std::chrono_literals;

namespace {

// What wakers post is its wrapper; on each way it lets others run.
class wrapping_hook final : public suspend_hook {
public:
    void suspend() override {
        yield();
        suspend_hook::suspend();
        yield();
    }
    runnable* suspended(runnable* r) noexcept override {
        around_.wrapped = r;
        around_.bound_to = r->bound_to;
        return suspend_hook::suspended(&around_);
    }

    [[nodiscard]] long ran() const noexcept { return around_.ran; }

private:
    struct wrapper final : runnable {
        runnable* run() noexcept override {
            ++ran;
            return wrapped;
        }
        runnable* wrapped = nullptr;
        long ran = 0;
    } around_;
};

struct waiting_one {
    wrapping_hook hook;
    fiber_handle handle;
    std::atomic<cancel_scope*> scope = nullptr;
    std::atomic<bool> is_held = false;  // the scope, by who leaves it or by who cancels it
    long events = 0;
    long timeouts = 0;
    long cancellations = 0;
};

struct hold {
    explicit hold(waiting_one& one) : held(one.is_held) {
        while (held.exchange(true)) yield();
    }
    ~hold() { held = false; }
    std::atomic<bool>& held;
};

}  // namespace

POOL_TEST("hooks: stress, each wait through one ends once, by event, deadline or cancellation") {
    const weft_test::with_test_points here;
    const long rounds = weft_test::stress_count(20'000);
    struct {
        std::deque<waiting_one> ones{4};
        std::atomic<int> ready = 0;
        std::atomic<int> left = 0;
    } all;
    all.left = static_cast<int>(all.ones.size());
    for (waiting_one& mine : all.ones)
        spawn([&all, &mine, rounds] {
            mine.handle = this_fiber::handle();
            this_fiber::set_suspend_hook(&mine.hook);
            ++all.ready;
            for (long i = 0; i < rounds; ++i) {
                auto scope = std::make_unique<cancel_scope>();
                mine.scope = scope.get();
                const auto parked = park_until(steady_clock_source().now() + 20us);
                if (parked)
                    ++mine.events;
                else
                    ++(parked.error() == std::errc::timed_out ? mine.timeouts : mine.cancellations);
                const hold held(mine);
                mine.scope = nullptr;
                scope.reset();
            }
            --all.left;
        });
    while (all.ready != static_cast<int>(all.ones.size())) std::this_thread::yield();
    spawn([&] {
        while (all.left != 0) {
            for (waiting_one& one : all.ones) unpark(one.handle);
            yield();
        }
    });
    spawn([&] {
        while (all.left != 0) {
            for (waiting_one& one : all.ones) {
                const hold held(one);
                if (cancel_scope* const scope = one.scope) scope->cancel();
            }
            yield();
        }
    });
    p.drain();
    for (const waiting_one& one : all.ones) {
        CHECK(one.events + one.timeouts + one.cancellations == rounds);
        CHECK(one.hook.ran() > 0);
    }
}
