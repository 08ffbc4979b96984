// actor_context_test.cpp - entering, leaving, contexts inside of contexts, plain threads, misuse.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/actor/actor_context.hpp>

#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>

#include <weft/exec/post.hpp>
#include <weft/sync/event.hpp>

#include "loops.hpp"
#include "pools.hpp"

using namespace weft;
using namespace std::chrono_literals;

namespace {

// Whether somebody else could enter: another fiber of the loop, at once.
bool is_free(const actor_context& context) {
    if (!context.try_lock()) return false;
    context.unlock();
    return true;
}

// A plain member, const members that lock, noexcept.
// [counter]
class counter {
public:
    [[nodiscard]] int get() const noexcept {
        std::lock_guard guard(context);
        return value_;
    }
    void set(int value) noexcept {
        std::lock_guard guard(context);
        value_ = value;
    }
    int increment() noexcept {
        std::lock_guard guard(context);
        return ++value_;
    }

private:
    actor_context context;  // not mutable: lock() and unlock() are const
    int value_ = 0;
};
// [/counter]

}  // namespace

MATRIX_TEST("actor_context: a counter with a plain member, from fibers and from a thread") {
    counter c;
    c.set(5);
    spawn([&] { CHECK(c.increment() == 6); });
    spawn([&] { CHECK(c.get() == 6); });
    run();
    CHECK(c.get() == 6);
}

MATRIX_TEST("actor_context: one inside, others wait in the order in which they came") {
    actor_context context;
    std::string order;
    context.lock();  // this is a plain thread: it stays inside
    for (const char name : {'a', 'b', 'c'})
        spawn([&, name] {
            const std::lock_guard inside(context);
            order += name;
        });
    run_until_blocked();
    CHECK(order.empty());
    context.unlock();
    run();
    CHECK(order == "abc");
}

MATRIX_TEST("actor_context: to enter again costs nothing and is counted, over waits too") {
    actor_context context;
    std::string log;
    spawn([&] {
        const std::lock_guard first(context);
        {
            const std::lock_guard second(context);
            CHECK(context.try_lock());
            log += 'a';
            yield();
            log += 'A';
            context.unlock();
            CHECK(context.is_held());
        }
        CHECK(context.is_held());
        yield();
        CHECK(context.is_held());
    });
    spawn([&] {
        CHECK(context.try_lock());
        log += 'b';
        context.unlock();
        CHECK(!context.is_held());
    });
    run();
    CHECK(log == "abA");
    CHECK(is_free(context));
}

MATRIX_TEST("actor_context: to enter a second one lets the first go, until its guard ends") {
    actor_context a;
    actor_context b;
    bool before = true;
    bool inside = true;
    bool after = true;
    const auto somebody_else_can_enter = [&](const actor_context& context) {
        bool can = false;
        std::thread([&] { can = is_free(context); }).join();
        return can;
    };
    spawn([&] {
        const std::lock_guard outer(a);
        before = somebody_else_can_enter(a);
        {
            const std::lock_guard inner(b);
            CHECK(b.is_held());
            CHECK(!a.is_held());
            inside = somebody_else_can_enter(a) && !somebody_else_can_enter(b);
        }
        CHECK(a.is_held());
        after = somebody_else_can_enter(a) || !somebody_else_can_enter(b);
    });
    run();
    CHECK(!before);
    CHECK(inside);
    CHECK(!after);
}

MATRIX_TEST("actor_context: the way back leads through what was entered meanwhile by others") {
    actor_context a;
    actor_context b;
    std::string log;
    event go_back(event_reset::manual);
    spawn([&] {
        const std::lock_guard outer(a);
        log += '1';
        {
            const std::lock_guard inner(b);
            go_back.wait();  // b is let go, and a already was
            log += '2';
        }
        CHECK(a.is_held());
        log += '3';
    });
    run_until_blocked();
    a.lock();
    b.lock();
    go_back.set();
    run_until_blocked();
    CHECK(log == "1");
    b.unlock();
    run_until_blocked();
    CHECK(log == "12");
    a.unlock();
    run();
    CHECK(log == "123");
}

MATRIX_TEST("actor_context: three and six deep, the same one twice, and back step by step") {
    actor_context a;
    actor_context b;
    actor_context c;
    spawn([&] {
        const actor_context* const way[] = {&a, &b, &c, &a, &c, &b};
        for (const actor_context* one : way) {
            one->lock();
            one->lock();  // twice each
            CHECK(one->is_held());
            yield();
            CHECK(one->is_held());
            CHECK(a.is_held() + b.is_held() + c.is_held() == 1);
        }
        for (int i = 5; i >= 0; --i) {
            CHECK(way[i]->is_held());
            way[i]->unlock();
            CHECK(way[i]->is_held());
            yield();
            way[i]->unlock();
            CHECK(!way[i]->is_held());
            CHECK(i == 0 || way[i - 1]->is_held());
        }
        CHECK(is_free(a) && is_free(b) && is_free(c));
    });
    run();
}

MATRIX_TEST("actor_context: exceptions leave through the guards, three deep, over waits") {
    actor_context a;
    actor_context b;
    actor_context c;
    std::string log;
    spawn([&] {
        try {
            const std::lock_guard first(a);
            yield();
            try {
                const std::lock_guard second(b);
                const std::lock_guard third(c);
                yield();
                throw std::runtime_error("from three deep");
            } catch (const std::logic_error&) { log += '?'; }
            log += '?';
        } catch (const std::runtime_error& error) {
            log += error.what();
            CHECK(!a.is_held() && !b.is_held() && !c.is_held());
        }
        CHECK(is_free(a) && is_free(b) && is_free(c));
    });
    run();
    CHECK(log == "from three deep");
}

