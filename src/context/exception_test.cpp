// exception_test.cpp - a context may switch inside a catch block and inside a destructor that runs
// because of an exception; each keeps what is thrown and caught in it.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/context/context.hpp>

#include <cstdint>
#include <exception>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "context_support.hpp"
#include "exception_support.hpp"

using namespace weft_test;

CONTEXT_TEST("exceptions: a context pauses in a catch block and rethrows") {
    int arrived = 0;
    stepper<Context> body([&](auto& me) { arrived = pause_and_rethrow(me, 7); });
    body.step();
    CHECK(nothing_in_flight());
    body.step();
    CHECK(arrived == 7);
    CHECK(nothing_in_flight());
    CHECK(body.done());
}

CONTEXT_TEST("exceptions: two contexts, each in a catch block, rethrow their own") {
    int first = 0;
    int second = 0;
    stepper<Context> one([&](auto& me) { first = pause_and_rethrow(me, 1); });
    stepper<Context> two([&](auto& me) { second = pause_and_rethrow(me, 2); });
    one.step();
    two.step();
    CHECK(nothing_in_flight());
    one.step();  // not the one that threw last
    CHECK(first == 1);
    two.step();
    CHECK(second == 2);
}

CONTEXT_TEST("exceptions: one in a catch block passes straight to another in a catch block") {
    std::vector<int> seen;
    stepper<Context>* partner = nullptr;
    stepper<Context> two([&](auto& me) {
        try {
            throw problem{2};
        } catch (const problem&) {
            me.pass_to(*partner);
            seen.push_back(current_problem());
        }
    });
    stepper<Context> one([&](auto& me) {
        try {
            throw problem{1};
        } catch (const problem&) {
            me.pass_to(two);
            seen.push_back(current_problem());
        }
        me.pass_to(two);
    });
    partner = &one;
    one.step();
    CHECK((seen == std::vector{1, 2}));
    CHECK(nothing_in_flight());
}

CONTEXT_TEST("exceptions: a context pauses in nested catch blocks") {
    std::vector<int> seen;
    stepper<Context> body([&](auto& me) {
        try {
            throw problem{1};
        } catch (const problem&) {
            try {
                throw problem{2};
            } catch (const problem&) {
                me.pause();
                seen.push_back(current_problem());
                try {
                    throw;
                } catch (const problem& p) {
                    me.pause();
                    seen.push_back(p.number);
                }
            }
            me.pause();
            seen.push_back(current_problem());
            try {
                throw;
            } catch (const problem& p) { seen.push_back(p.number * 10); }
        }
        seen.push_back(current_problem());
    });
    while (!body.done()) {
        body.step();
        CHECK(nothing_in_flight());
    }
    CHECK((seen == std::vector{2, 2, 1, 10, 0}));
}

CONTEXT_TEST("exceptions: a context pauses in a destructor during unwinding") {
    int arrived = 0;
    stepper<Context> body([&](auto& me) { arrived = pause_and_unwind(me, 5); });
    body.step();
    CHECK(nothing_in_flight());
    try {
        throw problem{6};  // one of our own meanwhile
    } catch (const problem&) { CHECK(current_problem() == 6); }
    body.step();
    CHECK(arrived == 5);
    CHECK(body.done());
}

CONTEXT_TEST("exceptions: two contexts, each unwinding, go on in either order") {
    int first = 0;
    int second = 0;
    stepper<Context> one([&](auto& me) { first = pause_and_unwind(me, 1); });
    stepper<Context> two([&](auto& me) { second = pause_and_unwind(me, 2); });
    one.step();
    two.step();
    CHECK(nothing_in_flight());
    one.step();
    two.step();
    CHECK(first == 1);
    CHECK(second == 2);
}

CONTEXT_TEST("exceptions: a context pauses in a catch block inside a destructor during unwinding") {
    std::vector<int> counts;
    int inner = 0;
    int outer = 0;
    stepper<Context> body([&](auto& me) {
        try {
            at_exit cleanup{[&] {
                counts.push_back(std::uncaught_exceptions());
                inner = pause_and_rethrow(me, 2);
                counts.push_back(std::uncaught_exceptions());
            }};
            throw problem{1};
        } catch (const problem& p) {
            outer = p.number;
            counts.push_back(std::uncaught_exceptions());
        }
    });
    body.step();
    CHECK(nothing_in_flight());
    body.step();
    CHECK(inner == 2);
    CHECK(outer == 1);
    CHECK((counts == std::vector{1, 1, 0}));
}

CONTEXT_TEST("exceptions: whoever steps from a catch block keeps its own") {
    bool inside_clean = false;
    int inside = 0;
    try {
        throw problem{1};
    } catch (const problem&) {
        stepper<Context> body([&](auto& me) {
            inside_clean = nothing_in_flight();
            inside = pause_and_rethrow(me, 2);
        });
        body.step();
        CHECK(inside_clean);
        CHECK(current_problem() == 1);
        body.step();
        CHECK(inside == 2);
        CHECK(current_problem() == 1);
        int again = 0;
        try {
            throw;
        } catch (const problem& p) { again = p.number; }
        CHECK(again == 1);
    }
    CHECK(nothing_in_flight());
}

