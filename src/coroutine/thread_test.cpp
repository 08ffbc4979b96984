// thread_test.cpp - the thread back end: who runs where and when, and what becomes of the threads.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/coroutine/coroutine.hpp>
#include <weft/coroutine/coroutine_block.hpp>
#include <weft/coroutine/thread_cache.hpp>

#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "backends.hpp"
#include "exception_support.hpp"

using namespace weft_test;
using weft::thread_cache;
using weft::thread_coroutine;
using weft::this_coroutine::yield;

namespace {

std::string name_of_this_thread() {
    char name[16] = {};
    ::pthread_getname_np(::pthread_self(), name, sizeof name);
    return name;
}

std::size_t stack_size_of_this_thread() {
    pthread_attr_t attributes;
    if (::pthread_getattr_np(::pthread_self(), &attributes) != 0) return 0;
    std::size_t size = 0;
    void* low = nullptr;
    ::pthread_attr_getstack(&attributes, &low, &size);
    ::pthread_attr_destroy(&attributes);
    return size;
}

// How many threads have ended that asked to be counted: thread_locals are destroyed at the end.
std::atomic<int> ended_threads = 0;

struct counted_at_end {
    bool asked = false;
    ~counted_at_end() {
        if (asked) ended_threads.fetch_add(1);
    }
};
thread_local counted_at_end end_of_this_thread;

void count_the_end_of_this_thread() { end_of_this_thread.asked = true; }

}  // namespace

WEFT_TEST("thread: each body has a thread of its own, the same over its whole life") {
    std::vector<std::vector<std::thread::id>> seen(3);
    std::vector<thread_coroutine> all;
    for (auto& mine : seen) {
        all.emplace_back([&mine] {
            for (int i = 0; i < 3; ++i) {
                mine.push_back(std::this_thread::get_id());
                yield();
            }
        });
    }
    for (int i = 0; i < 3; ++i) {
        for (thread_coroutine& c : all) c.resume();
    }
    std::set<std::thread::id> different{std::this_thread::get_id()};
    for (const auto& mine : seen) {
        CHECK((mine == std::vector<std::thread::id>(3, mine[0])));
        different.insert(mine[0]);
    }
    CHECK(different.size() == 4);
}

WEFT_TEST("thread: a body stays on its thread, whoever resumes it") {
    std::vector<std::thread::id> seen;
    thread_coroutine c([&] {
        for (int i = 0; i < 4; ++i) {
            seen.push_back(std::this_thread::get_id());
            yield();
        }
    });
    c.resume();
    for (int i = 0; i < 3; ++i) std::thread([&] { c.resume(); }).join();
    CHECK((seen == std::vector<std::thread::id>(4, seen[0])));
}

WEFT_TEST("thread: one that resumes another waits for it") {
    thread_cache threads;
    std::string log;
    thread_coroutine inner({.threads = &threads}, [&] {
        log += '2';
        yield();
        log += '4';
    });
    thread_coroutine outer({.threads = &threads}, [&] {
        log += '1';
        inner.resume();
        log += '3';
        inner.resume();
        log += '5';
    });
    outer.resume();
    CHECK(log == "12345");
}

WEFT_TEST("thread: without a cache the thread is joined when the body has ended") {
    const int before = ended_threads.load();
    thread_coroutine c([] {
        count_the_end_of_this_thread();
        yield();
    });
    c.resume();
    CHECK(ended_threads.load() == before);
    c.resume();
    CHECK(c.done());
    CHECK(ended_threads.load() == before + 1);
}

WEFT_TEST("thread: without a cache the thread of one that is destroyed is joined") {
    const int before = ended_threads.load();
    {
        thread_coroutine c([] {
            count_the_end_of_this_thread();
            yield();
        });
        c.resume();
    }
    CHECK(ended_threads.load() == before + 1);
}

WEFT_TEST(
    "thread: a cached thread serves the next coroutine, also after an exception or unwinding") {
    thread_cache threads;
    std::set<std::thread::id> seen;
    for (int i = 0; i < 30; ++i) {
        thread_coroutine c({.threads = &threads}, [&] {
            seen.insert(std::this_thread::get_id());
            if (i % 3 == 1) throw problem{1};
            if (i % 3 == 2) yield();
        });
        CHECK(threads.idle() == 0);
        try {
            c.resume();
        } catch (const problem&) {}
    }
    CHECK(seen.size() == 1);
    CHECK(threads.started() == 1);
    CHECK(threads.idle() == 1);
}

WEFT_TEST("thread: of several cached threads the one given back last serves the next coroutine") {
    thread_cache threads;
    std::vector<std::thread::id> seen;
    const auto note = [&seen] { seen.push_back(std::this_thread::get_id()); };
    {
        std::vector<thread_coroutine> all;
        for (int i = 0; i < 4; ++i)
            all.emplace_back(weft::coroutine_options{.threads = &threads}, note);
        for (const std::size_t i : {3U, 1U, 0U, 2U}) all[i].resume();
    }
    const std::thread::id last = seen.back();
    seen.clear();
    for (int i = 0; i < 4; ++i) thread_coroutine({.threads = &threads}, note).resume();
    CHECK((seen == std::vector<std::thread::id>(4, last)));
}

WEFT_TEST("thread: one that was never resumed gives its thread back as well") {
    thread_cache threads;
    for (int i = 0; i < 10; ++i) const thread_coroutine c({.threads = &threads}, [] {});
    CHECK(threads.started() == 1);
    for (int i = 0; i < 10; ++i) const thread_coroutine c([] {});
}

