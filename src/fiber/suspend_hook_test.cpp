// suspend_hook_test.cpp - hooks: chains, waiting on the way, wrappers, removal.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/fiber/suspend_hook.hpp>

#include <memory>
#include <string>
#include <vector>

#include <weft/fiber/dump.hpp>

#include "logging_hook.hpp"
#include "loops.hpp"

using namespace weft;
using namespace std::chrono_literals;
using this_fiber::get_suspend_hook;
using this_fiber::set_suspend_hook;
using weft_test::logging_hook;

MATRIX_TEST("hooks: three deep, called down the chain and back, around every kind of wait") {
    std::string log;
    logging_hook a(log, 'a');
    logging_hook b(log, 'b');
    logging_hook c(log, 'c');
    fiber_handle parked;
    spawn([&] {
        parked = this_fiber::handle();
        CHECK(set_suspend_hook(&c) == nullptr);
        CHECK(set_suspend_hook(&b) == &c);
        CHECK(set_suspend_hook(&a) == &b);
        CHECK(get_suspend_hook() == &a);
        log += ' ';
        park();
        log += ' ';
        yield();
        log += ' ';
        sleep_for(1ms);
        log += ' ';
        suspend([](runnable* r) noexcept { return r; });
        log += ' ';
    });
    run_until_blocked();
    unpark(parked);
    run_until_blocked();
    advance(1ms);
    CHECK(log == "<<< abc123CBA abc123CBA abc123CBA abc123CBA >>>");
}

MATRIX_TEST("hooks: a wait that need not wait calls none") {
    std::string log;
    logging_hook a(log, 'a');
    spawn([&] {
        set_suspend_hook(&a);
        unpark(this_fiber::handle());
        park();
        sleep_for(0s);
    });
    run();
    CHECK(log == "<>");
}

MATRIX_TEST("hooks: one that waits itself, before and on the way back") {
    std::string log;
    class waits final : public logging_hook {
    public:
        using logging_hook::logging_hook;
        void suspend() override {
            log_ += '(';
            sleep_for(1ms);  // only the hooks below are called for this
            logging_hook::suspend();
            yield();
            sleep_for(1ms);
            log_ += ')';
        }
    };
    waits a(log, 'a');
    logging_hook b(log, 'b');
    fiber_handle parked;
    bool in_time = true;
    spawn([&] {
        parked = this_fiber::handle();
        set_suspend_hook(&b);
        set_suspend_hook(&a);
        in_time = park_until(clock.now() + 10ms).has_value();
    });
    run_until_blocked();
    CHECK(log == "<<(b2");
    advance(1ms);
    CHECK(log == "<<(b2Bab12");
    advance(9ms);  // the park times out, and the hook's own waits do not change that
    advance(1ms);
    CHECK(log == "<<(b2Bab12BAb2Bb2B)>>");
    CHECK(!in_time);
}

MATRIX_TEST("hooks: a wrapper is what wakers post, for events, deadlines and cancellation") {
    struct wrapper final : runnable {
        runnable* run() noexcept override {
            ++ran;
            return wrapped;
        }
        runnable* wrapped = nullptr;
        int ran = 0;
    } around;
    class wraps final : public suspend_hook {
    public:
        explicit wraps(wrapper& w) : around_(w) {}
        runnable* suspended(runnable* r) noexcept override {
            around_.wrapped = r;
            return suspend_hook::suspended(&around_);
        }

    private:
        wrapper& around_;
    } hook(around);
    fiber f(s, options(), [&] {
        set_suspend_hook(&hook);
        sleep_for(1ms);
        park();
        park();
        set_suspend_hook(nullptr);
        yield();
    });
    run_until_blocked();
    advance(1ms);
    CHECK(around.ran == 1);
    unpark(f.handle());
    run_until_blocked();
    CHECK(around.ran == 2);
    f.request_stop();
    run();
    CHECK(around.ran == 3);
    f.detach();
}