CONTEXT_TEST("exceptions: whoever steps while unwinding keeps its own") {
    bool inside_clean = false;
    int inside = 0;
    std::vector<int> counts;
    int outside = 0;
    stepper<Context> body([&](auto& me) {
        inside_clean = nothing_in_flight();
        inside = pause_and_unwind(me, 2);
        inside += 10 * pause_and_rethrow(me, 3);
    });
    try {
        at_exit step{[&] {
            while (!body.done()) {
                body.step();
                counts.push_back(std::uncaught_exceptions());
            }
        }};
        throw problem{1};
    } catch (const problem& p) { outside = p.number; }
    CHECK(inside_clean);
    CHECK(inside == 32);
    CHECK((counts == std::vector{1, 1, 1}));
    CHECK(outside == 1);
    CHECK(nothing_in_flight());
}

CONTEXT_TEST("exceptions: a catch block, and unwinding, go on in another thread") {
    int caught = 0;
    int unwound = 0;
    stepper<Context> catcher([&](auto& me) { caught = pause_and_rethrow(me, 7); });
    stepper<Context> unwinder([&](auto& me) { unwound = pause_and_unwind(me, 8); });
    catcher.step();
    unwinder.step();
    bool clean = false;
    std::thread([&] {
        catcher.step();
        unwinder.step();
        clean = nothing_in_flight();
    }).join();
    CHECK(caught == 7);
    CHECK(unwound == 8);
    CHECK(clean);
    CHECK(nothing_in_flight());
}

CONTEXT_TEST("exceptions: a thread in a catch block goes on with another thread's") {
    int arrived = 0;
    int theirs = 0;
    stepper<Context> body([&](auto& me) {
        arrived = pause_and_rethrow(me, 7);
        arrived += 10 * pause_and_unwind(me, 8);
    });
    body.step();
    std::thread([&] {
        try {
            throw problem{1};
        } catch (const problem&) {
            body.step();
            theirs = current_problem();
        }
    }).join();
    CHECK(theirs == 1);
    try {
        throw problem{2};
    } catch (const problem&) {
        body.step();
        CHECK(current_problem() == 2);
    }
    CHECK(arrived == 87);
}

WEFT_TEST("exceptions: pass through call_switching") {
    const auto thrower = +[](void* first, void* second) {
        throw problem{*static_cast<int*>(first) + *static_cast<int*>(second)};
    };
    int one = 1;
    int two = 2;
    int arrived = 0;
    try {
        weft::detail::call_switching(thrower, &one, &two);
    } catch (const problem& p) { arrived = p.number; }
    CHECK(arrived == 3);
}

CONTEXT_TEST("exceptions: one that a context handled is thrown again outside, after its end") {
    std::exception_ptr kept;
    {
        stepper<Context> body([&](auto& me) {
            try {
                throw problem{9};
            } catch (...) {
                me.pause();
                kept = std::current_exception();
            }
        });
        body.step();
        body.step();
    }
    int arrived = 0;
    try {
        std::rethrow_exception(kept);
    } catch (const problem& p) { arrived = p.number; }
    CHECK(arrived == 9);
}

CONTEXT_TEST("exceptions: a place that held some holds none when it is used again") {
    struct places {
        Context body;
        Context back;
        int arrived = 0;
    } p;
    const auto entry = +[](void* argument) {
        auto& me = *static_cast<places*>(argument);
        try {
            throw problem{1};
        } catch (const problem&) {
            Context::swap(me.body, me.back);
            me.arrived = current_problem();
        }
        Context::jump(me.body);
    };
    const memory_stack stack;
    p.body = Context::make(stack.span(), entry, &p);
    Context::swap(p.back, p.body);
    Context moved = std::move(p.body);  // in its catch block
    Context::swap(p.body, moved);       // we wait where it waited
    CHECK(p.arrived == 1);
    CHECK(nothing_in_flight());
}

CONTEXT_TEST("exceptions: stress: contexts in catch blocks and unwinding take turns in any order") {
    std::vector<std::unique_ptr<stepper<Context>>> bodies;
    long wrong = 0;
    bool stop = false;
    for (int i = 0; i < 16; ++i) {
        bodies.push_back(std::make_unique<stepper<Context>>([&wrong, &stop, i](auto& me) {
            int round = 0;
            while (!stop) {
                const int n = i * 1000 + ++round % 1000 + 1;
                if (pause_and_rethrow(me, n) != n) ++wrong;
                if (pause_and_unwind(me, n) != n) ++wrong;
                if (!nothing_in_flight()) ++wrong;
            }
        }));
    }
    std::uint32_t random = 1;
    for (long turns = stress_count(400'000); turns > 0; --turns) {
        random = random * 1664525 + 1013904223;
        bodies[random >> 28]->step();
    }
    stop = true;
    for (const auto& body : bodies)
        while (!body->done()) body->step();
    CHECK(wrong == 0);
    CHECK(nothing_in_flight());
}

CONTEXT_TEST("exceptions: jump inside a catch block aborts") {
    stepper<Context> body([](auto& me) {
        try {
            throw problem{1};
        } catch (const problem&) { Context::jump(me.outside()); }
    });
    EXPECT_DEATH(body.step(), "weft: context: finished with an exception still in flight");
}

CONTEXT_TEST("exceptions: jump out of a destructor during unwinding aborts") {
    stepper<Context> body([](auto& me) {
        try {
            volatile bool perhaps = true;
            at_exit jumper{[&] {
                if (perhaps) Context::jump(me.outside());
            }};
            throw problem{1};
        } catch (const problem&) {}
    });
    EXPECT_DEATH(body.step(), "weft: context: finished with an exception still in flight");
}
