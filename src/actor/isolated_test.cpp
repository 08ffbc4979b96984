// isolated_test.cpp - values that are touched only inside of their context.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/actor/isolated.hpp>

#include <map>
#include <memory>
#include <stdexcept>
#include <string>

#include "loops.hpp"
#include "pools.hpp"

using namespace weft;
using namespace std::chrono_literals;

namespace {

template <class T>
concept gives_itself_away = requires(T& t) {
    *t;
}
|| requires(T& t) { t.operator->(); }
|| std::convertible_to<T&, int&> || std::copyable<T>;
static_assert(!gives_itself_away<isolated<int>>);

}  // namespace

MATRIX_TEST("isolated: with() gives the value, inside of its context, and returns what f returns") {
    isolated<std::string> text("abc");
    const isolated<std::string>& same = text;
    spawn([&] {
        CHECK(text.with([](std::string& s) { return s += 'd'; }) == "abcd");
        CHECK(same.with([](const std::string& s) { return s.size(); }) == 4);
        text.with([&](std::string&) {
            text.context().assert_held();
            yield();
            text.context().assert_held();
        });
        CHECK(!text.context().is_held());
    });
    run();
}

MATRIX_TEST("isolated: a stock of apples") {
    spawn([] {
        // [stock]
        isolated<std::map<std::string, int>> stock;
        stock.with([](auto& all) { all["apples"] += 3; });
        const int left = stock.with([](const auto& all) { return all.at("apples"); });
        // [/stock]
        CHECK(left == 3);
    });
    run();
}

MATRIX_TEST("isolated: what is set over a wait by another is there afterwards") {
    isolated<int> number;
    int seen = -1;
    spawn([&] {
        number.with([&](int& n) {
            yield();
            seen = n;
        });
    });
    spawn([&] { number.with([](int& n) { n = 7; }); });
    run();
    CHECK(seen == 7);
}

MATRIX_TEST("isolated: an exception leaves, and the value is free again") {
    isolated<int> number(1);
    bool thrown = false;
    spawn([&] {
        try {
            number.with([](int&) { throw std::runtime_error("no"); });
        } catch (const std::runtime_error&) { thrown = true; }
    });
    spawn([&] { number.with([](int& n) { ++n; }); });
    run();
    CHECK(thrown);
    CHECK(number.with([](int n) { return n; }) == 2);
}

MATRIX_TEST("isolated: values that can only be moved, made from several arguments") {
    isolated<std::unique_ptr<int>> pointer(std::make_unique<int>(3));
    isolated<std::string> text(3U, 'x');
    spawn([&] {
        const std::unique_ptr<int> out =
            pointer.with([](std::unique_ptr<int>& p) { return std::move(p); });
        CHECK(*out == 3);
        CHECK(text.with([](const std::string& s) { return s; }) == "xxx");
    });
    run();
}

MATRIX_TEST("isolated: value() for those who are inside already") {
    isolated<int> number(4);
    spawn([&] {
        const auto add_one = [&] { ++number.value(); };
        number.with([&](int&) { add_one(); });
        const std::lock_guard inside(number.context());
        add_one();
        yield();
        CHECK(number.value() == 6);
    });
    run();
}

POOL_TEST("isolated: many fibers count") {
    isolated<long> total(0L);
    for (int i = 0; i < 100; ++i)
        spawn([&] {
            for (int j = 0; j < 10; ++j) {
                total.with([](long& t) { ++t; });
                yield();
            }
        });
    p.drain();
    CHECK(total.with([](long t) { return t; }) == 1000);
}

#if defined(WEFT_CHECKS) && WEFT_CHECKS
WEFT_TEST("isolated misuse: the value touched outside of its context aborts by name") {
    isolated<int> number(1);
    EXPECT_DEATH(++number.value(), "isolated: touched outside of its context");
    loop s({.external_wakes = false});
    const auto from_a_fiber = [&] {
        go(s, [&] { ++number.value(); });
        s.run();
    };
    number.context().lock();  // by this thread
    EXPECT_DEATH(from_a_fiber(), "isolated: touched outside of its context");
    number.context().unlock();
}
#endif
