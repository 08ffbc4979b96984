// pool_test.cpp - the pool with plain runnables: who runs what, sleeping and waking, ends.
//
// Long, for running, sleeping and waking are one protocol, and the counters at the end tell of it.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/exec/pool.hpp>

#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <latch>
#include <mutex>
#include <semaphore>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <weft/base/thread_block.hpp>
#include <weft/exec/post.hpp>
#include <weft/exec/worker.hpp>

#include "backends.hpp"
#include "test_points.hpp"
#include "weft_test.hpp"

using namespace weft;
using namespace std::chrono_literals;

namespace {

// The process runs on one CPU while one lives.
class on_one_cpu {
public:
    on_one_cpu() {
        ::sched_getaffinity(0, sizeof before_, &before_);
        cpu_set_t one;
        CPU_ZERO(&one);
        for (std::size_t i = 0; i < CPU_SETSIZE; ++i)
            if (CPU_ISSET(i, &before_)) {
                CPU_SET(i, &one);
                break;
            }
        ::sched_setaffinity(0, sizeof one, &one);
    }
    ~on_one_cpu() { ::sched_setaffinity(0, sizeof before_, &before_); }

private:
    cpu_set_t before_;
};

void post_one_by_one(pool& p, long rounds) {
    std::binary_semaphore ran(0);
    for (long i = 0; i < rounds; ++i) {
        post(p, [&] { ran.release(); });
        ran.acquire();
    }
}

std::uint64_t times_parked(const pool& p) {
    std::uint64_t sum = 0;
    for (unsigned i = 0; i < p.workers(); ++i) sum += p.counters(i).parks;
    return sum;
}

// Every second post comes when a worker has just said that it sleeps; the others some time after
// the one before, up to twice what a worker spins for.
void post_while_it_parks(unsigned workers) {
    const weft_test::with_test_points here;
    const long rounds = weft_test::stress_count(1'000'000);
    pool p({.workers = workers});
    std::binary_semaphore ran(0);
    seeded_random random(1);
    for (long i = 0; i < rounds; ++i) {
        const std::uint64_t before = times_parked(p);
        post(p, [&] { ran.release(); });
        ran.acquire();
        if (i % 2 == 0) {
            while (times_parked(p) == before) std::this_thread::yield();
        } else {
            const std::chrono::nanoseconds pause(random.next() % 40'000);
            const auto until = std::chrono::steady_clock::now() + pause;
            while (std::chrono::steady_clock::now() < until) {}
        }
    }
    EXPECT_GE(times_parked(p), static_cast<std::uint64_t>(rounds / 4));
}

std::chrono::nanoseconds cpu_time() {
    rusage used{};
    ::getrusage(RUSAGE_SELF, &used);
    const auto of = [](timeval t) {
        return std::chrono::seconds(t.tv_sec) + std::chrono::microseconds(t.tv_usec);
    };
    return of(used.ru_utime) + of(used.ru_stime);
}

}  // namespace

WEFT_TEST("pool: runs what was posted from outside and from inside") {
    std::atomic<int> ran = 0;
    pool p({.workers = 3});
    for (int i = 0; i < 100; ++i)
        post(p, [&] {
            ++ran;
            post(p, [&] { ++ran; });
        });
    p.drain();
    CHECK(ran == 200);
    CHECK(p.alive() == 0);
}

WEFT_TEST("pool: has as many workers as it was told, else as many as there are CPUs") {
    CHECK(pool({.workers = 5}).workers() == 5);
    CHECK(pool().workers() == usable_cpus());
    CHECK(usable_cpus() >= 1);
    EXPECT_THROW(pool({.workers = 70000}), std::invalid_argument);
    EXPECT_THROW(pool({.workers = 1, .watchdog = -1ns}), std::invalid_argument);
}

WEFT_TEST("pool: one CPU is usable when the affinity says one") {
    const on_one_cpu here;
    CHECK(usable_cpus() == 1);
}

WEFT_TEST("pool: its threads are named") {
    pool p({.workers = 2, .name = "spinner"});
    std::string name(16, '\0');
    post(p, [&] { ::pthread_getname_np(::pthread_self(), name.data(), name.size()); });
    p.drain();
    name.resize(name.find('\0'));
    CHECK((name == "spinner-0" || name == "spinner-1"));
}

WEFT_TEST("pool: workers bound to CPUs stay on one each") {
    struct look final : runnable {
        runnable* run() noexcept override {
            ::sched_getaffinity(0, sizeof mine, &mine);
            done.count_down();
            return nullptr;
        }
        cpu_set_t mine;
        std::latch done{1};
    };
    std::vector<look> looks(usable_cpus());
    pool p({.workers = usable_cpus(), .bind_to_cpus = true});
    cpu_set_t all;
    CPU_ZERO(&all);
    for (std::size_t i = 0; i < looks.size(); ++i) {
        looks[i].bound_to = static_cast<std::uint16_t>(i + 1);
        p.post(&looks[i]);
    }
    for (look& one : looks) {
        one.done.wait();
        CHECK(CPU_COUNT(&one.mine) == 1);
        CPU_OR(&all, &all, &one.mine);
    }
    CHECK(CPU_COUNT(&all) == static_cast<int>(looks.size()));
}

WEFT_TEST("pool: one that is made on a bound worker has all CPUs of the process") {
    cpu_set_t whole;
    ::sched_getaffinity(0, sizeof whole, &whole);
    pool outer({.workers = usable_cpus(), .bind_to_cpus = true});
    std::atomic<unsigned> workers = 0;
    std::atomic<int> same = 0;
    post(outer, [&] {
        pool inner;
        workers = inner.workers();
        post(inner, [&] {
            cpu_set_t mine;
            ::sched_getaffinity(0, sizeof mine, &mine);
            same = CPU_EQUAL(&mine, &whole);
        });
        inner.drain();
    });
    outer.drain();
    CHECK(workers == usable_cpus());
    CHECK(same);
}

WEFT_TEST("pool: what is queued behind a busy worker is taken by another") {
    if (std::getenv("WEFT_FORCE_MIGRATE") != nullptr) return;  // nothing is taken: all is sent
    pool p({.workers = 2});
    std::latch others(10);
    post(p, [&] {
        for (int i = 0; i < 10; ++i) post(p, [&] { others.count_down(); });
        others.wait();  // the thread itself: this worker runs nothing meanwhile
    });
    p.drain();
    CHECK(p.counters(0).steals + p.counters(1).steals >= 1);
}

WEFT_TEST("pool: one that was deferred is taken when its worker does not get to it") {
    struct flag final : runnable {
        runnable* run() noexcept override {
            done.count_down();
            return nullptr;
        }
        std::latch done{1};
    } woken;
    pool p({.workers = 2});
    post(p, [&] {
        p.defer(&woken);
        post(p, [] {});  // somebody is told
        woken.done.wait();
    });
    p.drain();
}

WEFT_TEST("pool: one that was deferred is seen when a second displaces it and holds the worker") {
    struct first final : runnable {
        runnable* run() noexcept override {
            ran.count_down();
            return nullptr;
        }
        std::latch ran{1};
    } displaced;
    struct second final : runnable {
        runnable* run() noexcept override {
            other->ran.wait();
            done.count_down();
            return nullptr;
        }
        first* other = nullptr;
        std::latch done{1};
    } holder;
    holder.other = &displaced;
    struct starter final : runnable {
        runnable* run() noexcept override {
            while (home->counters(1).parks == 0) std::this_thread::yield();
            for (runnable* const one : both) home->defer(one);
            return nullptr;
        }
        pool* home = nullptr;
        std::array<runnable*, 2> both{};
    } one;
    pool p({.workers = 2});
    one.home = &p;
    one.both = {&displaced, &holder};
    one.bound_to = 1;
    p.post(&one);  // wakes that worker alone: the other sleeps
    holder.done.wait();
}

WEFT_TEST("pool: what is bound to a worker runs there and nowhere else") {
    struct bound final : runnable {
        runnable* run() noexcept override {
            where.insert(::pthread_self());
            if (--times == 0) {
                done.count_down();
                return nullptr;
            }
            home->post(this);
            return nullptr;
        }
        pool* home = nullptr;
        std::set<pthread_t> where;
        int times = 100;
        std::latch done{1};
    };
    pool p({.workers = 4});
    std::vector<std::unique_ptr<bound>> all;
    for (int i = 0; i < 8; ++i) {
        all.push_back(std::make_unique<bound>());
        all.back()->home = &p;
        all.back()->bound_to = static_cast<std::uint16_t>(i % 4 + 1);
        p.post(all.back().get());
    }
    std::set<pthread_t> threads;
    for (const auto& one : all) {
        one->done.wait();
        CHECK(one->where.size() == 1);
        threads.insert(one->where.begin(), one->where.end());
    }
    CHECK(threads.size() == 4);
}

WEFT_TEST("pool: a chain of transfers without end lets others run") {
    struct forever final : runnable {
        runnable* run() noexcept override { return stop ? nullptr : this; }
        std::atomic<bool> stop = false;
    } chain;
    pool p({.workers = 1});
    p.post(&chain);
    post(p, [&] { chain.stop = true; });
    p.drain();
    CHECK(chain.stop);
}

WEFT_TEST("pool: more than fits into its queues is run all the same") {
    for (const unsigned workers : {1U, 2U, 8U}) {
        std::atomic<std::size_t> ran = 0;
        pool p({.workers = workers});
        post(p, [&] {
            for (int i = 0; i < 5000; ++i) post(p, [&] { ++ran; });
        });
        p.drain();
        CHECK(ran == 5000);
    }
}

WEFT_TEST("pool: exceptions go to its handler") {
    std::atomic<int> caught = 0;
    pool p({.workers = 2, .unhandled = [&](std::exception_ptr, runnable&) { ++caught; }});
    post(p, [] { throw std::runtime_error("out"); });
    p.drain();
    CHECK(caught == 1);
}

WEFT_TEST("pool: drain waits for what others post meanwhile, and does not stop anybody") {
    pool p({.workers = 2});
    std::atomic<int> ran = 0;
    struct again final : runnable {
        runnable* run() noexcept override {
            ++*ran;
            if (--times > 0)
                home->post(this);
            else
                home->add_work(-1);
            return nullptr;
        }
        pool* home = nullptr;
        std::atomic<int>* ran = nullptr;
        int times = 1000;
    } chain;
    chain.home = &p;
    chain.ran = &ran;
    p.add_work(1);
    p.post(&chain);
    p.drain();
    CHECK(ran == 1000);
    p.drain();
}

WEFT_TEST("pool: shutdown says what has not ended when its time is over") {
    pool p({.workers = 2});
    p.add_work(1);
    CHECK(p.shutdown(std::chrono::nanoseconds::min()));
    const stuck_report late = p.shutdown(1ms);
    CHECK(late.waiters.size() == 1);
    p.add_work(-1);
    CHECK(!p.shutdown(10s));
}

WEFT_TEST("pool: called from inside itself it aborts by name") {
    weft_test::allow_threads_in_death_tests();
    EXPECT_DEATH(
        {
            pool inner({.workers = 1});
            post(inner, [&] { inner.drain(); });
            inner.drain();
        },
        "called from inside itself");
}

WEFT_TEST("pool: an idle one uses no CPU") {
    pool p({.workers = 8});
    post_one_by_one(p, 10);
    const auto before = cpu_time();
    std::this_thread::sleep_for(200ms);  // what is measured is this very time
    CHECK(cpu_time() - before < 10ms);
}

WEFT_TEST("pool: stress: a task posted while the last worker parks is run") {
    for (const unsigned workers : {1U, 2U, 8U}) post_while_it_parks(workers);
}

WEFT_TEST("pool: stress: the same with eight workers on one CPU") {
    const on_one_cpu here;
    post_while_it_parks(8);
}

WEFT_TEST("pool: stress: several threads post to one that keeps falling asleep") {
    const weft_test::with_test_points here;
    pool p({.workers = 2});
    const long rounds = weft_test::stress_count(1'000'000) / 4;
    std::vector<std::thread> posters;
    for (int t = 0; t < 3; ++t) posters.emplace_back([&] { post_one_by_one(p, rounds); });
    for (std::thread& one : posters) one.join();
    p.drain();
}

WEFT_TEST("pool: stress: pools are made and destroyed with work in flight") {
    std::atomic<std::size_t> ran = 0;
    const long rounds = weft_test::stress_count(500'000) / 50;
    for (long i = 0; i < rounds; ++i) {
        pool p({.workers = static_cast<unsigned>(i % 4 + 1)});
        for (int j = 0; j < 5; ++j)
            post(p, [&] {
                post(p, [&] { ++ran; });
                ++ran;
            });
    }
    CHECK(ran == static_cast<std::size_t>(rounds) * 10);
}

WEFT_TEST("pool: counters say what was done") {
    pool p({.workers = 2});
    for (int i = 0; i < 1000; ++i) post(p, [] {});
    p.drain();
    while (times_parked(p) < 2) std::this_thread::yield();  // counted after drain() knows of it
    CHECK(p.counters(0).dispatches + p.counters(1).dispatches == 1000);
    EXPECT_THROW(static_cast<void>(p.counters(2)), std::out_of_range);
}

namespace {

// What another thread may see of a look around, after which fewer dispatches are due than before.
std::uint64_t dispatches_amid_look(pool& p) {
    std::uint64_t seen = 0;
    post(p, [&] {
        detail::worker& here = *detail::this_thread_block().runs_for;
        const std::uint32_t due = here.span.exchange(1);
        seen = p.counters(0).dispatches;
        here.span = due;
    });
    p.drain();
    return seen;
}

}  // namespace

WEFT_TEST("pool: counters: read while the worker looks around, dispatches are about right") {
    pool p({.workers = 1});
    CHECK(dispatches_amid_look(p) <= 61);
    post_one_by_one(p, 1000);
    const std::uint64_t seen = dispatches_amid_look(p);
    CHECK(seen >= 1002 - 61);
    CHECK(seen <= 1002 + 61);
}

namespace {

// Runs f on worker 0 of two, while the other sleeps.
template <class F>
void beside_a_sleeper(pool& p, F f) {
    struct call final : runnable {
        call(pool& p, F& f) : home(p), function(f) { bound_to = 1; }
        runnable* run() noexcept override {
            while (home.counters(1).parks == 0) std::this_thread::yield();
            function();
            done.count_down();
            return nullptr;
        }
        pool& home;
        F& function;
        std::latch done{1};
    } one(p, f);
    p.post(&one);
    one.done.wait();
    p.drain();
}

}  // namespace

WEFT_TEST("pool: counters: whoever wakes a worker counts it, and what it sends to one") {
    struct letter final : runnable {
        runnable* run() noexcept override {
            ran.count_down();
            return nullptr;
        }
        std::latch ran{1};
    } sent;
    sent.bound_to = 2;
    pool p({.workers = 2});
    beside_a_sleeper(p, [&] {
        p.post(&sent);
        sent.ran.wait();
    });
    CHECK(p.counters(0).wakes == 1);
    CHECK(p.counters(0).remote_wakes == 1);
    CHECK(p.counters(1).wakes + p.counters(1).remote_wakes == 0);
}

WEFT_TEST("pool: counters: a post that wakes another worker is a wake, and nothing is sent") {
    if (std::getenv("WEFT_FORCE_MIGRATE") != nullptr) return;  // all is sent
    pool p({.workers = 2});
    std::latch ran(1);
    beside_a_sleeper(p, [&] {
        post(p, [&] { ran.count_down(); });
        ran.wait();
    });
    CHECK(p.counters(0).wakes == 1);
    CHECK(p.counters(0).remote_wakes == 0);
}

WEFT_TEST("pool: counters: what finds no place in the ring is counted as overflow") {
    if (std::getenv("WEFT_FORCE_MIGRATE") != nullptr) return;  // all is sent
    pool p({.workers = 2});
    std::atomic<bool> is_held = false;
    std::atomic<bool> go_on = false;
    beside_a_sleeper(p, [&] {
        post(p, [&] {  // takes nothing from the ring meanwhile
            is_held = true;
            while (!go_on) std::this_thread::yield();
        });
        while (!is_held) std::this_thread::yield();
        for (int i = 0; i < 5000; ++i) post(p, [] {});
        CHECK(p.counters(0).overflow >= 5000 - 1024);
        go_on = true;
    });
}

WEFT_TEST("pool: counters: the time asleep grows while a worker sleeps") {
    pool p({.workers = 1});
    while (p.counters(0).parks == 0) std::this_thread::yield();
    const auto before = p.counters(0).idle;
    while (p.counters(0).idle < before + 1ms) std::this_thread::yield();
    CHECK(p.counters(0).parks == 1);
    const auto asleep = p.counters(0).idle;
    post_one_by_one(p, 1);
    CHECK(p.counters(0).idle >= asleep);
}

WEFT_TEST("pool: one that looks for its wake before it leaves has no more turns than a chain has") {
    if (usable_cpus() == 1) GTEST_SKIP() << "with one CPU nobody looks before he leaves";
    pool p({.workers = 2});
    std::uint32_t stayed = 0;
    beside_a_sleeper(p, [&] {
        detail::worker& here = *detail::this_thread_block().runs_for;
        const auto has_come = [](const void*) noexcept { return true; };
        while (stayed < 1000 && here.await_closely(has_come, nullptr)) ++stayed;
    });
    EXPECT_GT(stayed, 0U);  // else nothing is tested
    EXPECT_LE(stayed, detail::worker::ticks_between);
}
