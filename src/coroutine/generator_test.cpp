// generator_test.cpp - sequences from a function: values, references, ranges, and early ends.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/coroutine/generator.hpp>

#include <algorithm>
#include <iterator>
#include <memory>
#include <ranges>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <weft/stack/stack_depot.hpp>

#include "exception_support.hpp"
#include "weft_test.hpp"

using namespace weft_test;
using weft::generator;

namespace {

static_assert(std::ranges::input_range<generator<int>>);
static_assert(std::ranges::view<generator<int>>);
static_assert(std::ranges::viewable_range<generator<int>>);
static_assert(!std::ranges::forward_range<generator<int>>);
static_assert(!std::ranges::common_range<generator<int>>);
static_assert(std::ranges::input_range<generator<std::unique_ptr<int>>>);
static_assert(std::ranges::input_range<generator<const std::string&>>);
static_assert(std::movable<generator<int>> && !std::copyable<generator<int>>);
static_assert(std::same_as<std::ranges::range_value_t<generator<int>>, int>);
static_assert(std::same_as<std::ranges::range_reference_t<generator<int>>, int&>);
static_assert(std::same_as<std::ranges::range_reference_t<generator<const int>>, const int&>);
static_assert(std::same_as<std::ranges::range_reference_t<generator<int&>>, int&>);
static_assert(std::same_as<std::ranges::range_reference_t<generator<int&&>>, int&&>);
static_assert(std::same_as<std::ranges::range_value_t<generator<const std::string&>>, std::string>);
static_assert(std::is_nothrow_move_constructible_v<generator<int>>);
static_assert(!std::is_constructible_v<generator<int>, int>);

generator<int> count_up(int from, int to) {
    return generator<int>([from, to](auto& yield) {
        for (int i = from; i < to; ++i) yield(i);
    });
}

template <class Range>
auto collect(Range&& range) {
    std::vector<std::ranges::range_value_t<Range>> all;
    for (auto&& value : range) all.push_back(std::forward<decltype(value)>(value));
    return all;
}

struct tree {
    int value = 0;
    std::unique_ptr<tree> left;
    std::unique_ptr<tree> right;
};

std::unique_ptr<tree> leaf(int value) { return std::make_unique<tree>(tree{value, {}, {}}); }
std::unique_ptr<tree> fork(std::unique_ptr<tree> left, std::unique_ptr<tree> right) {
    return std::make_unique<tree>(tree{0, std::move(left), std::move(right)});
}

template <class Yield>
void walk(const tree& t, Yield& yield) {
    if (!t.left && !t.right) yield(t.value);
    if (t.left) walk(*t.left, yield);
    if (t.right) walk(*t.right, yield);
}

generator<int> leaves(const tree& t) {
    return generator<int>([&t](auto& yield) { walk(t, yield); });
}

// Stacks of the depot, counted.
class counting_source final : public weft::stack_source {
public:
    weft::stack take(std::size_t size) override {
        ++taken;
        last_size = size;
        return weft::shared_stacks().take(size);
    }
    void give_back(weft::stack s) noexcept override {
        ++returned;
        weft::shared_stacks().give_back(s);
    }

    int taken = 0;
    int returned = 0;
    std::size_t last_size = 0;
};

}  // namespace

