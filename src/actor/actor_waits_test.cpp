// actor_waits_test.cpp - a context over waits: of every kind, cancelled, late, with hooks.
//
// SPDX-License-Identifier: Apache-2.0
#include <functional>
#include <mutex>
#include <string>

#include <weft/actor/actor_context.hpp>
#include <weft/fiber/suspend_hook.hpp>
#include <weft/sync/channel.hpp>
#include <weft/sync/condition_variable.hpp>
#include <weft/sync/event.hpp>
#include <weft/sync/future.hpp>
#include <weft/sync/latch.hpp>
#include <weft/sync/mutex.hpp>
#include <weft/sync/select.hpp>
#include <weft/sync/semaphore.hpp>
#include <weft/sync/shared_mutex.hpp>
#include <weft/sync/wait_group.hpp>

#include "loops.hpp"

using namespace weft;
using namespace std::chrono_literals;

namespace {

// What fibers wait for; the test makes it happen.
struct world {
    loop* s = nullptr;
    manual_clock* clock = nullptr;
    fiber_handle waits;
    mutex locked;
    shared_mutex shared;
    condition_variable changed;
    bool has_changed = false;
    channel<int> numbers;
    binary_semaphore permit{0};
    latch zero{1};
    wait_group work{1};
    event happened{event_reset::manual};
    promise<int> given;
    future<int> awaited = given.get_future();
    fiber other;
    runnable* suspended = nullptr;
};

struct way {
    const char* name;
    void (*wait)(world&);
    void (*end)(world&);
};

void join_other(world& w) { w.other.join(); }

void wait_for_change(world& w) {
    std::unique_lock lock(w.locked, std::defer_lock);
    lock.lock();
    w.changed.wait(lock, [&] { return w.has_changed; });
}

void suspend_alone(world& w) {
    suspend([&w](runnable* r) noexcept -> runnable* {
        w.suspended = r;
        return nullptr;
    });
}

void pass_by_a_lock(world& w) {
    w.locked.lock();
    w.locked.unlock();
}

void pass_by_a_shared_lock(world& w) {
    w.shared.lock_shared();
    w.shared.unlock_shared();
}

const way ways[] = {
    {"sleep", [](world&) { sleep_for(1ms); }, [](world& w) { w.clock->advance(1ms); }},
    {"park", [](world&) { park(); }, [](world& w) { unpark(w.waits); }},
    {"park, late", [](world& w) { CHECK(!park_until(w.clock->now() + 1ms)); },
     [](world& w) { w.clock->advance(1ms); }},
    {"join", join_other, [](world& w) { w.happened.set(); }},
    {"suspend", suspend_alone, [](world& w) { w.s->post(w.suspended); }},
    {"mutex", pass_by_a_lock, [](world& w) { w.locked.unlock(); }},
    {"shared_mutex", pass_by_a_shared_lock, [](world& w) { w.shared.unlock(); }},
    {"condition_variable", wait_for_change,
     [](world& w) {
         w.has_changed = true;
         w.changed.notify_all();
     }},
    {"channel, receive", [](world& w) { CHECK(w.numbers.receive() == 1); },
     [](world& w) { go(*w.s, [&w] { CHECK(w.numbers.send(1)); }); }},
    {"channel, send", [](world& w) { CHECK(w.numbers.send(1)); },
     [](world& w) { go(*w.s, [&w] { CHECK(w.numbers.receive() == 1); }); }},
    {"select", [](world& w) { static_cast<void>(select(on_receive(w.numbers, [](auto&&) {}))); },
     [](world& w) { w.numbers.close(); }},
    {"semaphore", [](world& w) { w.permit.acquire(); }, [](world& w) { w.permit.release(); }},
    {"semaphore, late", [](world& w) { CHECK(!w.permit.try_acquire_for(1ms)); },
     [](world& w) { w.clock->advance(1ms); }},
    {"latch", [](world& w) { w.zero.wait(); }, [](world& w) { w.zero.count_down(); }},
    {"wait_group", [](world& w) { w.work.wait(); }, [](world& w) { w.work.done(); }},
    {"event", [](world& w) { w.happened.wait(); }, [](world& w) { w.happened.set(); }},
    {"future", [](world& w) { CHECK(w.awaited.get() == 1); },
     [](world& w) { w.given.set_value(1); }},
};

// Who holds what the fiber will wait for. `ended` if it is to be gone.
void prepare(world& w, const way& how, const fiber_options& options) {
    const std::string name = how.name;
    if (name == "mutex") w.locked.lock();
    if (name == "shared_mutex") w.shared.lock();
    if (name == "join") w.other = fiber(*w.s, options, [&w] { w.happened.wait(); });
}

}  // namespace

MATRIX_TEST("actor_context: let go over every kind of wait, and taken again before it goes on") {
    for (const way& how : ways) {
        SCOPED_TRACE(how.name);
        actor_context context;
        world w;
        w.s = &s;
        w.clock = &clock;
        std::string log;
        prepare(w, how, options());
        spawn([&] {
            w.waits = this_fiber::handle();
            const std::lock_guard inside(context);
            log += 'w';
            how.wait(w);
            context.assert_held();
            log += 'W';
        });
        run_until_blocked();
        CHECK(log == "w");
        REQUIRE(context.try_lock());  // from a plain thread, which then keeps it
        how.end(w);
        run_until_blocked();
        CHECK(log == "w");
        context.unlock();
        run();
        CHECK(log == "wW");
    }
}

