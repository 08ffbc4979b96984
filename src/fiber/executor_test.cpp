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
#include "passing_on.hpp"
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

namespace {

// A loop that others may post to, inside a fiber of one that nobody may post to.
struct nested {
    explicit nested(weft_test::loop_fixture& test) : outer(test) {}

    weft_test::loop_fixture& outer;
    std::unique_ptr<loop> inner = std::make_unique<loop>();
    std::string log;
    fiber_handle parked;

    void run_inner_in_fiber() {
        outer.spawn([this] {
            go(*inner, [this] {
                parked = this_fiber::handle();
                log += 'i';
                static_cast<void>(park());
                log += 'I';
            });
            CHECK(!inner->run());
            log += 'e';
        });
    }
};

}  // namespace

MATRIX_TEST("loop: an open one that is idle in a fiber of a closed one lets the others run") {
    nested both(*this);
    both.run_inner_in_fiber();
    spawn([&both] {
        both.log += 'o';
        yield();
        both.log += 'O';
        unpark(both.parked);
    });
    run();
    CHECK(both.log == "ioOIe");
}

MATRIX_TEST("loop: a step of the closed one does not wait for the open one inside") {
    nested both(*this);
    both.run_inner_in_fiber();
    CHECK(run_until_blocked() == 1);
    CHECK(!s.step());
    unpark(both.parked);
    run_until_blocked();
    CHECK(both.log == "iIe");
}

MATRIX_TEST("loop: another thread wakes the open one inside, and the closed one does not end") {
    nested both(*this);
    both.run_inner_in_fiber();
    run_until_blocked();
    std::thread other([&both] { unpark(both.parked); });
    run();
    other.join();
    CHECK(both.log == "iIe");
}

MATRIX_TEST("loop: another thread wakes an open one two closed ones deep") {
    nested both(*this);
    loop middle({.external_wakes = false});
    go(middle, [&both] {
        go(*both.inner, [&both] {
            both.parked = this_fiber::handle();
            static_cast<void>(park());
            both.log += 'i';
        });
        both.inner->run();
        both.log += 'm';
    });
    spawn([&middle] { CHECK(!middle.run()); });
    run_until_blocked();
    std::thread other([&both] { unpark(both.parked); });
    run();
    other.join();
    CHECK(both.log == "im");
}

MATRIX_TEST("loop: inside a fiber of one whose clock stands still another's time passes") {
    nested both(*this);
    spawn([&both] {
        go(*both.inner, [&both] {
            for (auto some = 1ms; both.log.empty(); some *= 2) sleep_for(some);
            both.log += 'i';
        });
        both.inner->run();
        both.log += 'e';
    });
    spawn([&both] { both.log += 'o'; });
    run();
    CHECK(both.log == "oie");
}

MATRIX_TEST("loop: many open ones in fibers of a closed one, woken by a thread in stress") {
    constexpr int count = 5;
    const long rounds = weft_test::stress_count(kind == stack_kind::thread ? 5'000 : 20'000);
    struct one {
        loop inner;
        std::atomic<bool> parks = false;
        fiber_handle parked;
        long woken = 0;
    };
    std::vector<std::unique_ptr<one>> all;
    for (int i = 0; i < count; ++i) {
        one& mine = *all.emplace_back(std::make_unique<one>());
        spawn([&mine, rounds] {
            go(mine.inner, [&mine, rounds] {
                mine.parked = this_fiber::handle();
                mine.parks = true;
                for (; mine.woken < rounds; ++mine.woken) CHECK(park());
            });
            mine.inner.run();
        });
    }
    std::thread other([&all, rounds] {
        for (const auto& mine : all)
            while (!mine->parks) std::this_thread::yield();
        for (long round = 0; round < 2 * rounds; ++round)
            for (const auto& mine : all) {
                unpark(mine->parked);
                if (round % 16 == 0) std::this_thread::yield();
            }
    });
    s.run_until_blocked();
    other.join();
    for (const auto& mine : all)
        while (mine->woken < rounds) {
            unpark(mine->parked);
            s.run_until_blocked();
        }
    run();
}

MATRIX_TEST("pool: drained in a fiber of a closed loop it lets the others run") {
    std::string log;
    const auto p = std::make_unique<pool>(pool_options{.workers = 1});
    std::atomic<bool> may_end = false;
    go(*p, [&may_end] {
        while (!may_end) std::this_thread::yield();
    });
    spawn([&log, &p] {
        p->drain();
        log += 'd';
    });
    spawn([&log, &may_end] {
        log += 'o';
        may_end = true;
    });
    run();
    CHECK(log == "od");
}

