// executor_test.cpp - fiber_local, loops inside fibers, moving, a user's executor, late ends.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/fiber/fiber.hpp>

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <weft/exec/pool.hpp>
#include <weft/fiber/cancel.hpp>
#include <weft/fiber/dump.hpp>
#include <weft/fiber/fiber_local.hpp>

#include "late_support.hpp"
#include "loops.hpp"
#include "thread_now.hpp"

using namespace weft;
using namespace std::chrono_literals;
using weft_test::thread_now;

// --- locals

MATRIX_TEST("fiber_local: each fiber has its own, destroyed at its end, the last made first") {
    static std::string log;
    log.clear();
    struct tells {
        int number = 0;
        ~tells() { log += std::to_string(number); }
    };
    fiber_local<tells> first;
    fiber_local<tells> second;
    for (int i = 0; i < 2; ++i)
        spawn([&, i] {
            CHECK(first->number == 0);
            first->number = 10 * i + 1;
            yield();
            second->number = 10 * i + 2;
            CHECK(first->number == 10 * i + 1);
        });
    run();
    CHECK(log == "211211");
}

WEFT_TEST("fiber_local misuse: outside a fiber it aborts") {
    fiber_local<int> local;
    EXPECT_DEATH(static_cast<void>(*local), "fiber_local: used outside any fiber");
}

// --- loops in fibers of loops, and moving between executors

WEFT_TEST("loop: run inside a fiber of another lets that one's other fibers run") {
    std::string log;
    loop outer;
    fiber_handle parked;
    go(outer, [&] {
        loop inner;
        go(inner, [&] {
            parked = this_fiber::handle();
            log += 'a';
            park();
            log += 'd';
        });
        inner.run();
        log += 'e';
    });
    go(outer, [&] {
        log += 'b';
        yield();
        log += 'c';
        unpark(parked);
    });
    outer.run();
    CHECK(log == "abcde");
}

WEFT_TEST("loop: a fiber of an inner loop posts to the outer one") {
    std::string log;
    loop outer;
    go(outer, [&] {
        loop inner({.external_wakes = false});
        go(inner, [&] {
            go(outer, [&] { log += 'o'; });
            log += 'i';
        });
        inner.run();
    });
    outer.run();
    CHECK(log == "io");
}

WEFT_TEST("on: runs a function on another executor and comes back, in stress between two threads") {
    const long rounds = weft_test::stress_count(100'000);
    loop here;
    loop there;
    there.add_work(1);
    std::thread runs([&] { there.run(); });
    const auto main_thread = thread_now();
    long right = 0;
    go(here, [&] {
        for (long i = 0; i < rounds; ++i) {
            const bool elsewhere = on(there, [&] { return thread_now() != main_thread; });
            if (elsewhere && thread_now() == main_thread) ++right;
        }
    });
    here.run();
    there.add_work(-1);
    runs.join();
    CHECK(right == rounds);
}

WEFT_TEST("switch_to: an exception in flight goes along, also to another thread") {
    loop here;
    loop there;
    there.add_work(1);
    std::thread runs([&] { there.run(); });
    int caught = 0;
    here.add_work(1);  // it comes back
    go(here, [&] {
        try {
            throw 5;
        } catch (int) {
            switch_to(there);
            try {
                throw;
            } catch (int i) { caught = i; }
            switch_to(here);
            here.add_work(-1);
        }
    });
    here.run();
    there.add_work(-1);
    runs.join();
    CHECK(caught == 5);
}

WEFT_TEST("switch_to misuse: outside a fiber it aborts by name, and so does on") {
    loop s;
    EXPECT_DEATH(switch_to(s), "switch_to: called outside any fiber");
    EXPECT_DEATH(on(s, [] {}), "called outside any fiber");
}

WEFT_TEST("loop misuse: run by two threads at once it aborts") {
    weft_test::allow_threads_in_death_tests();
    const auto misuse = [] {
        loop s;
        go(s, [&] { std::thread([&] { s.run(); }).join(); });
        s.run();
    };
    EXPECT_DEATH(misuse(), "loop: run by two threads at once");
}

WEFT_TEST("loop misuse: destroyed from inside itself it aborts") {
    const auto misuse = [] {
        auto s = std::make_unique<loop>();
        go(*s, [&] { s.reset(); });
        s->run();
    };
    EXPECT_DEATH(misuse(), "loop: destroyed from inside itself");
}

namespace {

// An executor with post and defer and nothing else, run by hand.
class plain_executor final : public executor {
public:
    void post(runnable* r) override {
        const std::lock_guard lock(mutex_);
        queue_.push_back(r);
    }
    void defer(runnable* r) override { post(r); }
    void run_all() {
        while (runnable* r = take()) do
                r = r->run();
            while (r != nullptr);
    }

private:
    runnable* take() {
        const std::lock_guard lock(mutex_);
        if (queue_.empty()) return nullptr;
        runnable* const r = queue_.front();
        queue_.pop_front();
        return r;
    }
    std::mutex mutex_;
    std::deque<runnable*> queue_;
};

}  // namespace

WEFT_TEST("executor: a user's own runs fibers that yield, park, join and are stopped") {
    for (const stack_kind kind : {stack_kind::own, stack_kind::ucontext, stack_kind::thread}) {
        plain_executor e;
        std::string log;
        fiber_handle parked;
        fiber child(e, {.kind = kind}, [&] {
            parked = this_fiber::handle();
            log += 'a';
            park();
            log += 'c';
            log += park() ? 'p' : 's';
        });
        go(e, {.kind = kind}, [&] {
            yield();
            log += 'b';
            unpark(parked);
            yield();
            child.request_stop();
            child.join();
            log += 'j';
        });
        e.run_all();
        CHECK(log == "abcsj");
    }
}

// --- destroyed while somebody takes his time

namespace {

// Ends when the list was read, whoever asked it to stop before.
void ends_late(executor& where, weft_test::late_list& list, std::thread& helper,
               std::string& listed) {
    go(where, {.name = "slow"}, [&] {
        suspend([&](runnable* me) noexcept -> runnable* {
            helper = std::thread([&, me] {
                listed = list.wait_for("fiber slow: ");
                where.post(me);
            });
            return nullptr;
        });
    });
}

}  // namespace

WEFT_TEST("loop: destroyed while somebody does not end, it lists him and goes on waiting") {
    weft_test::late_list list;
    std::thread helper;
    std::string listed;
    {
        loop s;
        ends_late(s, list, helper, listed);
    }
    helper.join();
    CHECK(listed.starts_with("weft: loop: destroyed, and after 0.001 s these have not ended:\n"));
}

WEFT_TEST("loop: destroyed while somebody only yields, it lists him, too") {
    weft_test::late_list list;
    std::atomic<bool> read = false;
    std::thread helper([&] {
        list.wait_for("fiber busy: ");
        read = true;
    });
    {
        loop s({.external_wakes = false});
        go(s, {.name = "busy"}, [&] {
            while (!read) yield();
        });
    }
    helper.join();
}

WEFT_TEST("pool: destroyed while somebody does not end, it lists him and goes on waiting") {
    weft_test::late_list list;
    std::thread helper;
    std::string listed;
    {
        pool p({.workers = 2});
        ends_late(p, list, helper, listed);
    }
    helper.join();
    CHECK(listed.starts_with("weft: pool: destroyed, and after 0.001 s these have not ended:\n"));
}