MATRIX_TEST("actor_context: let go over a yield") {
    actor_context context;
    std::string log;
    for (const char name : {'a', 'b'})
        spawn([&, name] {
            for (int i = 0; i < 3; ++i) {
                const std::lock_guard inside(context);
                log += name;
                yield();
                CHECK(context.is_held());
            }
        });
    run();
    CHECK(log == "ababab");
}

MATRIX_TEST("actor_context: taken again when its fiber runs, not when the event comes") {
    actor_context context;
    event happened(event_reset::manual);
    std::string log;
    spawn([&] {
        const std::lock_guard inside(context);
        happened.wait();
        log += 'w';
    });
    run_until_blocked();
    happened.set();  // it is ready, and in the queue
    CHECK(context.try_lock());
    log += 't';
    context.unlock();
    spawn([&] {
        CHECK(context.try_lock());
        log += 'l';
        context.unlock();
    });
    run();
    CHECK(log == "twl");
}

MATRIX_TEST("actor_context: one cancelled in a wait comes back first, and then says so") {
    actor_context context;
    std::string log;
    fiber f(s, options(), [&] {
        const std::lock_guard inside(context);
        const auto slept = sleep_for(1h);
        CHECK(context.is_held());
        CHECK(slept.error() == std::errc::operation_canceled);
        log += 'c';
    });
    run_until_blocked();
    context.lock();
    f.request_stop();
    run_until_blocked();
    CHECK(log.empty());
    context.unlock();
    run();
    CHECK(log == "c");
    f.detach();
}

MATRIX_TEST("actor_context: one cancelled while it waits to come back does come back") {
    actor_context context;
    binary_semaphore permit(0);
    std::string log;
    fiber f(s, options(), [&] {
        const std::lock_guard inside(context);
        permit.acquire();  // it happened: no exception
        CHECK(context.is_held());
        log += 'a';
        CHECK(!sleep_for(1ms));  // the next wait says it
        CHECK(context.is_held());
        log += 'c';
    });
    run_until_blocked();
    context.lock();
    permit.release();
    run_until_blocked();
    f.request_stop();
    run_until_blocked();
    CHECK(log.empty());
    context.unlock();
    run();
    CHECK(log == "ac");
    f.detach();
}

MATRIX_TEST("actor_context: a throwing wait that is cancelled unwinds inside of the context") {
    actor_context context;
    event never(event_reset::manual);
    std::string log;
    fiber f(s, options(), [&] {
        const std::lock_guard inside(context);
        try {
            never.wait();
        } catch (const cancelled&) {
            CHECK(context.is_held());
            log += 'c';
            throw;
        }
    });
    run_until_blocked();
    f.request_stop();
    run();
    CHECK(log == "c");
    CHECK(context.try_lock());
    context.unlock();
    f.detach();
}

MATRIX_TEST("actor_context: an unpark does not end the wait to come back from a late park") {
    actor_context context;
    fiber_handle parked;
    std::string log;
    spawn([&] {
        parked = this_fiber::handle();
        const std::lock_guard inside(context);
        CHECK(park_until(clock.now() + 1ms).error() == std::errc::timed_out);
        context.assert_held();
        log += 'l';
        CHECK(park());  // the permit stayed
        log += 'p';
    });
    run_until_blocked();
    context.lock();
    advance(1ms);
    unpark(parked);
    run_until_blocked();
    CHECK(log.empty());
    context.unlock();
    run();
    CHECK(log == "lp");
}

MATRIX_TEST("actor_context: a fiber's end does not end its joiner's wait to come back") {
    actor_context context;
    event happened(event_reset::manual);
    std::string log;
    fiber joined(s, options(), [&] { happened.wait(); });
    fiber joins(s, options(), [&] {
        const std::lock_guard inside(context);
        try {
            joined.join();
            log += 'j';
        } catch (const cancelled&) { log += 'c'; }
        context.assert_held();
    });
    run_until_blocked();
    context.lock();
    joins.request_stop();
    run_until_blocked();
    happened.set();
    run_until_blocked();
    CHECK(log.empty());
    context.unlock();
    run();
    CHECK(log == "j");  // it has ended before anybody was told otherwise
    joins.detach();
    if (joined.joinable()) joined.detach();
}

MATRIX_TEST("actor_context: hooks run outside of it, and may enter contexts of their own") {
    class notes final : public suspend_hook {
    public:
        notes(const actor_context& around, const actor_context& own, std::string& log)
            : around_(around), own_(own), log_(log) {}
        void suspend() override {
            CHECK(!around_.is_held());
            {
                const std::lock_guard inside(own_);
                log_ += '(';
            }
            suspend_hook::suspend();
            CHECK(!around_.is_held());
            log_ += ')';
        }

    private:
        const actor_context& around_;
        const actor_context& own_;
        std::string& log_;
    };
    actor_context context;
    actor_context own;
    std::string log;
    notes hook(context, own, log);
    spawn([&] {
        this_fiber::set_suspend_hook(&hook);
        const std::lock_guard inside(context);
        yield();
        CHECK(context.is_held());
        sleep_for(1ms);
        CHECK(context.is_held());
    });
    run_until_blocked();
    advance(1ms);
    CHECK(log == "()()");
}
