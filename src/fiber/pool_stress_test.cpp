// pool_stress_test.cpp - fibers on a pool against everything that has gone wrong elsewhere: wakes
// that come too early or twice, starved timers, growing stacks, signals, fork.
//
// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include <weft/exec/pool.hpp>

#include "pools.hpp"
#include "test_points.hpp"
#include "thread_now.hpp"

using namespace weft;
using namespace std::chrono_literals;
using weft_test::thread_now;

POOL_TEST("pool: stress: a fiber is woken before its context is saved") {
    const weft_test::with_test_points here;
    const long rounds = weft_test::stress_count(500'000) / 4;
    std::atomic<long> got = 0;
    struct pair {
        fiber_handle other;
        std::atomic<bool> ready = false;
    };
    pair sides[2];
    for (int i = 0; i < 2; ++i)
        spawn([&, i] {
            sides[i].other = this_fiber::handle();
            sides[i].ready = true;
            while (!sides[1 - i].ready) yield();
            for (long round = 0; round < rounds; ++round) {
                unpark(sides[1 - i].other);
                static_cast<void>(park());
                ++got;
            }
            unpark(sides[1 - i].other);
        });
    p.drain();
    CHECK(got == 2 * rounds);
}

POOL_TEST("pool: double wakes, and wakes of one that has finished, do nothing") {
    std::atomic<int> woken = 0;
    fiber f(p, options(), [&] {
        static_cast<void>(park());
        ++woken;
    });
    const fiber_handle handle = f.handle();
    for (int i = 0; i < 100; ++i) unpark(handle);
    f.join();
    for (int i = 0; i < 100; ++i) unpark(handle);
    CHECK(woken == 1);
}

POOL_TEST("pool: stress: no wake is lost when four threads wake one fiber twice each") {
    const weft_test::with_test_points here;
    const long rounds = weft_test::stress_count(100'000);
    std::atomic<long> round = 0;
    std::atomic<bool> inside = false;
    fiber f(p, options(), [&] {
        while (round < rounds) {
            CHECK(park());
            CHECK(!inside.exchange(true));  // it runs once at a time
            ++round;
            inside = false;
        }
    });
    const fiber_handle handle = f.handle();
    std::vector<std::thread> wakers;
    for (int i = 0; i < 4; ++i)
        wakers.emplace_back([&] {
            for (long seen = -1; seen < rounds; std::this_thread::yield())
                if (const long now = round; now != seen) {  // two in each round
                    seen = now;
                    unpark(handle);
                    unpark(handle);
                }
        });
    f.join();
    for (std::thread& one : wakers) one.join();
    CHECK(round == rounds);
}

namespace {

// Two fibers that wake each other and wait, until it is over; or, so that a test ends in which they
// starve what they wait for, until they give up.
class tireless_pair {
public:
    template <class Spawn>
    void start(Spawn spawn, const std::function<bool()>& over) {
        for (std::size_t i = 0; i < 2; ++i)
            spawn([this, i, over] {
                handles_[i] = std::make_unique<fiber_handle>(this_fiber::handle());
                sides_[i] = handles_[i].get();
                while (sides_[1 - i] == nullptr) yield();
                fiber_handle& other = *sides_[1 - i];
                while (!over() && turns_ < most) {
                    ++turns_;
                    unpark(other);
                    static_cast<void>(park());
                }
                unpark(other);
            });
    }

    [[nodiscard]] bool has_given_up() const { return turns_ >= most; }

private:
    static constexpr long most = 20'000'000;
    std::atomic<fiber_handle*> sides_[2] = {};
    std::unique_ptr<fiber_handle> handles_[2];
    std::atomic<long> turns_ = 0;
};

}  // namespace

POOL_TEST("pool: two that wake each other for ever do not starve a timer") {
    std::atomic<bool> rang = false;
    spawn([&] {
        static_cast<void>(sleep_for(1ms));
        rang = true;
    });
    tireless_pair pair;
    pair.start([&](auto f) { spawn(f); }, [&] { return rang.load(); });
    p.drain();
    CHECK(!pair.has_given_up());
}

// Each looks at its permit before it leaves, and finds it mostly.
WEFT_TEST("pool: two on a worker each that unpark each other for ever do not starve a timer") {
    pool p({.workers = 2});
    std::atomic<unsigned> rang = 0;
    for (unsigned i = 0; i < 2; ++i)
        go(p, {.worker = i}, [&] {
            static_cast<void>(sleep_for(1ms));
            ++rang;
        });
    tireless_pair pair;
    unsigned which = 0;
    pair.start([&](auto f) { go(p, {.worker = which++}, f); }, [&] { return rang == 2; });
    p.drain();
    CHECK(!pair.has_given_up());
}

// It looks at its permit only while its worker has nothing else to do.
WEFT_TEST("pool: one that waits for its permit does not keep a worker from others it may run") {
    pool p({.workers = 2});
    std::atomic<unsigned> ran = 0;
    tireless_pair pair;
    unsigned which = 0;
    pair.start([&](auto f) { go(p, {.worker = which++}, f); }, [&] { return ran == 200; });
    for (unsigned i = 0; i < 200; ++i)
        i % 2 == 0 ? go(p, [&] { ++ran; }) : go(p, {.worker = i / 2 % 2}, [&] { ++ran; });
    p.drain();
    CHECK(!pair.has_given_up());
}

POOL_TEST("pool: two that wake each other for ever do not starve those who are ready") {
    const unsigned free = 3;
    std::atomic<unsigned> left = p.workers() + free;
    const auto yields = [&] {
        for (int i = 0; i < 20; ++i) yield();
        --left;
    };
    tireless_pair pair;
    pair.start([&](auto f) { spawn(f); }, [&] { return left == 0; });
    for (unsigned i = 0; i < free; ++i) spawn(yields);
    for (unsigned i = 0; i < p.workers(); ++i) {
        fiber_options bound = options();
        bound.worker = i;
        go(p, bound, yields);
    }
    p.drain();
    CHECK(!pair.has_given_up());
}

POOL_TEST("pool: a million direct transfers do not grow a stack") {
    if (p.workers() != 1) return;  // a transfer needs both on one worker
    const long count = weft_test::stress_count(1'000'000);
    runnable* waiting = nullptr;
    std::uintptr_t lowest = std::numeric_limits<std::uintptr_t>::max();
    std::uintptr_t highest = 0;
    for (int i = 0; i < 2; ++i)
        spawn([&] {
            for (long n = 0; n < count; ++n)
                suspend([&](runnable* me) noexcept -> runnable* {
                    char here;
                    const auto at = reinterpret_cast<std::uintptr_t>(&here);
                    lowest = std::min(lowest, at);
                    highest = std::max(highest, at);
                    return std::exchange(waiting, me);  // the other, if it waits
                });
            if (waiting != nullptr) {
                runnable* const last = std::exchange(waiting, nullptr);
                this_fiber::executor().post(last);
            }
        });
    p.drain();
    CHECK(highest - lowest < 4096);
}

POOL_TEST("pool: stress: joins, sleeps and cancellations at once, with yields injected") {
    const weft_test::with_test_points here;
    const long rounds = weft_test::stress_count(50'000) / 10;
    for (long round = 0; round < rounds; ++round) {
        fiber parent(p, options(), [this] {
            fiber sleeper(options(), [] { static_cast<void>(sleep_for(1h)); });
            fiber parker(options(), [] { static_cast<void>(park()); });
            fiber worker(options(), [] {
                for (int i = 0; i < 3; ++i) yield();
            });
            worker.join();
        });
        if (round % 2 == 0) parent.request_stop();
    }
}

namespace {

// A worker's thread, and the signals that have come to it.
struct disturbed {
    pthread_t thread{};
    std::atomic<long> signals = 0;
};

// Static: a signal may come late.
std::array<disturbed, 8> all_disturbed;

// Without SA_RESTART: every system call that it comes into ends early.
class counts_signals {
public:
    counts_signals() {
        struct sigaction action {};
        action.sa_sigaction = [](int, siginfo_t* info, void*) {
            ++static_cast<disturbed*>(info->si_value.sival_ptr)->signals;
        };
        action.sa_flags = SA_SIGINFO;
        ::sigaction(SIGUSR1, &action, &before_);
    }
    counts_signals(const counts_signals&) = delete;
    counts_signals& operator=(const counts_signals&) = delete;
    ~counts_signals() {
        std::signal(SIGUSR1, SIG_IGN);  // those that are under way are forgotten
        ::sigaction(SIGUSR1, &before_, nullptr);
    }

    static void send(disturbed& to) {
        sigval value{};
        value.sival_ptr = &to;
        ::pthread_sigqueue(to.thread, SIGUSR1, value);
    }

private:
    struct sigaction before_ {};
};

}  // namespace

POOL_TEST("pool: signals at a kilohertz to every worker disturb nobody") {
    const counts_signals here;
    const std::span workers = std::span(all_disturbed).first(p.workers());
    for (unsigned i = 0; i < p.workers(); ++i)
        go(p, {.worker = i}, [workers, i] {
            workers[i].thread = ::pthread_self();
            workers[i].signals = 0;
        });
    p.drain();
    std::atomic<bool> over = false;
    std::atomic<int> done = 0;
    for (int i = 0; i < 20; ++i)
        spawn([&] {
            for (int j = 0; j < 200 || !over; ++j) {
                yield();
                static_cast<void>(sleep_for(10us));
            }
            ++done;
        });
    const long wanted = weft_test::stress_count(10'000);
    const auto had_enough = [&](const disturbed& one) { return one.signals >= wanted; };
    // TSan keeps the signals of a thread back that makes no call that it knows.
    for (long sent = 0; !std::ranges::all_of(workers, had_enough); ++sent) {
        if (WEFT_TSAN && sent >= wanted) break;
        for (disturbed& one : workers) counts_signals::send(one);
        std::this_thread::sleep_for(1ms);  // the kilohertz
    }
    over = true;
    p.drain();
    CHECK(done == 20);
}

POOL_TEST("pool: stress: pinned fibers stay while those around them are stolen") {
    const weft_test::with_test_points here;
    const long rounds = weft_test::stress_count(50'000);
    std::atomic<unsigned> left = p.workers();
    for (unsigned i = 0; i < p.workers(); ++i) {
        fiber_options bound = options();
        bound.worker = i;
        go(p, bound, [&left, rounds] {
            const pthread_t mine = thread_now();
            for (long round = 0; round < rounds; ++round) {
                yield();
                CHECK(thread_now() == mine);
            }
            --left;
        });
    }
    for (unsigned i = 0; i < 20; ++i)
        spawn([this, &left] {
            while (left != 0) {
                spawn([] { yield(); });
                yield();
            }
        });
    p.drain();
    CHECK(left == 0);
}

POOL_TEST("pool: fork and exec inside a fiber") {
    const long rounds = weft_test::stress_count(500);
    std::atomic<long> right = 0;
    spawn([&] {
        for (long i = 0; i < rounds; ++i) {
            const pid_t child = ::fork();
            if (child == 0) {
                ::execl("/bin/true", "true", static_cast<char*>(nullptr));
                ::_exit(127);
            }
            int ended = -1;
            while (::waitpid(child, &ended, WNOHANG) == 0) yield();
            if (ended == 0) ++right;
        }
    });
    p.drain();
    CHECK(right == rounds);
}

// On one worker, where nothing depends on how the system shares out its processors. On two it is a
// figure of the benchmark `pool`.
WEFT_TEST("pool: fairness: a thousand fibers that only yield get about the same") {
    pool p({.workers = 1});
    constexpr std::size_t count = 1000;
    std::vector<long> work(count);
    long left = 1'000'000;
    std::atomic<bool> all_there = false;
    for (std::size_t i = 0; i < count; ++i)
        go(p, [&, i] {
            while (!all_there) yield();
            while (left-- > 0) {
                ++work[i];
                yield();
            }
        });
    all_there = true;
    p.drain();
    const auto [least, most] = std::minmax_element(work.begin(), work.end());
    EXPECT_GE(static_cast<double>(*least), 0.9 * static_cast<double>(*most));
}

POOL_TEST("pool: fairness: of a hundred fibers that only yield all get on") {
    if (kind == stack_kind::thread) return;  // a hundred threads: long, and nothing new
    constexpr std::size_t count = 100;
    std::vector<std::atomic<long>> work(count);
    std::atomic<std::size_t> reached = 0;
    for (std::size_t i = 0; i < count; ++i)
        spawn([&, i] {
            while (reached < count) {
                if (++work[i] == 100) ++reached;
                yield();
            }
        });
    p.drain();
    CHECK(reached == count);
}

namespace {

// Holds the worker until the watchdog has reported once more; says where it was called from.
[[gnu::noinline]] void hold(const std::atomic<int>& reports, int seen, std::atomic<void*>& from) {
    static std::size_t (*volatile intercepted)(const char*) = &std::strlen;
    from = __builtin_return_address(0);
    while (reports == seen)
        if (WEFT_TSAN) static_cast<void>(intercepted(""));  // else it keeps signals back
    asm volatile("" ::: "memory");                          // no tail call
}

}  // namespace

WEFT_TEST("pool: watchdog names the fiber that holds its worker, and where it is, of every kind") {
    for (const stack_kind kind :
         {stack_kind::own, stack_kind::ucontext, stack_kind::thread, stack_kind::swapped}) {
        if (WEFT_TSAN && kind == stack_kind::thread) continue;  // the worker keeps its signal back
        std::atomic<bool> found = false;
        std::atomic<int> reports = 0;
        std::atomic<void*> from = nullptr;
        pool p({.workers = 2, .watchdog = 2ms, .stalled = [&](const stall_report& r) {
                    if (r.name == "busy" && std::ranges::count(r.stack, from.load()) == 1)
                        found = true;
                    ++reports;
                }});
        // On a slow machine a report may come while the worker still prepares it: then once more.
        go(p, {.name = "busy", .kind = kind}, [&] {
            int seen = 0;  // each hold is reported once, perhaps before this line
            while (!found) {
                hold(reports, seen, from);
                seen = reports;
                suspend([&p](runnable* r) noexcept -> runnable* {
                    p.post(r);
                    return nullptr;
                });
            }
        });
        p.drain();
        CHECK(found);
    }
}
