// stack_cache_test.cpp - which requests a cache serves by itself, and which go to its source.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/stack/stack_cache.hpp>

#include <array>
#include <new>
#include <stdexcept>
#include <vector>

#include "weft_test.hpp"

using weft::stack;
using weft::stack_cache;
using weft::stack_depot;

namespace {

const std::array<std::size_t, 4>& classes() { return stack_depot::size_classes(); }

// The largest request that gets a stack of this class.
std::size_t request_for(std::size_t size_class) {
    return classes()[size_class] / (classes()[1] / weft::default_stack_size());
}

// Hands out addresses that nobody touches, rounded as the depot rounds unless told otherwise, and
// remembers what it was asked for.
class recording_source final : public weft::stack_source {
public:
    stack take(std::size_t size) override {
        if (fail) throw std::bad_alloc();
        requests.push_back(size);
        std::size_t given = size;
        for (std::size_t i = classes().size(); rounds && i-- > 0;)
            if (size <= request_for(i)) given = classes()[i];
        next_ += given;
        return {next_ - given, given};
    }

    void give_back(stack taken) noexcept override { returned.push_back(taken); }

    bool fail = false;
    bool rounds = true;
    std::vector<std::size_t> requests;
    std::vector<stack> returned;

private:
    std::byte* next_ = reinterpret_cast<std::byte*>(0x1000'0000);
};

}  // namespace

WEFT_TEST("stack cache: the stack given back last is the next one taken, without the source") {
    recording_source source;
    stack_cache cache(source);
    const stack a = cache.take(request_for(1));
    const stack b = cache.take(request_for(1));
    CHECK(source.requests.size() == 2);
    CHECK(cache.cached() == 0);
    cache.give_back(a);
    cache.give_back(b);
    CHECK(cache.cached() == 2);
    CHECK(source.returned.empty());
    CHECK(cache.take(request_for(1)).low == b.low);
    CHECK(cache.take(request_for(1)).low == a.low);
    CHECK(cache.cached() == 0);
    CHECK(source.requests.size() == 2);
}

WEFT_TEST("stack cache: a stack is handed out again as it came") {
    recording_source source;
    stack_cache cache(source);
    stack s = cache.take(request_for(1));
    int fiber = 0;
    s.tsan_fiber = &fiber;
    cache.give_back(s);
    const stack again = cache.take(request_for(1));
    CHECK(again.low == s.low);
    CHECK(again.size == s.size);
    CHECK(again.tsan_fiber == &fiber);
}

WEFT_TEST("stack cache: serves every request of a size class, and no larger one") {
    for (std::size_t i = 0; i < classes().size(); ++i) {
        SCOPED_TRACE(i);
        recording_source source;
        stack_cache cache(source);
        const stack s = cache.take(request_for(i));
        const auto serves = [&](std::size_t size) {
            cache.give_back(s);
            const stack taken = cache.take(size);
            if (taken.low != s.low) cache.trim();
            return taken.low == s.low;
        };
        CHECK(serves(request_for(i)));
        CHECK(serves(request_for(i) - 1));
        CHECK(serves(i == 0 ? 4096 : request_for(i - 1) + 1));
        CHECK(!serves(request_for(i) + 1));
        CHECK(i == 0 || !serves(request_for(i - 1)));
    }
}

WEFT_TEST("stack cache: what it has no room for goes to the source, class by class") {
    recording_source source;
    stack_cache cache(source, 2);
    std::array<stack, 3> small;
    std::array<stack, 3> medium;
    for (stack& s : small) s = cache.take(request_for(0));
    for (stack& s : medium) s = cache.take(request_for(1));
    for (const stack& s : small) cache.give_back(s);
    CHECK(cache.cached() == 2);
    for (const stack& s : medium) cache.give_back(s);
    CHECK(cache.cached() == 4);
    REQUIRE(source.returned.size() == 2);
    CHECK(source.returned[0].low == small[0].low);  // the eldest: those given back last are hot
    CHECK(source.returned[1].low == medium[0].low);
    CHECK(cache.take(request_for(1)).low == medium[2].low);
}

WEFT_TEST("stack cache: one without room keeps nothing") {
    recording_source source;
    stack_cache cache(source, 0);
    cache.give_back(cache.take(request_for(1)));
    CHECK(cache.cached() == 0);
    CHECK(source.returned.size() == 1);
}

WEFT_TEST("stack cache: a stack of no size class goes to the source") {
    recording_source source;
    stack_cache cache(source);
    const stack large = cache.take(request_for(3) + 1);
    CHECK(source.requests.back() == request_for(3) + 1);
    cache.give_back(large);
    CHECK(cache.cached() == 0);
    REQUIRE(source.returned.size() == 1);
    CHECK(source.returned[0].low == large.low);
}

WEFT_TEST("stack cache: stays out of the way of a source that rounds otherwise") {
    recording_source source;
    source.rounds = false;
    stack_cache cache(source);
    const std::size_t odd = request_for(1) - 4096;
    const stack s = cache.take(odd);
    CHECK(s.size == odd);
    cache.give_back(s);
    CHECK(source.returned.size() == 1);
    CHECK(cache.take(odd).low != s.low);
    CHECK(source.requests.size() == 2);
}

WEFT_TEST("stack cache: trim gives every stack back to the source") {
    recording_source source;
    stack_cache cache(source);
    for (std::size_t i = 0; i < classes().size(); ++i) {
        const stack a = cache.take(request_for(i));
        const stack b = cache.take(request_for(i));
        cache.give_back(a);
        cache.give_back(b);
    }
    CHECK(cache.cached() == 8);
    cache.trim();
    CHECK(cache.cached() == 0);
    CHECK(source.returned.size() == 8);
    cache.give_back(cache.take(request_for(1)));
    CHECK(cache.cached() == 1);
}

WEFT_TEST("stack cache: gives its stacks back when it is destroyed") {
    stack_depot depot;
    {
        stack_cache cache(depot);
        const stack a = cache.take(request_for(1));
        const stack b = cache.take(request_for(2));
        cache.give_back(a);
        cache.give_back(b);
        CHECK(depot.counters().live == 2);  // to the depot, a cached stack is in use
    }
    CHECK(depot.counters().live == 0);
    CHECK(depot.counters().idle == 2);
}

WEFT_TEST("stack cache: a failure of the source comes out of take, and nothing is lost") {
    recording_source source;
    stack_cache cache(source);
    cache.give_back(cache.take(request_for(1)));
    source.fail = true;
    EXPECT_THROW(static_cast<void>(cache.take(request_for(2))), std::bad_alloc);
    CHECK(cache.cached() == 1);
    cache.give_back(cache.take(request_for(1)));
    EXPECT_THROW(static_cast<void>(cache.take(request_for(0))), std::bad_alloc);
    source.fail = false;
    CHECK(cache.take(request_for(0)).size == classes()[0]);
}

WEFT_TEST("stack cache: sizes that make no sense are refused, whether or not a stack is cached") {
    stack_depot depot;
    stack_cache cache(depot);
    EXPECT_THROW(static_cast<void>(cache.take(0)), std::invalid_argument);
    cache.give_back(cache.take(request_for(0)));
    EXPECT_THROW(static_cast<void>(cache.take(0)), std::invalid_argument);
    EXPECT_THROW(static_cast<void>(cache.take(4095)), std::invalid_argument);
    CHECK(cache.cached() == 1);
}

WEFT_TEST("stack cache: half of what it keeps goes to the depot, and comes from there, at a time") {
    stack_depot depot;
    stack_cache cache(depot, 8);
    std::vector<stack> taken;
    for (int i = 0; i < 24; ++i) taken.push_back(cache.take(request_for(1)));
    for (const stack& s : taken) cache.give_back(s);
    CHECK(cache.cached() == 8);
    CHECK(depot.counters().idle == 16);

    // The last given back first, without a gap where they come from the depot.
    for (std::size_t i = 24; i-- > 16;) CHECK(cache.take(request_for(1)).low == taken[i].low);
    CHECK(cache.take(request_for(1)).low == taken[15].low);
    CHECK(cache.cached() == 3);
    CHECK(depot.counters().idle == 12);
    for (std::size_t i = 15; i-- > 12;) CHECK(cache.take(request_for(1)).low == taken[i].low);
    CHECK(depot.counters().live == 12);
    for (std::size_t i = 12; i < 24; ++i) cache.give_back(taken[i]);
}

WEFT_TEST("stack cache: what it takes ahead is not all that the depot has, and nothing is made") {
    stack_depot depot;
    stack_cache one(depot);
    stack_cache two(depot);
    std::vector<stack> taken;
    for (int i = 0; i < 4; ++i) taken.push_back(depot.take(request_for(1)));
    CHECK(depot.counters().idle == 0);
    const stack fresh = one.take(request_for(1));
    CHECK(one.cached() == 0);
    depot.give_back_all(taken);
    const stack first = one.take(request_for(1));
    CHECK(one.cached() == 1);
    CHECK(depot.counters().idle == 2);
    const stack second = two.take(request_for(1));
    CHECK(two.cached() == 0);
    CHECK(depot.counters().idle == 1);
    CHECK(depot.counters().live == 4);  // as many as were made
    one.give_back(fresh);
    one.give_back(first);
    two.give_back(second);
}

WEFT_TEST("stack cache: several over one depot exchange stacks through it") {
    stack_depot depot;
    stack_cache one(depot);
    stack_cache two(depot);
    const stack s = one.take(request_for(1));
    two.give_back(s);
    CHECK(two.take(request_for(1)).low == s.low);
    one.give_back(s);
    one.trim();
    CHECK(two.take(request_for(1)).low == s.low);
    two.give_back(s);
    CHECK(depot.counters().live == 1);
}