WEFT_TEST("thread: a cached thread serves whoever asks for no more stack than it has") {
    thread_cache threads;
    const auto run = [&](std::size_t stack_size) {
        thread_coroutine c({.stack_size = stack_size, .threads = &threads}, [] {});
        c.resume();
    };
    run(200'000);
    run(100'000);
    run(200'000);
    CHECK(threads.started() == 1);
    run(400'000);
    CHECK(threads.started() == 2);
    run(400'000);
    run(200'000);
    CHECK(threads.started() == 2);
    CHECK(threads.idle() == 2);
}

WEFT_TEST("thread: a cache starts no more threads than are needed at once") {
    thread_cache threads;
    for (int round = 0; round < 5; ++round) {
        std::vector<thread_coroutine> all;
        for (int i = 0; i < 4; ++i) {
            all.emplace_back(weft::coroutine_options{.threads = &threads}, [] { yield(); });
            all.back().resume();
        }
    }
    CHECK(threads.started() == 4);
    CHECK(threads.idle() == 4);
}

WEFT_TEST("thread: a cache joins its threads before it is gone") {
    const int before = ended_threads.load();
    {
        thread_cache threads;
        std::vector<thread_coroutine> all;
        for (int i = 0; i < 3; ++i) {
            all.emplace_back(weft::coroutine_options{.threads = &threads},
                             [] { count_the_end_of_this_thread(); });
        }
        for (thread_coroutine& c : all) c.resume();
        CHECK(ended_threads.load() == before);
    }
    CHECK(ended_threads.load() == before + 3);
}

WEFT_TEST("thread: a cache that goes before its coroutines is a mistake with a name") {
    allow_threads_in_death_tests();
    const auto mistake = [] {
        auto threads = std::make_unique<thread_cache>();
        const thread_coroutine c({.threads = threads.get()}, [] {});
        threads.reset();
    };
    EXPECT_DEATH(mistake(), "weft: thread_cache: destroyed while coroutines use its threads");
}

WEFT_TEST("thread: has the coroutine's name, as far as the system keeps it") {
    thread_cache threads;
    std::string short_name;
    std::string long_name;
    thread_coroutine a({.name = "collector", .threads = &threads},
                       [&] { short_name = name_of_this_thread(); });
    a.resume();
    thread_coroutine b({.name = "the collector of old news", .threads = &threads},
                       [&] { long_name = name_of_this_thread(); });
    b.resume();
    CHECK(short_name == "collector");
    CHECK(long_name == "the collector o");
    CHECK(b.name() == "the collector of old news");
    CHECK(threads.started() == 1);
}

WEFT_TEST("thread: a cached thread does not keep the name of a coroutine that ended") {
    thread_cache threads;
    const std::string before = name_of_this_thread();
    std::string after = "none";
    thread_coroutine named({.name = "collector", .threads = &threads}, [] {});
    named.resume();
    thread_coroutine nameless({.threads = &threads}, [&] { after = name_of_this_thread(); });
    nameless.resume();
    CHECK(after == before);
    CHECK(threads.started() == 1);
}

WEFT_TEST("thread: has at least the stack that was asked for") {
    for (const std::size_t asked : {16'384U, 100'000U, 3'000'000U}) {
        std::size_t size = 0;
        thread_coroutine c({.stack_size = asked}, [&] { size = stack_size_of_this_thread(); });
        c.resume();
        CHECK(size >= asked);
    }
}

WEFT_TEST("thread: two hundred threads take turns") {
    constexpr std::size_t many = 200;
    thread_cache threads;
    std::vector<int> counts(many);
    {
        std::vector<thread_coroutine> all;
        for (int& count : counts) {
            all.emplace_back(weft::coroutine_options{.threads = &threads}, [&count] {
                for (;;) {
                    ++count;
                    yield();
                }
            });
        }
        for (int round = 0; round < 3; ++round) {
            for (thread_coroutine& c : all) c.resume();
        }
    }
    CHECK((counts == std::vector<int>(many, 3)));
    CHECK(threads.started() == many);
    CHECK(threads.idle() == many);
}

// Two lines that travel at a hand-over, and not one, are half of its speed.
WEFT_TEST("thread: what a resumer writes is not on the cache line that the body reads") {
    struct block final : weft::basic_coroutine_block<weft::thread_backend> {
        block() : basic_coroutine_block(weft::coroutine_options()) {}
        void run() override {}
        weft::detail::resumed_coroutine<weft::thread_backend>& parts() { return *this; }
        char callable = 0;  // where a coroutine has it
    } made;
    const auto address = [](const auto& member) {
        return reinterpret_cast<std::uintptr_t>(&member);
    };
    constexpr std::size_t line = 64;
    const auto& parts = made.parts();
    for (const std::uintptr_t written : {address(parts.now), address(parts.outer)}) {
        CHECK(written >= address(parts.stack_low) + 8 + line);  // and the role behind it
        CHECK(written >= address(parts.error) + line);
        CHECK(written >= address(parts.unwinding) + line);
        CHECK(address(made.backend()) >= written + line);
        CHECK(address(made.callable) >= written + line);
    }
}

WEFT_TEST("thread: stress on one cache from several threads at once") {
    const long rounds = stress_count(100'000);
    thread_cache threads;
    std::vector<long> sums(3);
    std::vector<std::thread> users;
    for (long& sum : sums) {
        users.emplace_back([&threads, &sum, rounds] {
            for (long i = 0; i < rounds; ++i) {
                thread_coroutine c({.threads = &threads}, [&sum] {
                    ++sum;
                    yield();
                    ++sum;
                });
                c.resume();
                if (i % 2 == 0) c.resume();
            }
        });
    }
    for (std::thread& user : users) user.join();
    for (const long sum : sums) CHECK(sum == rounds + (rounds + 1) / 2);
    CHECK(threads.started() <= 3);
    CHECK(threads.idle() == threads.started());
}
