// coroutine_exception_test.cpp - exceptions in coroutines: out of resume(), and over a yield.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/coroutine/coroutine.hpp>

#include <exception>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "backends.hpp"
#include "exception_support.hpp"

using namespace weft_test;
using weft::this_coroutine::yield;

namespace {

// For the bodies of exception_support.hpp.
struct this_body {
    void pause() { yield(); }
};

// The number of the problem that comes out of resume(), or 0.
template <class Coroutine>
int problem_of_resume(Coroutine& c) {
    try {
        c.resume();
        return 0;
    } catch (const problem& p) { return p.number; }
}

[[gnu::noinline]] void throw_at_depth(int depth, std::vector<int>& unwound) {
    const at_exit note{[&unwound, depth] { unwound.push_back(depth); }};
    if (depth == 0) throw problem{5};
    throw_at_depth(depth - 1, unwound);
}

}  // namespace

BACKEND_TEST("exceptions: one that leaves the body comes out of resume, and it is done") {
    std::vector<int> unwound;
    Coroutine c(options(), [&] {
        yield();
        throw_at_depth(3, unwound);
    });
    CHECK(problem_of_resume(c) == 0);
    CHECK(!c.done());
    CHECK(problem_of_resume(c) == 5);
    CHECK(c.done());
    CHECK((unwound == std::vector{0, 1, 2, 3}));
    CHECK(nothing_in_flight());
}

BACKEND_TEST("exceptions: one in the first resume comes out of it") {
    Coroutine c(options(), [] { throw std::runtime_error("at once"); });
    EXPECT_THROW(c.resume(), std::runtime_error);
    CHECK(c.done());
}

BACKEND_TEST("exceptions: any type may come out of resume, also what is no class") {
    Coroutine number(options(), [] { throw 42; });
    int caught = 0;
    try {
        number.resume();
    } catch (int n) { caught = n; }
    CHECK(caught == 42);
}

BACKEND_TEST("exceptions: what the body catches stays inside") {
    int caught = 0;
    Coroutine c(options(), [&] {
        for (int i = 1; i <= 3; ++i) {
            try {
                throw problem{i};
            } catch (const problem& p) { caught += p.number; }
            yield();
        }
    });
    for (int i = 0; i < 4; ++i) CHECK(problem_of_resume(c) == 0);
    CHECK(c.done());
    CHECK(caught == 6);
}

BACKEND_TEST("exceptions: one that leaves a coroutine goes through its resumer to the next") {
    std::string log;
    Coroutine inner(options(), [&] {
        const at_exit note{[&] { log += 'i'; }};
        throw problem{1};
    });
    Coroutine middle(options(), [&] {
        const at_exit note{[&] { log += 'm'; }};
        inner.resume();
    });
    Coroutine outer(options(), [&] {
        try {
            middle.resume();
        } catch (const problem& p) { log += static_cast<char>('0' + p.number); }
        yield();
        log += 'o';
    });
    outer.resume();
    CHECK(log == "im1");
    CHECK(inner.done());
    CHECK(middle.done());
    outer.resume();
    CHECK(log == "im1o");
}

BACKEND_TEST("exceptions: a catch block may yield, and rethrow afterwards") {
    int arrived = 0;
    Coroutine c(options(), [&] {
        this_body me;
        arrived = pause_and_rethrow(me, 7);
    });
    c.resume();
    CHECK(nothing_in_flight());
    c.resume();
    CHECK(arrived == 7);
    CHECK(c.done());
}

BACKEND_TEST("exceptions: what a catch block rethrows after a yield comes out of resume") {
    Coroutine c(options(), [] {
        try {
            throw problem{8};
        } catch (const problem&) {
            yield();
            throw;
        }
    });
    CHECK(problem_of_resume(c) == 0);
    CHECK(problem_of_resume(c) == 8);
    CHECK(c.done());
}

