// debug_test.cpp - the lock under which nothing may suspend, and circles of those who wait.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/sync/debug.hpp>

#include <mutex>
#include <shared_mutex>
#include <string>

#include <weft/fiber/cancel.hpp>
#include <weft/fiber/suspend_hook.hpp>
#include <weft/sync/fair_mutex.hpp>
#include <weft/sync/mutex.hpp>
#include <weft/sync/semaphore.hpp>
#include <weft/sync/shared_mutex.hpp>

#include "crowd.hpp"

using namespace weft;
using namespace std::chrono_literals;

#if defined(WEFT_CHECKS) && WEFT_CHECKS

MATRIX_TEST("debug: suspending under a no_suspend_mutex aborts and names it") {
    debug::no_suspend_mutex<std::mutex> m("the cache");
    debug::no_suspend_mutex<std::mutex> n("the index");
    const auto misuse = [&] {
        spawn([&] {
            const std::lock_guard lock(m);
            yield();
        });
        s.run();
    };
    EXPECT_DEATH(misuse(), "no_suspend: something inside suspends.*the cache");
    spawn([&] {
        m.lock();
        CHECK(n.try_lock());
        m.unlock();  // not in reverse order
        n.unlock();
        yield();
    });
    run();
    const std::lock_guard in_a_thread(m);
}

MATRIX_TEST("debug: under the second of two no_suspend_mutexes it still aborts") {
    debug::no_suspend_mutex<std::mutex> m("the cache");
    debug::no_suspend_mutex<std::mutex> n("the index");
    const auto misuse = [&] {
        spawn([&] {
            m.lock();
            n.lock();
            m.unlock();
            sleep_for(1s);
        });
        s.run();
    };
    EXPECT_DEATH(misuse(), "no_suspend: something inside suspends.*the index");
}

MATRIX_TEST("debug: two mutexes locked in opposite orders are reported as a deadlock") {
    const auto misuse = [this] {
        mutex a;
        fair_mutex b;
        spawn({.name = "first"}, [&] {
            const std::lock_guard one(a);
            yield();
            const std::lock_guard two(b);
        });
        spawn({.name = "second"}, [&] {
            const std::lock_guard one(b);
            yield();
            const std::lock_guard two(a);
        });
        s.run();
    };
    EXPECT_DEATH(misuse(),
                 "deadlock: these wait for each other\n"
                 ".*fiber second waits for mutex .*\n"
                 ".*fiber first waits for fair_mutex ");
}

MATRIX_TEST("debug: a circle through one that reads under a shared_mutex is reported") {
    const auto misuse = [this] {
        shared_mutex a;
        mutex b;
        spawn({.name = "reader"}, [&] {
            const std::shared_lock one(a);
            yield();
            const std::lock_guard two(b);
        });
        spawn({.name = "writer"}, [&] {
            const std::lock_guard one(b);
            yield();
            const std::lock_guard two(a);
        });
        s.run();
    };
    EXPECT_DEATH(misuse(),
                 "deadlock: these wait for each other\n"
                 ".*fiber writer waits to write under shared_mutex .*\n"
                 ".*fiber reader waits for mutex ");
}

MATRIX_TEST("debug: one that has read under a shared_mutex is not waited for any more") {
    shared_mutex a;
    mutex b;
    std::string log;
    b.lock();
    spawn({.name = "reader"}, [&] {
        a.lock_shared();
        a.unlock_shared();
        const std::lock_guard two(b);
        log += 'r';
    });
    run_until_blocked();
    a.lock_shared();  // by this thread
    spawn({.name = "writer"}, [&] {
        const std::lock_guard one(a);
        log += 'w';
    });
    run_until_blocked();
    a.unlock_shared();
    b.unlock();
    run();
    CHECK(log.size() == 2);
}

MATRIX_TEST("debug: a fiber joined by the holder of a lock that it wants is reported") {
    mutex m;
    testing::internal::CaptureStderr();
    std::string log;
    fiber outer(s, options({.name = "outer"}), [&] {
        const std::lock_guard lock(m);
        fiber inner(options({.name = "inner"}), [&] {
            const std::lock_guard mine(m);
            log += 'i';
        });
        yield();
        try {
            inner.join();
        } catch (const cancelled&) { log += 'c'; }
        inner.detach();
    });
    run_until_blocked();
    outer.request_stop();  // the circle can be left, so it has not aborted
    run();
    CHECK(log == "ci");
    outer.detach();
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_NE(said.find("deadlock: these wait for each other"), said.npos) << said;
    EXPECT_NE(said.find("fiber inner waits for mutex"), said.npos) << said;
    EXPECT_NE(said.find("fiber outer joins fiber"), said.npos) << said;
}

namespace {

// Locks a mutex for a moment whenever its fiber is about to suspend.
class locks_first final : public suspend_hook {
public:
    explicit locks_first(mutex& m) : m_(m) {}
    void suspend() override {
        m_.lock();
        m_.unlock();
        suspend_hook::suspend();
    }

private:
    mutex& m_;
};

}  // namespace

MATRIX_TEST("debug: a fiber whose hook has waited does not wait for that any more") {
    mutex a;
    mutex wanted;
    mutex in_hook;
    locks_first hook(in_hook);
    binary_semaphore first(0);
    binary_semaphore second(0);
    std::string log;
    spawn({.name = "holder"}, [&] {
        wanted.lock();
        in_hook.lock();
        first.acquire();
        in_hook.unlock();
        second.acquire();
        wanted.unlock();
    });
    spawn({.name = "hooked"}, [&] {
        a.lock();
        this_fiber::set_suspend_hook(&hook);
        wanted.lock();
        this_fiber::set_suspend_hook(nullptr);
        wanted.unlock();
        a.unlock();
        log += 'h';
    });
    run_until_blocked();  // it waits in its hook
    first.release();
    run_until_blocked();  // it waits for what it wanted
    spawn({.name = "third"}, [&] {
        const std::lock_guard one(in_hook);
        const std::lock_guard two(a);
        log += 't';
    });
    run_until_blocked();  // that was said to be a circle
    second.release();
    run();
    CHECK(log == "ht");
}

MATRIX_TEST("debug: a circle through a wait in a hook is reported") {
    const auto misuse = [this] {
        mutex a;
        mutex wanted;
        mutex in_hook;
        locks_first hook(in_hook);
        spawn({.name = "holder"}, [&] {
            wanted.lock();
            static_cast<void>(sleep_for(1h));
        });
        spawn({.name = "other"}, [&] {
            in_hook.lock();
            yield();
            a.lock();
        });
        spawn({.name = "hooked"}, [&] {
            a.lock();
            this_fiber::set_suspend_hook(&hook);
            wanted.lock();
        });
        s.run();
    };
    EXPECT_DEATH(misuse(),
                 "deadlock: these wait for each other\n"
                 ".*fiber other waits for mutex .*\n"
                 ".*fiber hooked waits for mutex ");
}

CROWD_TEST("debug: stress, waits in one order are no circle") {
    const long count = rounds(50'000);
    mutex locks[4];
    crowd(6, [&](int i) {
        for (long j = 0; j < count; ++j) {
            const auto first = static_cast<std::size_t>((i + j) % 3);
            const std::lock_guard one(locks[first]);
            if (j % 4 == 0) weft_test::yield_or_pass();
            const std::lock_guard two(locks[first + 1]);
            if (j % 4 == 0) weft_test::yield_or_pass();
        }
    });
}

#endif