WEFT_TEST("loop misuse: with an open one idle inside, starting a fiber on a closed one aborts") {
    weft_test::allow_threads_in_death_tests();
    const auto misuse = [] {
        loop inner;
        loop outer({.external_wakes = false});
        inner.add_work(1);
        go(outer, [&] { inner.run(); });
        go(outer, [&] { std::thread([&] { go(outer, [] {}); }).join(); });
        outer.run();
    };
    EXPECT_DEATH(misuse(), "posted to from another thread, and external_wakes is false");
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
    EXPECT_DEATH(on(s, [] {}), "called outside any fiber ..on");
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
class plain_executor : public executor {
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

WEFT_TEST("executor: on a user's own a loop that is idle lets the fiber wait in which it runs") {
    for (const stack_kind kind : {stack_kind::own, stack_kind::ucontext, stack_kind::thread}) {
        plain_executor e;
        loop inner;
        std::string log;
        fiber_handle parked;
        bool ended = false;
        go(e, {.kind = kind}, [&] {
            go(inner, [&] {
                parked = this_fiber::handle();
                park();
                log += 'i';
                for (auto some = 1ms; log.back() != '|'; some *= 2) sleep_for(some);
                log += 'I';
            });
            inner.run();
            ended = true;
        });
        go(e, {.kind = kind}, [&] {
            log += 'o';
            unpark(parked);
        });
        e.run_all();
        log += '|';
        while (!ended) {
            e.run_all();
            std::this_thread::yield();
        }
        CHECK(log == "oi|I");
    }
}

WEFT_TEST("executor: on a user's own on a loop whose clock stands still another's time passes") {
    for (const stack_kind kind : {stack_kind::own, stack_kind::ucontext, stack_kind::thread}) {
        manual_clock clock;
        loop outer({.clock = &clock});
        weft_test::passing_on e(outer);
        loop inner;
        std::string log;
        go(e, {.kind = kind}, [&] {
            go(inner, [&] {
                sleep_for(1ms);
                log += 'i';
            });
            inner.run();
            log += 'e';
        });
        outer.run();
        CHECK(log == "ie");
    }
}

WEFT_TEST("executor: on one in a fiber of another on a closed loop an idle loop keeps the thread") {
    struct in_a_fiber final : plain_executor {
        void post(runnable* r) override {
            plain_executor::post(r);
            if (host) unpark(host);
        }
        fiber_handle host;
    };
    loop closed({.external_wakes = false});
    weft_test::passing_on between(closed);
    in_a_fiber e;
    std::atomic<bool> parks = false;
    fiber_handle parked;
    bool ended = false;
    go(between, [&] {
        e.host = this_fiber::handle();
        while (!ended) {
            e.run_all();
            if (!ended) park();
        }
    });
    go(e, [&] {
        loop inner;
        go(inner, [&] {
            parked = this_fiber::handle();
            parks = true;
            park();
        });
        inner.run();
        ended = true;
    });
    std::thread other([&] {
        while (!parks) std::this_thread::yield();
        unpark(parked);
    });
    CHECK(!closed.run());
    other.join();
    CHECK(ended);
}

WEFT_TEST("executor: a post() of a user's own that blocks keeps no other from arming a deadline") {
    struct held final : plain_executor {
        void post(runnable* r) override {
            if (std::this_thread::get_id() != first) {
                entered = true;
                while (!may_go_on) std::this_thread::yield();
            }
            plain_executor::post(r);
        }
        const std::thread::id first = std::this_thread::get_id();
        std::atomic<bool> entered = false;
        std::atomic<bool> may_go_on = false;
    };
    held e;
    bool ended = false;
    go(e, [&] {
        loop inner;
        go(inner, [&e] {
            for (auto some = 1ms; !e.entered; some *= 2) sleep_for(some);
        });
        inner.run();
        ended = true;
    });
    e.run_all();
    while (!e.entered) std::this_thread::yield();
    plain_executor other;
    fiber_handle parked;
    bool unparked = false;
    go(other, [&] {
        parked = this_fiber::handle();
        unparked = park_until(steady_clock_source().now() + 1h).has_value();
    });
    other.run_all();
    unpark(parked);
    other.run_all();
    CHECK(unparked);
    e.may_go_on = true;
    while (!ended) {
        e.run_all();
        std::this_thread::yield();
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
