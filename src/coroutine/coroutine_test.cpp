// coroutine_test.cpp - what a coroutine does in an ordinary life, the same with every back end.
//
// Exceptions, destruction, misuse and failures are in coroutine_*_test.cpp beside this file.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/coroutine/coroutine.hpp>

#include <array>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "backends.hpp"

using namespace weft_test;
using weft::this_coroutine::yield;

namespace {

static_assert(weft::coroutine_backend<weft::own_backend>);
static_assert(weft::coroutine_backend<weft::ucontext_backend>);
static_assert(weft::coroutine_backend<weft::thread_backend>);
static_assert(weft::coroutine_backend<weft::swapped_backend>);
static_assert(std::is_nothrow_move_constructible_v<weft::coroutine>);
static_assert(std::is_nothrow_move_assignable_v<weft::coroutine>);
static_assert(!std::is_copy_constructible_v<weft::coroutine>);
static_assert(!std::is_constructible_v<weft::coroutine, int>);

template <class Coroutine>
int resume_to_the_end(Coroutine& c) {
    int times = 0;
    for (; !c.done(); ++times) c.resume();
    return times;
}

// Not a tail call, so that each level has a frame.
[[gnu::noinline]] int yield_at_depth(int depth, std::string& log) {
    if (depth == 0) {
        log += 'y';
        yield();
        log += 'r';
        return 0;
    }
    volatile int kept = depth;
    const int below = yield_at_depth(depth - 1, log);
    return below + (kept == depth ? 1 : -1000);
}

}  // namespace

BACKEND_TEST("coroutine: runs when it is resumed, until it yields or ends") {
    std::string log;
    Coroutine c(options(), [&] {
        log += 'a';
        yield();
        log += 'b';
        yield();
        log += 'c';
    });
    CHECK(log.empty());
    for (const char* expected : {"1a", "1a2b", "1a2b3c"}) {
        CHECK(!c.done());
        log += static_cast<char>('1' + log.size() / 2);
        c.resume();
        CHECK(log == expected);
    }
    CHECK(c.done());
    CHECK(static_cast<bool>(c));
}

BACKEND_TEST("coroutine: one that never yields ends in its first resume") {
    int runs = 0;
    Coroutine c(options(), [&] { ++runs; });
    c.resume();
    CHECK(c.done());
    CHECK(runs == 1);
}

BACKEND_TEST("coroutine: an empty one is done and has no name") {
    Coroutine c;
    CHECK(c.done());
    CHECK(!c);
    CHECK(c.name().empty());
    CHECK(c.stack_high_water() == 0);
}

BACKEND_TEST("coroutine: yields from deep inside, and goes on there") {
    std::string log;
    int depth = 0;
    Coroutine c(options(), [&] {
        for (int i = 0; i < 3; ++i) depth += yield_at_depth(10 * i, log);
    });
    CHECK(resume_to_the_end(c) == 4);
    CHECK(log == "yryryr");
    CHECK(depth == 30);
}

BACKEND_TEST("coroutine: keeps its locals, whole and floating, over every yield") {
    double sum = 0;
    int bytes = 0;
    Coroutine c(options(), [&] {
        std::array<int, 100> whole{};
        std::iota(whole.begin(), whole.end(), 0);
        double fraction = 0.5;
        for (int& one : whole) {
            yield();
            one += 1;
            fraction += 0.25;
        }
        sum = fraction;
        bytes = std::accumulate(whole.begin(), whole.end(), 0);
    });
    CHECK(resume_to_the_end(c) == 101);
    CHECK(sum == 25.5);
    CHECK(bytes == 5050);
}

BACKEND_TEST("coroutine: the static yield of its type is the same yield") {
    int steps = 0;
    Coroutine c(options(), [&] {
        ++steps;
        Coroutine::yield();
        ++steps;
    });
    c.resume();
    CHECK(steps == 1);
    c.resume();
    CHECK(steps == 2);
}

