// algorithms_test.cpp - race, all and for_each.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/scope/algorithms.hpp>

#include <algorithm>
#include <memory>
#include <ranges>
#include <stdexcept>
#include <string>
#include <vector>

#include "loops.hpp"
#include "pools.hpp"

using namespace weft;
using namespace std::chrono_literals;

LOOP_TEST("race: the first result counts, and the others are cancelled") {
    std::string log;
    spawn([&] {
        const int won = race([] { return 1; },
                             [&] {
                                 log += sleep_for(1h) ? 's' : 'c';
                                 return 2;
                             });
        CHECK(won == 1);
        race([&] { log += 'v'; }, [] { park(); });
    });
    run();
    CHECK(log == "cv");
}

LOOP_TEST("all: a tuple of the results, and void is a monostate") {
    int calls = 0;
    spawn([&] {
        const auto [a, b, c] =
            all([] { return yield(), 1; }, [] { return std::string("b"); }, [&] { ++calls; });
        CHECK(a == 1);
        CHECK(b == "b");
        CHECK(c == std::monostate());
        bool caught = false;
        try {
            all([] { park(); }, [] { throw std::runtime_error("x"); });
        } catch (const std::runtime_error&) { caught = true; }
        CHECK(caught);
    });
    run();
    CHECK(calls == 1);
}

namespace {

// Can be called once, when it is given away.
struct once_only {
    int value;
    int operator()() && { return value; }
};

struct base {
    int number = 1;
};
struct derived : base {};

}  // namespace

LOOP_TEST("all: references stay references, and what can only be called once is") {
    spawn([] {
        int a = 1;
        const std::string b = "b";
        auto owned = std::make_unique<int>(5);
        auto [x, y, z, p] =
            all([&]() -> int& { return a; }, [&]() -> const std::string& { return b; },
                once_only{3}, [&]() -> std::unique_ptr<int>&& { return std::move(owned); });
        static_assert(std::is_same_v<decltype(x), int&>);
        static_assert(std::is_same_v<decltype(y), const std::string&>);
        x = 2;
        CHECK(a == 2);
        CHECK(&y == &b);
        CHECK(z == 3);
        CHECK(*p == 5);
        const auto one = all([] { return std::tuple(1, 2); });  // not taken apart
        static_assert(std::is_same_v<decltype(one), const std::tuple<std::tuple<int, int>>>);
        CHECK(std::get<0>(one) == std::tuple(1, 2));
        int counted = 0;
        auto counts = [&counted] { return ++counted; };
        CHECK(all(counts, std::as_const(counts)) == std::tuple(1, 2));
    });
    run();
}

LOOP_TEST("race: references stay references, and what can only be called once is") {
    spawn([] {
        base a;
        derived b;
        base& won = race([&]() -> base& { return a; },
                         [&]() -> derived& {
                             park();
                             return b;
                         });
        CHECK(&won == &a);
        static_assert(std::is_same_v<decltype(race([&]() -> base& { return a; },
                                                   [&]() -> derived& { return b; })),
                                     base&>);
        int n = 1;
        static_assert(std::is_same_v<decltype(race([&]() -> int& { return n; }, [] { return 2; })),
                                     int>);  // not all are references
        CHECK(race([&]() -> int& { return n; }, [] { return park(), 2; }) == 1);
        CHECK(race(once_only{3}, [] { return park(), 4; }) == 3);
    });
    run();
}

LOOP_TEST("for_each: so many at once, over any range") {
    int running = 0;
    int most = 0;
    int sum = 0;
    spawn([&] {
        std::vector<int> items{1, 2, 3, 4, 5};
        for_each(items, 2, [&](int& item) {
            most = std::max(most, ++running);
            yield();
            --running;
            sum += item;
            item = 0;
        });
        CHECK((items == std::vector<int>(5)));
        for_each(std::views::iota(0, 10), 0, [&](int i) { sum += i; });
    });
    run();
    CHECK(most == 2);
    CHECK(sum == 15 + 45);
}

WEFT_TEST("for_each: on a pool") {
    pool p({.workers = 2});
    std::atomic<int> sum = 0;
    fiber(p, [&] {
        for_each(std::views::iota(0, 100), 8, [&](int i) {
            yield();
            sum += i;
        });
    }).join();
    CHECK(sum == 4950);
}
