// executor_test.cpp - fibers on executors of a user's own.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/fiber/fiber.hpp>

#include <atomic>
#include <deque>
#include <mutex>
#include <string>
#include <thread>

#include <weft/exec/loop.hpp>
#include <weft/fiber/cancel.hpp>

#include "passing_on.hpp"
#include "weft_test.hpp"

using namespace weft;
using namespace std::chrono_literals;

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