BACKEND_TEST("coroutine: one resumes another, and yield leaves the innermost") {
    std::string log;
    Coroutine inner(options(), [&] {
        log += 'i';
        yield();
        log += 'j';
    });
    Coroutine outer(options(), [&] {
        log += 'o';
        inner.resume();
        log += 'p';
        yield();
        log += 'q';
        inner.resume();
        log += 'r';
    });
    outer.resume();
    CHECK(log == "oip");
    outer.resume();
    CHECK(log == "oipqjr");
    CHECK(inner.done());
    CHECK(outer.done());
}

BACKEND_TEST("coroutine: one that was resumed inside another can go on outside, and back") {
    std::string log;
    Coroutine inner(options(), [&] {
        for (char c = 'a'; c < 'e'; ++c) {
            log += c;
            yield();
        }
    });
    Coroutine outer(options(), [&] {
        inner.resume();
        log += '1';
        yield();
        inner.resume();
        log += '2';
    });
    outer.resume();
    inner.resume();
    outer.resume();
    inner.resume();
    CHECK(log == "a1bc2d");
    CHECK(outer.done());
    CHECK(!inner.done());
}

BACKEND_TEST("coroutine: lives on the stack of another, resumed there alone") {
    std::string log;
    Coroutine outer(options(), [&log, &options] {
        Coroutine inner(options(), [&log] {
            log += 'i';
            yield();
            log += 'j';
        });
        inner.resume();
        yield();
        log += 'o';
        inner.resume();
    });
    outer.resume();
    outer.resume();
    CHECK(log == "ioj");
    CHECK(outer.done());
}

BACKEND_TEST("coroutine: a chain of ten, each resumed by the one before, unwinds in order") {
    std::string log;
    std::vector<Coroutine> chain(10);
    for (std::size_t i = 0; i < chain.size(); ++i) {
        chain[i] = Coroutine(options(), [&log, &chain, i] {
            log += static_cast<char>('0' + i);
            if (i + 1 < chain.size()) chain[i + 1].resume();
            yield();
            log += static_cast<char>('a' + i);
            if (i + 1 < chain.size()) chain[i + 1].resume();
        });
    }
    chain[0].resume();
    CHECK(log == "0123456789");
    chain[0].resume();
    CHECK(log == "0123456789abcdefghij");
    for (const Coroutine& c : chain) CHECK(c.done());
}

BACKEND_TEST("coroutine: resumes those of every other back end, and is resumed by them") {
    std::string log;
    backend_fixture<weft::thread_coroutine> threads;
    backend_fixture<weft::swapped_coroutine> shared;
    Coroutine innermost(options(), [&] {
        log += '5';
        yield();
        log += 'e';
    });
    weft::swapped_coroutine swapped(shared(), [&] {
        log += '4';
        innermost.resume();
        yield();
        log += 'd';
        innermost.resume();
    });
    weft::thread_coroutine thread(threads(), [&] {
        log += '3';
        swapped.resume();
        yield();
        log += 'c';
        swapped.resume();
    });
    weft::ucontext_coroutine ucontext([&] {
        log += '2';
        thread.resume();
        yield();
        log += 'b';
        thread.resume();
    });
    weft::coroutine own([&] {
        log += '1';
        ucontext.resume();
        yield();
        log += 'a';
        ucontext.resume();
    });
    own.resume();
    CHECK(log == "12345");
    own.resume();
    CHECK(log == "12345abcde");
    CHECK(innermost.done());
    CHECK(own.done());
}

BACKEND_TEST("coroutine: takes a callable that can only be moved") {
    int seen = 0;
    Coroutine c(options(), [&seen, value = std::make_unique<int>(7)] {
        yield();
        seen = *value;
    });
    CHECK(resume_to_the_end(c) == 2);
    CHECK(seen == 7);
}

