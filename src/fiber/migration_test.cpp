// migration_test.cpp - what is right after a fiber has moved to another thread, and what stays the
// same for one that does not move.
//
// Compilers keep what they know of a thread over a call that they cannot see into; so everything
// here that asks for something of the thread does so in a function of its own, as docs/threads.md
// tells users to. What is tested is weft's part: run it at every optimisation level (tools/matrix).
//
// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <exception>
#include <latch>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <weft/exec/loop.hpp>
#include <weft/exec/pool.hpp>
#include <weft/fiber/fiber.hpp>
#include <weft/fiber/go.hpp>
#include <weft/fiber/suspend.hpp>
#include <weft/fiber/this_fiber.hpp>

#include "pools.hpp"
#include "thread_now.hpp"

using namespace weft;
using namespace std::chrono_literals;
using weft_test::fresh;
using weft_test::thread_now;

namespace {

[[gnu::noinline]] int* errno_now() { return fresh(&errno); }
// As left there by the C library, after a call that fails.
[[gnu::noinline]] int error_of_call() {
    ::close(-1);
    return *errno_now();
}

thread_local int number_of_thread = 0;
[[gnu::noinline]] int* number_now() { return fresh(&number_of_thread); }

// Goes on on the other worker of a pool of two that forces it.
void move() {
    suspend([&home = this_fiber::executor()](runnable* r) noexcept -> runnable* {
        home.post(r);
        return nullptr;
    });
}

// A pool of two where every stop is a move.
struct movers {
    pool p{{.workers = 2, .force_migrate = true}};
};

}  // namespace

WEFT_TEST("migration: thread, errno and thread_local are those of the new thread") {
    movers m;
    for (unsigned i = 0; i < 2; ++i)
        go(m.p, {.worker = i}, [i] { *number_now() = static_cast<int>(i) + 1; });
    m.p.drain();
    go(m.p, [] {
        for (int i = 0; i < 100; ++i) {
            const pthread_t thread = thread_now();
            const int number = *number_now();
            int* const error = errno_now();
            CHECK(number == 1 || number == 2);
            move();
            CHECK(thread_now() != thread);
            CHECK(*number_now() == 3 - number);
            CHECK(errno_now() != error);
            *errno_now() = 0;
            CHECK(error_of_call() == EBADF);
            move();
            CHECK(thread_now() == thread);
            CHECK(*number_now() == number);
            CHECK(errno_now() == error);
        }
    });
    m.p.drain();
}

WEFT_TEST("migration: weft's own idea of the thread is right after each move") {
    movers m;
    for (int n = 0; n < 4; ++n)
        go(m.p, {.name = "mover"}, [&m] {
            const fiber_id me = this_fiber::get_id();
            for (int i = 0; i < 200; ++i) {
                move();
                CHECK(this_fiber::get_id() == me);
                CHECK(this_fiber::name() == "mover");
                CHECK(&this_fiber::executor() == &m.p);
                fiber child([] { move(); });  // needs the worker that it is on now
                child.join();
            }
        });
    m.p.drain();
}

WEFT_TEST("migration: the exception being handled moves along") {
    movers m;
    for (int n = 0; n < 4; ++n)
        go(m.p, [n] {
            for (int i = 0; i < 100; ++i) try {
                    throw std::runtime_error(std::to_string(n));
                } catch (const std::exception& outer) {
                    move();
                    try {
                        move();
                        throw std::logic_error("inner " + std::to_string(n));
                    } catch (const std::logic_error& inner) {
                        move();
                        CHECK(inner.what() == "inner " + std::to_string(n));
                    }
                    move();
                    CHECK(outer.what() == std::to_string(n));
                    try {
                        throw;
                    } catch (const std::runtime_error& again) { CHECK(&again == &outer); }
                }
        });
    m.p.drain();
}

WEFT_TEST("migration: a destructor may move while an exception unwinds through it") {
    struct moves_at_its_end {
        ~moves_at_its_end() {
            CHECK(std::uncaught_exceptions() == 1);
            move();
            CHECK(std::uncaught_exceptions() == 1);
        }
    };
    movers m;
    for (int n = 0; n < 4; ++n)
        go(m.p, [] {
            for (int i = 0; i < 100; ++i) {
                try {
                    const moves_at_its_end one;
                    throw 1;
                } catch (int thrown) { CHECK(thrown == 1); }
                CHECK(std::uncaught_exceptions() == 0);
                move();
            }
        });
    m.p.drain();
}