MATRIX_TEST("actor_context: an exception waits in a guard's end for the context around") {
    actor_context a;
    actor_context b;
    std::string log;
    event happened(event_reset::manual);
    spawn([&] {
        const std::lock_guard first(a);
        try {
            const std::lock_guard second(b);
            happened.wait();
            throw 1;
        } catch (int) {
            CHECK(a.is_held());
            log += 'c';
        }
    });
    run_until_blocked();
    a.lock();
    happened.set();
    run_until_blocked();  // in the destructor of the guard of b
    CHECK(log.empty());
    a.unlock();
    run();
    CHECK(log == "c");
}

MATRIX_TEST("actor_context: a failed try_lock keeps the context, a successful one lets it go") {
    actor_context a;
    actor_context b;
    b.lock();
    bool inside = false;
    spawn([&] {
        const std::lock_guard outer(a);
        CHECK(!b.try_lock());
        CHECK(a.is_held());
        yield();
        CHECK(b.try_lock());
        CHECK(b.is_held());
        CHECK(!a.is_held());
        inside = true;
        b.unlock();
        CHECK(a.is_held());
    });
    s.step();
    b.unlock();
    run();
    CHECK(inside);
}

MATRIX_TEST("actor_context: a try_lock_until that is late says so, and the fiber stays") {
    actor_context a;
    actor_context b;
    std::string log;
    b.lock();
    spawn([&] {
        CHECK(!b.try_lock_for(1ms));
        log += 'l';
        const std::lock_guard outer(a);
        CHECK(!b.try_lock_for(1ms));
        CHECK(a.is_held());
        log += 'L';
        CHECK(b.try_lock_until(clock.now() + 1h));
        CHECK(b.is_held());
        b.unlock();
        CHECK(a.is_held());
    });
    run_until_blocked();
    advance(1ms);
    CHECK(log == "l");
    CHECK(is_free(a));  // let go over the wait for b
    advance(1ms);
    CHECK(log == "lL");
    b.unlock();
    run();
}

MATRIX_TEST("actor_context: lock ignores cancellation, try_lock_for reports it") {
    actor_context context;
    std::string log;
    context.lock();
    fiber f(s, options(), [&] {
        CHECK(!context.try_lock_for(1h));
        CHECK(this_fiber::stop_requested());
        log += 'c';
        context.lock();
        log += 'l';
        context.unlock();
    });
    run_until_blocked();
    f.request_stop();
    run_until_blocked();
    CHECK(log == "c");
    context.unlock();
    run();
    CHECK(log == "cl");
    f.detach();
}

WEFT_TEST("actor_context: a plain thread is inside until it leaves, also while it waits") {
    actor_context a;
    actor_context b;
    a.lock();
    a.lock();
    CHECK(b.try_lock_for(1ms));
    CHECK(a.is_held());
    CHECK(b.is_held());
    std::thread([&] {
        CHECK(!a.try_lock());
        CHECK(!a.try_lock_for(1ms));
        CHECK(!a.is_held());
    }).join();
    b.unlock();
    a.unlock();
    CHECK(a.is_held());
    sleep_for(1ms);
    CHECK(a.is_held());
    a.unlock();
    std::thread([&] { CHECK(is_free(a) && is_free(b)); }).join();
}

POOL_TEST("actor_context: a fiber that goes to another executor and back takes it along") {
    if (kind == stack_kind::thread || kind == stack_kind::swapped) return;  // they stay
    actor_context context;
    loop other;
    other.add_work(1);
    std::thread runs([&] { other.run(); });
    fiber f(p, options(), [&] {
        const std::lock_guard inside(context);
        on(other, [&] {
            CHECK(context.is_held());
            yield();
            CHECK(context.is_held());
        });
        CHECK(context.is_held());
    });
    f.join();
    other.add_work(-1);
    post(other, [] {});
    runs.join();
}

WEFT_TEST("actor_context misuse: leaving what one is not in, ending inside, destroying") {
    actor_context a;
    actor_context b;
    EXPECT_DEATH(a.unlock(), "actor_context: left by a fiber or thread that is not inside");
    EXPECT_DEATH(a.assert_held(), "actor_context: the caller is not inside");
    a.lock();
    a.assert_held();
    const auto in_a_fiber = [](auto f) {
        loop s({.external_wakes = false});
        go(s, f);
        s.run();
    };
    EXPECT_DEATH(in_a_fiber([&] { a.unlock(); }), "actor_context: left by a fiber or thread that");
    EXPECT_DEATH(in_a_fiber([&] { a.assert_held(); }), "actor_context: the caller is not inside");
    EXPECT_DEATH(in_a_fiber([&] { b.lock(); }), "actor_context: a fiber ended inside of one");
    EXPECT_DEATH(in_a_fiber([&] {
                     actor_context c;
                     b.lock();
                     c.lock();
                     b.unlock();
                 }),
                 "actor_context: left by a fiber or thread that is not inside");
    a.unlock();
    std::optional<actor_context> held(std::in_place);
    held->lock();
    EXPECT_DEATH(held.reset(), "actor_context: destroyed while somebody is inside, or waits");
    held->unlock();
}