BACKEND_TEST("coroutine: takes a callable larger than its stack") {
    std::size_t sum = 0;
    auto many = std::make_unique<std::array<unsigned char, 2'000'000>>();
    many->fill(1);
    struct body {
        std::array<unsigned char, 2'000'000> bytes;
        std::size_t& sum;
        void operator()() const {
            yield();
            for (const unsigned char b : bytes) sum += b;
        }
    };
    const auto large = std::make_unique<body>(body{*many, sum});
    Coroutine c(options(), *large);
    CHECK(resume_to_the_end(c) == 2);
    CHECK(sum == 2'000'000);
}

BACKEND_TEST("coroutine: takes a plain function") {
    static int calls = 0;
    calls = 0;
    Coroutine c(
        options(), +[] { ++calls; });
    c.resume();
    CHECK(calls == 1);
}

BACKEND_TEST("coroutine: the object may be moved and swapped while the body is suspended") {
    std::string log;
    const auto twice = [&log](char c) {
        return [&log, c] {
            log += c;
            yield();
            log += c;
        };
    };
    Coroutine first(options(), twice('1'));
    Coroutine second(options(), twice('2'));
    first.resume();
    second.resume();
    Coroutine moved(std::move(first));
    CHECK(!first);
    CHECK(first.done());
    moved.swap(second);
    first = std::move(second);
    first.resume();
    moved.resume();
    CHECK(log == "1212");
    CHECK(first.done());
    CHECK(moved.done());
}

BACKEND_TEST("coroutine: may be resumed by another thread each time") {
    int steps = 0;
    Coroutine c(options(), [&] {
        for (int local = 0; local < 6; ++local) {
            steps = local + 1;
            yield();
        }
    });
    while (!c.done()) {
        c.resume();
        if (!c.done()) std::thread([&] { c.resume(); }).join();
    }
    CHECK(steps == 6);
}

BACKEND_TEST("coroutine: a thousand take turns") {
    const std::size_t many = is_thread<Coroutine> ? 200 : 1000;
    constexpr int rounds = 5;
    std::vector<int> counts(many);
    std::vector<Coroutine> all;
    for (std::size_t i = 0; i < many; ++i) {
        all.emplace_back(options(), [&count = counts[i]] {
            for (int local = 1; local <= rounds; ++local) {
                count = local;
                yield();
            }
        });
    }
    for (int round = 1; round <= rounds; ++round) {
        for (std::size_t i = 0; i < many; ++i) {
            all[i].resume();
            CHECK(counts[i] == round);
        }
    }
    for (std::size_t i = many; i-- > 0;) all[i].resume();
    for (const Coroutine& c : all) CHECK(c.done());
}

BACKEND_TEST("coroutine: keeps the first 31 bytes of its name") {
    std::string name = "collector";
    const Coroutine short_name(options({.name = name}), [] {});
    name = std::string(31, 'x') + "yz";
    const Coroutine long_name(options({.name = name}), [] {});
    name.clear();
    CHECK(short_name.name() == "collector");
    CHECK(long_name.name() == std::string(31, 'x'));
    CHECK(Coroutine(options(), [] {}).name().empty());
}

BACKEND_TEST("coroutine: stress, coroutines made, resumed and dropped at random") {
    std::vector<Coroutine> all(50);
    std::vector<int> counts(all.size());
    std::vector<int> expected(all.size());
    unsigned random = 1;
    for (long i = 0; i < stress_count(1'000'000); ++i) {
        random = random * 1664525 + 1013904223;
        const std::size_t which = (random >> 16) % all.size();
        Coroutine& c = all[which];
        if (c.done() || (random >> 8) % 64 == 0) {
            counts[which] = expected[which] = 0;
            c = Coroutine(options(), [&count = counts[which], length = (random >> 24) % 20] {
                for (unsigned local = 0; local < length; ++local) {
                    count = static_cast<int>(local) + 1;
                    yield();
                }
            });
        } else {
            c.resume();
            if (!c.done()) ++expected[which];
            ASSERT_EQ(counts[which], expected[which]);
        }
    }
}