WEFT_TEST("generator: its stack comes from the user's source, and goes back when it is done") {
    counting_source source;
    {
        const auto numbers = [](auto& yield) {
            for (int i = 0; i < 3; ++i) yield(i);
        };
        const weft::coroutine_options options{.stack_size = 100'000, .stacks = &source};
        generator<int> all(options, numbers);
        CHECK(source.taken == 1);
        CHECK(source.last_size == 100'000);
        int sum = 0;
        for (const int i : all) sum += i;
        CHECK(sum == 3);
        CHECK(source.returned == 1);
        generator<int> abandoned(options, numbers);
        CHECK(*abandoned.begin() == 0);
        const generator<int> never_begun(options, numbers);
        CHECK(source.taken == 3);
        CHECK(source.returned == 1);
    }
    CHECK(source.returned == 3);
}

WEFT_TEST("generator: gives the values in order, and then ends") {
    CHECK((collect(count_up(1, 5)) == std::vector{1, 2, 3, 4}));
}

WEFT_TEST("generator: runs no further than it is asked") {
    std::string log;
    generator<char> letters([&](auto& yield) {
        for (char c = 'a'; c <= 'b'; ++c) {
            log += c;
            yield(c);
        }
        log += 'e';
    });
    CHECK(log.empty());
    auto i = letters.begin();
    CHECK(log == "a");
    CHECK(*i == 'a');
    CHECK(*i == 'a');
    CHECK(log == "a");
    ++i;
    CHECK(log == "ab");
    CHECK(i != letters.end());
    i++;
    CHECK(log == "abe");
    CHECK(i == letters.end());
}

WEFT_TEST("generator: an empty one, and one whose body yields nothing, have no values") {
    generator<int> none;
    CHECK(none.begin() == none.end());
    generator<int> silent([](auto&) {});
    CHECK(silent.begin() == silent.end());
    CHECK(silent.begin() == silent.end());
}

WEFT_TEST("generator: begin asked again is where the iteration stands") {
    generator<int> g = count_up(0, 10);
    CHECK(*g.begin() == 0);
    CHECK(*g.begin() == 0);
    ++g.begin();
    CHECK(*g.begin() == 1);
    CHECK((collect(g) == std::vector{1, 2, 3, 4, 5, 6, 7, 8, 9}));
    CHECK(g.begin() == g.end());
}

WEFT_TEST("generator: a value that is yielded by name can be changed by whoever gets it") {
    generator<int> doubled([](auto& yield) {
        for (int i = 1; i < 100; ++i) yield(i);
    });
    std::vector<int> seen;
    for (int& i : doubled) {
        seen.push_back(i);
        i *= 2;
    }
    CHECK((seen == std::vector{1, 3, 7, 15, 31, 63}));
}

WEFT_TEST("generator: a constant and a temporary are handed out as copies of their own") {
    const int constant = 5;
    generator<int> g([&](auto& yield) {
        yield(constant);
        yield(6);
        yield(constant + 2);
    });
    std::vector<int> seen;
    for (int& i : g) {
        seen.push_back(i);
        i = 0;
    }
    CHECK((seen == std::vector{5, 6, 7}));
    CHECK(constant == 5);
}

WEFT_TEST("generator: of references gives the objects themselves") {
    std::vector<int> numbers{1, 2, 3};
    generator<int&> g([&](auto& yield) {
        for (int& n : numbers) yield(n);
    });
    std::size_t index = 0;
    for (int& n : g) {
        CHECK(&n == &numbers[index++]);
        n += 10;
    }
    CHECK((numbers == std::vector{11, 12, 13}));
}

WEFT_TEST("generator: of constant references takes objects and temporaries without a copy") {
    const std::string named = "named";
    generator<const std::string&> g([&](auto& yield) {
        yield(named);
        yield(std::string(100, 'x'));
        yield("converted");
    });
    auto i = g.begin();
    CHECK(&*i == &named);
    ++i;
    CHECK(*i == std::string(100, 'x'));
    ++i;
    CHECK(*i == "converted");
    ++i;
    CHECK(i == g.end());
}

WEFT_TEST("generator: of values that can only be moved lets them be moved out") {
    generator<std::unique_ptr<int>> g([](auto& yield) {
        for (int i = 0; i < 3; ++i) yield(std::make_unique<int>(i));
        auto named = std::make_unique<int>(3);
        yield(named);
        yield(named == nullptr ? std::make_unique<int>(4) : nullptr);
    });
    std::vector<std::unique_ptr<int>> all;
    for (std::unique_ptr<int>& p : g) all.push_back(std::move(p));
    REQUIRE(all.size() == 5);
    for (std::size_t i = 0; i < 5; ++i) CHECK(*all[i] == static_cast<int>(i));
}

WEFT_TEST("generator: of rvalue references hands out what may be moved from") {
    generator<std::string&&> g([](auto& yield) {
        yield(std::string(50, 'a'));
        yield(std::string(50, 'b'));
    });
    CHECK((collect(g) == std::vector{std::string(50, 'a'), std::string(50, 'b')}));
}

WEFT_TEST("generator: recursion needs no help: the same fringe on trees of other shapes") {
    const auto left = fork(fork(fork(leaf(1), leaf(2)), leaf(3)), leaf(4));
    const auto right = fork(leaf(1), fork(leaf(2), fork(leaf(3), leaf(4))));
    const auto other = fork(fork(leaf(1), leaf(2)), fork(leaf(4), leaf(3)));
    const auto longer = fork(fork(leaf(1), leaf(2)), fork(leaf(3), fork(leaf(4), leaf(5))));
    CHECK(std::ranges::equal(leaves(*left), leaves(*right)));
    CHECK(!std::ranges::equal(leaves(*left), leaves(*other)));
    CHECK(!std::ranges::equal(leaves(*left), leaves(*longer)));
    CHECK(!std::ranges::equal(leaves(*longer), leaves(*left)));
}

WEFT_TEST("generator: works with the algorithms of std::ranges") {
    CHECK(std::ranges::equal(count_up(0, 4), std::vector{0, 1, 2, 3}));
    CHECK(std::ranges::distance(count_up(0, 7)) == 7);
    CHECK(std::ranges::count_if(count_up(0, 10), [](int i) { return i % 3 == 0; }) == 4);
    int sum = 0;
    std::ranges::for_each(count_up(1, 5), [&](int i) { sum += i; });
    CHECK(sum == 10);
    generator<int> g = count_up(0, 10);
    CHECK(*std::ranges::find(g, 6) == 6);
    CHECK((collect(g) == std::vector{6, 7, 8, 9}));
    std::vector<int> copied;
    std::ranges::copy(count_up(5, 8), std::back_inserter(copied));
    CHECK((copied == std::vector{5, 6, 7}));
}

WEFT_TEST("generator: works with the views of std::ranges, also without an end") {
    const auto naturals = [] {
        return generator<int>([](auto& yield) {
            for (int i = 0;; ++i) yield(int{i});
        });
    };
    CHECK((collect(naturals() | std::views::take(3)) == std::vector{0, 1, 2}));
    CHECK((collect(naturals() | std::views::filter([](int i) { return i % 2 == 1; }) |
                   std::views::transform([](int i) { return i * i; }) | std::views::take(4)) ==
           std::vector{1, 9, 25, 49}));
    CHECK((collect(naturals() | std::views::drop(5) |
                   std::views::take_while([](int i) { return i < 8; })) == std::vector{5, 6, 7}));
    generator<int> kept = naturals();
    CHECK((collect(std::ranges::ref_view(kept) | std::views::take(2)) == std::vector{0, 1}));
}

WEFT_TEST("generator: one dropped in the middle unwinds its body") {
    const std::size_t stacks = weft::shared_stack_depot().counters().live;
    std::string log;
    {
        generator<int> g([&](auto& yield) {
            const at_exit outer{[&] { log += 'o'; }};
            for (int i = 0;; ++i) {
                const at_exit inner{[&] { log += 'i'; }};
                yield(i);
            }
        });
        for (const int i : g) {
            if (i == 2) break;
        }
        CHECK(log == "ii");
    }
    CHECK(log == "iiio");
    CHECK(weft::shared_stack_depot().counters().live == stacks);
}

WEFT_TEST("generator: one that was never asked only destroys its callable") {
    const auto owner = std::make_shared<int>(1);
    {
        const generator<int> g([owner](auto& yield) { yield(*owner); });
        CHECK(owner.use_count() == 2);
    }
    CHECK(owner.use_count() == 1);
}

WEFT_TEST("generator: an exception comes out of begin, and the sequence is at its end") {
    generator<int> g([](auto&) { throw problem{1}; });
    EXPECT_THROW(static_cast<void>(g.begin()), problem);
    CHECK(g.begin() == g.end());
}

WEFT_TEST("generator: an exception comes out of the increment, and the sequence is at its end") {
    generator<int> g([](auto& yield) {
        yield(1);
        throw problem{2};
    });
    auto i = g.begin();
    CHECK(*i == 1);
    int caught = 0;
    try {
        ++i;
    } catch (const problem& p) { caught = p.number; }
    CHECK(caught == 2);
    CHECK(i == g.end());
    CHECK(g.begin() == g.end());
}

WEFT_TEST("generator: an exception in the consumer leaves the generator where it was") {
    generator<int> g = count_up(0, 5);
    try {
        for (const int i : g) {
            if (i == 2) throw problem{i};
        }
    } catch (const problem&) {}
    CHECK((collect(g) == std::vector{2, 3, 4}));
}

WEFT_TEST("generator: may use others inside its body") {
    generator<int> pairs([](auto& yield) {
        for (const int i : count_up(1, 4)) {
            for (const int j : count_up(0, i)) yield(10 * i + j);
        }
    });
    CHECK((collect(pairs) == std::vector{10, 20, 21, 30, 31, 32}));
}

WEFT_TEST("generator: moved while in use it goes on, the one moved from is empty") {
    generator<int> first = count_up(0, 6);
    CHECK(*first.begin() == 0);
    generator<int> second = std::move(first);
    CHECK(first.begin() == first.end());
    ++second.begin();
    first = std::move(second);
    CHECK((collect(first) == std::vector{1, 2, 3, 4, 5}));
    first = generator<int>();
    CHECK(first.begin() == first.end());
}

WEFT_TEST("generator: assigning to one in use unwinds its body at once") {
    bool unwound = false;
    generator<int> first([&](auto& yield) {
        const at_exit note{[&] { unwound = true; }};
        yield(1);
    });
    CHECK(*first.begin() == 1);
    generator<int> second = count_up(5, 7);
    first = std::move(second);
    CHECK(unwound);
    CHECK(second.begin() == second.end());
    CHECK((collect(first) == std::vector{5, 6}));
}

WEFT_TEST("generator: goes on in whatever thread asks") {
    generator<int> g = count_up(0, 6);
    std::vector<int> seen{*g.begin()};
    for (int n = 0; n < 3; ++n) {
        std::thread([&] {
            ++g.begin();
            seen.push_back(*g.begin());
        }).join();
    }
    CHECK((seen == std::vector{0, 1, 2, 3}));
}

WEFT_TEST("generator: takes a callable that can only be moved, and options") {
    generator<int> g({.name = "named", .stack_size = 200'000},
                     [p = std::make_unique<int>(4)](auto& yield) { yield(*p); });
    CHECK((collect(g) == std::vector{4}));
}

WEFT_TEST("generator: stress, a million values through four stages") {
    const long count = stress_count(1'000'000);
    generator<long> source([count](auto& yield) {
        for (long i = 0; i < count; ++i) yield(long{i});
    });
    std::vector<generator<long>> stages;
    stages.push_back(std::move(source));
    stages.reserve(5);
    for (int n = 0; n < 4; ++n) {
        stages.emplace_back([&from = stages.back()](auto& yield) {
            for (const long i : from) yield(i + 1);
        });
    }
    long sum = 0;
    for (const long i : stages.back()) sum += i;
    CHECK(sum == count * (count - 1) / 2 + 4 * count);
}