WEFT_TEST("migration: what a fiber keeps in registers and on its stack moves along") {
    movers m;
    for (int n = 0; n < 8; ++n)
        go(m.p, [n] {
            double x = n;
            long sums[16] = {};
            for (long i = 0; i < 500; ++i) {
                x = x * 1.0000001 + 1;
                sums[i % 16] += i * n;
                move();
            }
            double y = n;
            for (int i = 0; i < 500; ++i) y = y * 1.0000001 + 1;
            CHECK(x == y);
            for (long j = 0; j < 16; ++j) {
                long sum = 0;
                for (long i = j; i < 500; i += 16) sum += i * n;
                CHECK(sums[j] == sum);
            }
        });
    m.p.drain();
}

// --- those that stay

namespace {

template <class Wait>
void stays_on_its_thread(pool& p, const fiber_options& options, Wait wait_somehow) {
    for (int n = 0; n < 8; ++n)
        go(p, options, [wait_somehow] {
            const pthread_t thread = ::pthread_self();
            int* const number = &number_of_thread;
            int* const error = &errno;
            for (int i = 0; i < 50; ++i) {
                wait_somehow();
                CHECK(thread_now() == thread);
                CHECK(number_now() == number);
                CHECK(errno_now() == error);
            }
        });
    p.drain();
}

constexpr auto all_waits = [] {
    yield();
    static_cast<void>(sleep_for(1us));
    move();
};

}  // namespace

WEFT_TEST("migration: pinned fibers keep their thread and its thread_locals over a wait") {
    for (const stack_kind kind : {stack_kind::own, stack_kind::ucontext, stack_kind::swapped}) {
        movers m;
        stays_on_its_thread(m.p, {.kind = kind, .pinned = true}, all_waits);
        stays_on_its_thread(m.p, {.kind = kind, .worker = 1}, all_waits);
    }
}

WEFT_TEST("migration: swapped fibers, and those on a thread each, keep theirs without being told") {
    for (const stack_kind kind : {stack_kind::swapped, stack_kind::thread}) {
        movers m;
        stays_on_its_thread(m.p, {.kind = kind}, all_waits);
    }
}

WEFT_TEST("migration: a std::mutex held over no wait works between fibers and plain threads") {
    movers m;
    std::mutex mutex;
    int count = 0;
    for (const fiber_options& one :
         {fiber_options{.pinned = true}, fiber_options{.kind = stack_kind::swapped}})
        for (int n = 0; n < 4; ++n)
            go(m.p, one, [&] {
                for (int i = 0; i < 200; ++i) {
                    {
                        const std::lock_guard lock(mutex);
                        ++count;
                    }
                    yield();
                }
            });
    std::thread plain([&] {
        for (int i = 0; i < 1000; ++i) {
            const std::lock_guard lock(mutex);
            ++count;
        }
    });
    plain.join();
    m.p.drain();
    CHECK(count == 8 * 200 + 1000);
}

WEFT_TEST("migration: on a loop, and on a pool of one worker, nobody changes the thread") {
    pool one({.workers = 1, .force_migrate = true});
    stays_on_its_thread(one, {}, all_waits);
    loop s;
    const pthread_t thread = thread_now();
    for (int n = 0; n < 8; ++n)
        go(s, [thread] {
            for (int i = 0; i < 50; ++i) {
                all_waits();
                CHECK(thread_now() == thread);
            }
        });
    s.run();
}

namespace {

void hold_a_mutex_over_waits(executor& where, const fiber_options& options, loop* run = nullptr) {
    std::mutex mutex;
    int inside = 0;
    std::latch start(3);
    go(where, options, [&] {
        start.arrive_and_wait();
        for (int i = 0; i < 100; ++i) {
            const std::lock_guard lock(mutex);  // unlocked by the thread that locked it
            ++inside;
            all_waits();
            CHECK(inside == 1);
            --inside;
        }
    });
    std::vector<std::thread> plain;
    for (int n = 0; n < 2; ++n)
        plain.emplace_back([&] {
            start.arrive_and_wait();
            for (int i = 0; i < 100; ++i) {
                const std::lock_guard lock(mutex);
                CHECK(++inside == 1);
                --inside;
                std::this_thread::yield();
            }
        });
    if (run != nullptr) run->run();
    for (std::thread& each : plain) each.join();
    if (run == nullptr) static_cast<pool&>(where).drain();
}

}  // namespace

WEFT_TEST("migration: one that stays may hold a std::mutex over a wait against plain threads") {
    movers m;
    hold_a_mutex_over_waits(m.p, {.pinned = true});
    hold_a_mutex_over_waits(m.p, {.kind = stack_kind::ucontext, .pinned = true});
    hold_a_mutex_over_waits(m.p, {.worker = 1});
    hold_a_mutex_over_waits(m.p, {.kind = stack_kind::swapped});
    hold_a_mutex_over_waits(m.p, {.kind = stack_kind::thread});
    pool one({.workers = 1});
    hold_a_mutex_over_waits(one, {});
    loop s;
    hold_a_mutex_over_waits(s, {}, &s);
}