MATRIX_TEST("hooks: one that disables those below it") {
    std::string log;
    class alone final : public logging_hook {
    public:
        using logging_hook::logging_hook;
        void suspend() override {
            suspend_hook* const rest = below();
            set_suspend_hook(nullptr);
            logging_hook::suspend();  // nothing is below it now
            set_suspend_hook(rest);
            set_suspend_hook(this);
        }
    };
    logging_hook b(log, 'b');
    alone a(log, 'a');
    spawn([&] {
        set_suspend_hook(&b);
        set_suspend_hook(&a);
        log += ' ';
        yield();
        log += ' ';
        sleep_for(1ms);
        log += ' ';
    });
    run_until_blocked();
    advance(1ms);
    CHECK(log == "<< >>a1A<< >>a1A<< >>");
}

namespace {

// And those above it.
class removes_itself final : public logging_hook {
public:
    using logging_hook::logging_hook;
    void suspend() override {
        set_suspend_hook(below());
        logging_hook::suspend();
    }
};

}  // namespace

MATRIX_TEST("hooks: one that removes itself before it goes on does so with those below it") {
    std::string log;
    logging_hook c(log, 'c');
    logging_hook b(log, 'b');
    removes_itself a(log, 'a');
    spawn([&] {
        set_suspend_hook(&c);
        set_suspend_hook(&b);
        set_suspend_hook(&a);
        log += ' ';
        yield();
        log += ' ';
        sleep_for(1ms);
        log += ' ';
    });
    run_until_blocked();
    advance(1ms);
    CHECK(log == "<<< >abc123CBA bc23CB >>");
}

MATRIX_TEST("hooks: one that removes those above it and itself goes on with those that are left") {
    std::string log;
    logging_hook c(log, 'c');
    removes_itself b(log, 'b');
    logging_hook a(log, 'a');
    spawn([&] {
        set_suspend_hook(&c);
        set_suspend_hook(&b);
        set_suspend_hook(&a);
        log += ' ';
        yield();
        log += ' ';
        yield();
        log += ' ';
    });
    run();
    CHECK(log == "<<< a>>bc123CBA c3C >");
}

MATRIX_TEST("hooks: one that calls the one below by itself is passed by no less") {
    std::string log;
    class calls_below final : public logging_hook {
    public:
        using logging_hook::logging_hook;
        void suspend() override {
            log_ += name_;
            below()->suspend();
        }
    };
    logging_hook b(log, 'b');
    calls_below a(log, 'a');
    spawn([&] {
        set_suspend_hook(&b);
        set_suspend_hook(&a);
        yield();
        log += ' ';
    });
    run();
    CHECK(log == "<<ab12B >>");
}

MATRIX_TEST("hooks: one removed while the fiber is suspended is not called any more") {
    std::string log;
    class removes_itself final : public logging_hook {
    public:
        using logging_hook::logging_hook;
        void suspend() override {
            logging_hook::suspend();
            set_suspend_hook(below());
        }
    };
    logging_hook b(log, 'b');
    removes_itself a(log, 'a');
    spawn([&] {
        set_suspend_hook(&b);
        set_suspend_hook(&a);
        yield();
        log += ' ';
        yield();
        CHECK(get_suspend_hook() == &b);
    });
    run();
    CHECK(log == "<<ab12BA> b2B>");
}

MATRIX_TEST("hooks: one removes the one above it while the fiber is suspended") {
    std::string log;
    class removes_those_above final : public logging_hook {
    public:
        using logging_hook::logging_hook;
        void suspend() override {
            logging_hook::suspend();
            set_suspend_hook(this);
        }
    };
    removes_those_above b(log, 'b');
    logging_hook a(log, 'a');
    spawn([&] {
        set_suspend_hook(&b);
        set_suspend_hook(&a);
        yield();
        CHECK(get_suspend_hook() == &b);
        log += ' ';
        yield();
        CHECK(get_suspend_hook() == &b);
    });
    run();
    CHECK(log == "<<ab12B>A b2B>");  // what is on its way back goes on
}

namespace {

// On the way back it waits until somebody lets it pass.
class waits_on_the_way_back final : public suspend_hook {
public:
    void suspend() override {
        static constexpr wait_reason reason{"waits on the way back", false};
        suspend_hook::suspend();
        wait(reason, no_deadline, [this](waiter& me) noexcept {
            stopped_ = &me;
            return true;
        });
    }
    void let_pass() {
        CHECK(stopped_->claim());
        stopped_->wake();
    }

private:
    waiter* stopped_ = nullptr;
};

}  // namespace