BACKEND_TEST("exceptions: many coroutines, each inside a catch block, keep theirs apart") {
    std::vector<int> seen(5);
    std::vector<Coroutine> all;
    for (int i = 1; i <= 5; ++i) {
        all.emplace_back(options(), [&mine = seen[static_cast<std::size_t>(i - 1)], i] {
            try {
                throw problem{i};
            } catch (const problem&) {
                yield();
                mine = current_problem();
                yield();
                throw;
            }
        });
    }
    for (Coroutine& c : all) c.resume();
    try {
        throw problem{99};
    } catch (const problem&) {
        for (Coroutine& c : all) c.resume();
        CHECK(current_problem() == 99);
    }
    CHECK((seen == std::vector{1, 2, 3, 4, 5}));
    for (int i = 5; i >= 1; --i)
        CHECK(problem_of_resume(all[static_cast<std::size_t>(i - 1)]) == i);
}

BACKEND_TEST("exceptions: a body that starts inside somebody's catch block handles nothing") {
    int inside = -1;
    int uncaught = -1;
    Coroutine c(options(), [&] {
        inside = current_problem();
        uncaught = std::uncaught_exceptions();
    });
    try {
        throw problem{1};
    } catch (const problem&) {
        c.resume();
        CHECK(current_problem() == 1);
    }
    CHECK(inside == 0);
    CHECK(uncaught == 0);
}

BACKEND_TEST("exceptions: a destructor may yield while an exception is in flight") {
    int arrived = 0;
    Coroutine c(options(), [&] {
        this_body me;
        arrived = pause_and_unwind(me, 9);
    });
    c.resume();
    CHECK(std::uncaught_exceptions() == 0);
    c.resume();
    CHECK(arrived == 9);
}

BACKEND_TEST(
    "exceptions: uncaught_exceptions is the coroutine's own, also when resumed in unwinding") {
    std::vector<int> inside;
    Coroutine c(options(), [&] {
        inside.push_back(std::uncaught_exceptions());
        yield();
        inside.push_back(std::uncaught_exceptions());
    });
    std::vector<int> outside;
    try {
        const at_exit resumer{[&] {
            outside.push_back(std::uncaught_exceptions());
            c.resume();
            outside.push_back(std::uncaught_exceptions());
        }};
        throw problem{1};
    } catch (const problem&) {}
    c.resume();
    CHECK((inside == std::vector{0, 0}));
    CHECK((outside == std::vector{1, 1}));
}

BACKEND_TEST("exceptions: a catch block goes on in another thread") {
    int arrived = 0;
    Coroutine c(options(), [&] {
        this_body me;
        arrived = pause_and_rethrow(me, 3) + pause_and_unwind(me, 30);
    });
    c.resume();
    std::thread([&] { c.resume(); }).join();
    std::thread([&] { c.resume(); }).join();
    CHECK(arrived == 33);
    CHECK(c.done());
    CHECK(nothing_in_flight());
}

BACKEND_TEST("exceptions: one coroutine fails in another's handler, which then rethrows its own") {
    Coroutine inner(options(), [] { throw problem{2}; });
    int inner_problem = 0;
    Coroutine outer(options(), [&] {
        try {
            throw problem{1};
        } catch (const problem&) {
            yield();
            inner_problem = problem_of_resume(inner);
            throw;
        }
    });
    CHECK(problem_of_resume(outer) == 0);
    CHECK(problem_of_resume(outer) == 1);
    CHECK(inner_problem == 2);
}

BACKEND_TEST("exceptions: the one that came out is destroyed by whoever catches it") {
    struct counted {
        explicit counted(int& count) : count_(count) { ++count_; }
        counted(const counted& other) : count_(other.count_) { ++count_; }
        ~counted() { --count_; }
        int& count_;
    };
    int alive = 0;
    {
        Coroutine c(options(), [&] { throw counted(alive); });
        try {
            c.resume();
        } catch (const counted&) { CHECK(alive == 1); }
        CHECK(alive == 0);
    }
    CHECK(alive == 0);
}

BACKEND_TEST("exceptions: stress, thrown out of and inside coroutines in turn") {
    const long count = stress_count(500'000);
    long inside = 0;
    long outside = 0;
    Coroutine steady(options(), [&] {
        for (long i = 0; i < count; ++i) {
            try {
                throw problem{1};
            } catch (const problem& p) {
                yield();
                inside += p.number;
            }
        }
    });
    while (!steady.done()) {
        steady.resume();
        Coroutine brief(options(), [] { throw problem{1}; });
        outside += problem_of_resume(brief);
    }
    CHECK(inside == count);
    CHECK(outside == count + 1);
}
