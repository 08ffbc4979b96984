// fp_control_test.cpp - whose the rounding mode is: the thread's, or a context's own.
//
// A native context keeps its own only if it was made to (context_options::keep_fp_control); a
// portable one always does. Tests whose sentence says "keeper" are about one that keeps.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/context/context.hpp>

#include <cfenv>
#include <thread>
#include <utility>
#include <vector>

#include "context_support.hpp"

using weft_test::stepper;

namespace {

constexpr weft::context_options keeper{.keep_fp_control = true, .tsan_fiber = nullptr};

enum rounding { nearest, up, down, mixed };

template <class T>
rounding rounding_of() {
    volatile T one = 1;
    volatile T three = 3;
    volatile T third = one / three;
    volatile T minus_third = -one / three;
    const T sum = third + minus_third;
    if (sum == 0) return nearest;
    return sum > 0 ? up : down;
}

// Which way numbers are rounded, by trying; on x86-64 two units do it, and they have to agree.
rounding current() {
    const rounding way = rounding_of<double>();
#if defined(__x86_64__)
    if (rounding_of<long double>() != way) return mixed;
#endif
    return way;
}

void set(rounding way) {
    std::fesetround(way == up ? FE_UPWARD : way == down ? FE_DOWNWARD : FE_TONEAREST);
}

// Every test leaves the thread as it found it.
struct restore_at_exit {
    ~restore_at_exit() { set(nearest); }
};

}  // namespace

WEFT_TEST("rounding mode: can be set and seen here") {
    const restore_at_exit restore;
    for (const rounding way : {nearest, up, down}) {
        set(way);
        CHECK(current() == way);
    }
}

#if WEFT_NATIVE_SWITCH

WEFT_TEST("rounding mode: belongs to the thread, for a native context that does not keep it") {
    const restore_at_exit restore;
    std::vector<rounding> seen;
    stepper<weft::native_context> body([&](auto& me) {
        seen.push_back(current());
        set(down);
        me.pause();
        seen.push_back(current());
    });
    set(up);
    body.step();
    CHECK(current() == down);
    set(up);
    body.step();
    CHECK(current() == up);
    CHECK((seen == std::vector{up, up}));
}

WEFT_TEST("rounding mode: a keeper leaves the thread's to one that does not keep") {
    const restore_at_exit restore;
    using kind = weft::native_context;
    std::vector<rounding> seen;
    stepper<kind> plain([&](auto& me) {
        seen.push_back(current());
        set(down);  // the thread's
        me.pause();
        seen.push_back(current());
    });
    stepper<kind> keeping(
        [&](auto& me) {
            set(up);
            plain.step();
            seen.push_back(current());
            me.pause();
            plain.step();
            seen.push_back(current());
        },
        keeper);
    keeping.step();
    CHECK(current() == down);
    set(nearest);
    keeping.step();
    CHECK(current() == nearest);
    CHECK((seen == std::vector{nearest, up, nearest, up}));
}

WEFT_TEST("rounding mode: a portable context inside a native keeper changes it for nobody else") {
    const restore_at_exit restore;
    std::vector<rounding> seen;
    stepper<weft::native_context> native(
        [&](auto& me) {
            set(up);
            stepper<weft::portable_context> portable([&](auto& inner_me) {
                seen.push_back(current());
                set(down);
                inner_me.pause();
                stepper<weft::native_context> innermost([](auto&) { set(up); }, keeper);
                innermost.step();
                seen.push_back(current());
            });
            portable.step();
            seen.push_back(current());
            me.pause();
            try {
                throw 1;
            } catch (int) {  // so that the switch has something to carry
                portable.step();
            }
            seen.push_back(current());
        },
        keeper);
    native.step();
    CHECK(current() == nearest);
    native.step();
    CHECK(current() == nearest);
    CHECK((seen == std::vector{up, up, down, up}));
}

#endif

WEFT_TEST("rounding mode: a portable context keeps its own without being told") {
    const restore_at_exit restore;
    std::vector<rounding> seen;
    stepper<weft::portable_context> body([&](auto& me) {
        set(down);
        me.pause();
        seen.push_back(current());
    });
    set(up);
    body.step();
    CHECK(current() == up);
    body.step();
    CHECK(current() == up);
    CHECK((seen == std::vector{down}));
}

CONTEXT_TEST("rounding mode: a keeper starts with its maker's") {
    const restore_at_exit restore;
    rounding seen = mixed;
    set(down);
    stepper<Context> body([&](auto&) { seen = current(); }, keeper);
    set(up);
    body.step();
    CHECK(seen == down);
    CHECK(current() == up);
}

CONTEXT_TEST("rounding mode: a keeper has its own over its pauses, and its end restores ours") {
    const restore_at_exit restore;
    std::vector<rounding> seen;
    stepper<Context> body(
        [&](auto& me) {
            seen.push_back(current());
            set(up);
            me.pause();
            seen.push_back(current());
            set(down);
            me.pause();
            seen.push_back(current());
        },
        keeper);
    body.step();
    CHECK(current() == nearest);
    set(down);
    body.step();
    CHECK(current() == down);
    set(up);
    body.step();
    CHECK(body.done());
    CHECK(current() == up);
    CHECK((seen == std::vector{nearest, up, down}));
}

CONTEXT_TEST("rounding mode: two keepers that switch straight to each other keep theirs") {
    const restore_at_exit restore;
    std::vector<rounding> seen;
    stepper<Context>* partner = nullptr;
    stepper<Context> two(
        [&](auto& me) {
            seen.push_back(current());
            set(down);
            me.pass_to(*partner);
            seen.push_back(current());
        },
        keeper);
    stepper<Context> one(
        [&](auto& me) {
            set(up);
            me.pass_to(two);
            seen.push_back(current());
            me.pass_to(two);
        },
        keeper);
    partner = &one;
    one.step();
    CHECK(current() == nearest);
    CHECK((seen == std::vector{nearest, up, down}));
}

CONTEXT_TEST("rounding mode: a finished keeper jumps to another keeper") {
    const restore_at_exit restore;
    rounding seen = mixed;
    set(down);
    stepper<Context> two([&](auto&) { seen = current(); }, keeper);
    set(nearest);
    stepper<Context> one(
        [&](auto& me) {
            set(up);
            two.outside() = std::move(me.outside());
            Context::jump(two.inside());
        },
        keeper);
    one.step();
    CHECK(seen == down);
    CHECK(current() == nearest);
}

CONTEXT_TEST("rounding mode: a keeper takes its own to another thread, and leaves that thread's") {
    const restore_at_exit restore;
    std::vector<rounding> seen;
    stepper<Context> body(
        [&](auto& me) {
            set(up);
            me.pause();
            seen.push_back(current());
            me.pause();
            seen.push_back(current());
        },
        keeper);
    body.step();
    rounding theirs = mixed;
    std::thread([&] {
        set(down);
        body.step();
        theirs = current();
    }).join();
    CHECK(theirs == down);
    CHECK(current() == nearest);
    body.step();
    CHECK(current() == nearest);
    CHECK((seen == std::vector{up, up}));
}

CONTEXT_TEST("rounding mode: a keeper that was moved leaves a place that keeps nothing") {
    const restore_at_exit restore;
    stepper<Context> body([](auto&) { set(up); }, keeper);
    Context moved = std::move(body.inside());
    Context& used_place = body.inside();
    body.outside() = Context();
    stepper<Context> back([&](auto&) { Context::jump(used_place); });
    set(down);
    Context::swap(used_place, back.inside());
    CHECK(current() == down);
    Context::swap(body.outside(), moved);
    CHECK(body.done());
    CHECK(current() == down);
}