MATRIX_TEST("hooks: an unpark after a late park does not end what the hook waits for") {
    waits_on_the_way_back hook;
    fiber_handle parked;
    std::string log;
    spawn([&] {
        parked = this_fiber::handle();
        set_suspend_hook(&hook);
        CHECK(park_until(clock.now() + 1ms).error() == std::errc::timed_out);
        log += 'l';
        CHECK(park());  // the permit stayed
        log += 'p';
    });
    run_until_blocked();
    advance(1ms);
    unpark(parked);
    run_until_blocked();
    CHECK(log.empty());
    hook.let_pass();
    run();
    CHECK(log == "lp");
}

MATRIX_TEST("hooks: the end of a fiber does not end what its cancelled joiner's hook waits for") {
    waits_on_the_way_back hook;
    fiber_handle parked;
    std::string log;
    fiber joined(s, options(), [&] {
        parked = this_fiber::handle();
        park();
    });
    fiber joins(s, options(), [&] {
        set_suspend_hook(&hook);
        joined.join();
        log += 'j';
    });
    run_until_blocked();
    joins.request_stop();
    run_until_blocked();
    unpark(parked);
    run_until_blocked();
    CHECK(log.empty());
    hook.let_pass();
    run();
    CHECK(log == "j");
    joins.detach();
}

MATRIX_TEST("hooks: one that waits before it goes on, or throws, is not what reports say instead") {
    std::vector<std::string> said;
    const auto look = [&] {
        for (std::string& line : s.run().waiters) said.push_back(std::move(line));
    };
    class waits_first final : public suspend_hook {
    public:
        void suspend() override {
            if (throws) throw 1;
            static_cast<void>(sleep_for(1ms));
            suspend_hook::suspend();
        }
        bool throws = false;
    } hook;
    fiber_handle parked;
    spawn([&] {
        parked = this_fiber::handle();
        set_suspend_hook(&hook);
        park();
        hook.throws = true;
        EXPECT_THROW(static_cast<void>(park()), int);
        dump([&](std::string_view line) { said.emplace_back(line); });
    });
    run_until_blocked();
    advance(1ms);
    look();
    unpark(parked);
    run();
    REQUIRE(said.size() == 2);
    CHECK(said[0].find(": is parked, started at") != std::string::npos);
    CHECK(said[1].find(": running, started at") != std::string::npos);
}

WEFT_TEST("hooks: one that throws when its fiber is to go elsewhere leaves no work there") {
    loop there({.external_wakes = false});
    loop s({.external_wakes = false});
    struct throwing_once final : suspend_hook {
        void suspend() override {
            if (++calls == 1) throw 1;
            suspend_hook::suspend();
        }
        int calls = 0;
    } hook;
    bool arrived = false;
    go(s, [&] {
        set_suspend_hook(&hook);
        EXPECT_THROW(switch_to(there), int);
        CHECK(&this_fiber::executor() == &s);
        CHECK(there.alive() == 0);
        switch_to(there);
        arrived = true;
    });
    CHECK(!s.run());
    CHECK(!there.run());
    CHECK(arrived);
}

WEFT_TEST("hooks misuse: one that suspends twice at once aborts") {
    class twice final : public suspend_hook {
    public:
        void suspend() override {
            suspend_hook::suspend();
            suspend_hook::suspend();
        }
    } hook;
    const auto misuse = [&] {
        loop s({.external_wakes = false});
        go(s, [&] {
            set_suspend_hook(&hook);
            yield();
        });
        s.run();
    };
    EXPECT_DEATH(misuse(), "suspend_hook::suspend: called");
}

WEFT_TEST("hooks misuse: outside a fiber it aborts by name") {
    EXPECT_DEATH(static_cast<void>(get_suspend_hook()), "called outside any fiber.*get_suspend");
    EXPECT_DEATH(set_suspend_hook(nullptr), "called outside any fiber.*set_suspend_hook");
}

MATRIX_TEST("suspend_hook: one that throws is called again the next time") {
    struct throwing_once final : suspend_hook {
        void suspend() override {
            if (++calls == 1) throw 1;
            suspend_hook::suspend();
        }
        int calls = 0;
    };
    throwing_once hook;
    spawn([&] {
        suspend_hook* const before = set_suspend_hook(&hook);
        EXPECT_THROW(weft::yield(), int);
        weft::yield();
        set_suspend_hook(before);
    });
    run();
    CHECK(hook.calls == 2);
}
