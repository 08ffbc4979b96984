// swapped_test.cpp - coroutines on one stack: who is copied when, how much, and into what.
//
// What they share with the other back ends is in coroutine_*_test.cpp; one that resumes another on
// its own stack, in swapped_nesting_test.cpp. Whatever two of them share lives in the test's frame,
// never on the shared stack.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/coroutine/coroutine.hpp>
#include <weft/coroutine/shared_stack.hpp>

#include <cstdint>
#include <exception>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <weft/base/sanitizer.hpp>
#include <weft/stack/watermark.hpp>

#include "swapped_support.hpp"

using namespace weft_test;
using weft::buffer_policy;
using weft::shared_stack;
using weft::swapped_coroutine;
using weft::this_coroutine::yield;

namespace {

void yield_forever() {
    for (;;) yield();
}

// Somebody else who wants the stack for a moment.
void use_briefly(shared_stack& shared) {
    swapped_coroutine other({.shared = &shared}, [] {});
    other.resume();
}

}  // namespace

WEFT_TEST("swapped: one that never yields is a call: no park, no copy, no buffer") {
    shared_stack shared;
    const void* stood_at = nullptr;
    swapped_coroutine c({.shared = &shared}, [&] { stood_at = __builtin_frame_address(0); });
    c.resume();
    CHECK(c.done());
    CHECK(stood_at >= shared.where().low && stood_at < shared.where().high());
    CHECK(shared.counters().calls == 1);
    CHECK(shared.counters().parks == 0);
    CHECK(shared.counters().in_place == 0);
    CHECK(shared.counters().copies_out == 0);
    CHECK(shared.counters().copies_in == 0);
    CHECK(shared.counters().buffers == 0);
}

WEFT_TEST("swapped: a thousand that never yield, one after the other, need no buffer") {
    shared_stack shared;
    int sum = 0;
    for (int i = 0; i < 1000; ++i) {
        swapped_coroutine c({.shared = &shared}, [&] { ++sum; });
        c.resume();
    }
    CHECK(sum == 1000);
    CHECK(shared.counters().calls == 1000);
    CHECK(shared.counters().parks == 0);
    CHECK(shared.counters().buffers == 0);
}

// The first in a thread is switched to: the thread's exception state is not known before. In builds
// that cannot call, every one is.
WEFT_TEST("swapped: one that never yields is entered by no switch") {
    constexpr std::uint64_t to_start = WEFT_NATIVE_SWITCH && !WEFT_ASAN && !WEFT_TSAN ? 0 : 1;
    shared_stack shared;
    use_briefly(shared);
    const std::uint64_t before = shared.counters().switches;
    use_briefly(shared);
    CHECK(shared.counters().switches == before + to_start);
    swapped_coroutine c({.shared = &shared}, [] { yield(); });
    c.resume();
    CHECK(shared.counters().switches == before + 2 * to_start);
    c.resume();
    CHECK(c.done());
    CHECK(shared.counters().switches == before + 2 * to_start + 1);
}

WEFT_TEST("swapped: one that was called, parked and copied ends where it is resumed last") {
    shared_stack shared;
    use_briefly(shared);
    std::string seen;
    swapped_coroutine c({.shared = &shared}, [&] {
        seen += 'a';
        yield();
        seen += 'c';
    });
    c.resume();
    use_briefly(shared);
    seen += 'b';
    std::thread([&] { c.resume(); }).join();
    seen += 'd';
    CHECK(c.done());
    CHECK(seen == "abcd");
}

WEFT_TEST("swapped: one that is called catches, throws, and yields in a catch block") {
    shared_stack shared;
    use_briefly(shared);
    const auto fails = [] { throw std::runtime_error("mine"); };
    swapped_coroutine thrower({.shared = &shared}, fails);
    EXPECT_THROW(thrower.resume(), std::runtime_error);
    swapped_coroutine c({.shared = &shared}, [&] {
        try {
            fails();
        } catch (const std::runtime_error&) {
            yield();
            CHECK(std::current_exception() != nullptr);
        }
    });
    c.resume();
    CHECK(std::current_exception() == nullptr);
    use_briefly(shared);
    c.resume();
    CHECK(c.done());
}

WEFT_TEST("swapped: one resumed before anyone else used the stack is not copied") {
    shared_stack shared;
    swapped_coroutine c({.shared = &shared}, [] {
        yield();
        yield();
    });
    for (int i = 0; i < 3; ++i) c.resume();
    CHECK(c.done());
    CHECK(shared.counters().parks == 2);
    CHECK(shared.counters().in_place == 2);
    CHECK(shared.counters().copies_out == 0);
    CHECK(shared.counters().buffers == 0);
}

WEFT_TEST("swapped: one is copied only when another needs the stack, and back when it is resumed") {
    shared_stack shared;
    const weft::swap_counters& now = shared.counters();
    bool kept = false;
    swapped_coroutine c({.shared = &shared}, [&] { kept = yield_holding(100); });
    c.resume();
    swapped_coroutine other({.shared = &shared}, [] {});
    CHECK(now.copies_out == 0);  // making one needs no stack
    other.resume();
    CHECK(now.copies_out == 1);
    CHECK(now.copies_in == 0);
    CHECK(now.buffers == 1);
    use_briefly(shared);
    CHECK(now.copies_out == 1);  // it was out already
    c.resume();
    CHECK(kept);
    CHECK(now.copies_in == 1);
    CHECK(now.copies_out == 1);
    CHECK(now.in_place == 0);
    CHECK(now.buffer_bytes == 0);  // it has ended
}

WEFT_TEST("swapped: two that take turns are copied once out and once in for each turn") {
    shared_stack shared;
    swapped_coroutine a({.shared = &shared}, yield_forever);
    swapped_coroutine b({.shared = &shared}, yield_forever);
    for (int i = 0; i < 10; ++i) {
        a.resume();
        b.resume();
    }
    CHECK(shared.counters().calls == 2);
    CHECK(shared.counters().parks == 20);
    CHECK(shared.counters().copies_out == 19);
    CHECK(shared.counters().copies_in == 18);
    CHECK(shared.counters().buffers == 2);
}

WEFT_TEST("swapped: bytes come back to the addresses they had, so pointers among them stay right") {
    shared_stack shared;
    bool right = false;
    swapped_coroutine c({.shared = &shared}, [&] {
        struct node {
            int value;
            node* next;
        };
        node third{3, nullptr};
        node second{2, &third};
        node first{1, &second};
        third.next = &first;
        yield();
        right = first.next->next->next == &first && first.next->next->value == 3;
    });
    c.resume();
    use_briefly(shared);
    c.resume();
    CHECK(right);
}

WEFT_TEST("swapped: a parked one costs at most the bytes that it uses, and 128") {
    shared_stack shared;
    weft::paint(shared.where());
    const std::byte* frame = nullptr;
    swapped_coroutine c({.shared = &shared}, [&] {
        frame = static_cast<const std::byte*>(__builtin_frame_address(0));
        yield();
    });
    c.resume();
    const std::size_t ever_used = weft::high_water_mark(shared.where());
    use_briefly(shared);
    const std::size_t cost = c.backend().buffer_size();
    const auto below_the_body = static_cast<std::size_t>(shared.where().high() - frame);
    CHECK(cost >= below_the_body);
    CHECK(cost <= ever_used + 16 + 128);  // a frame's lowest 16 bytes may be padding, never written
    // That is: the body, a few frames of weft's, and the registers if swapcontext saved them.
    const bool plain = WEFT_NATIVE_SWITCH && !WEFT_ASAN && !WEFT_TSAN;
    CHECK(!plain || cost <= below_the_body + 1024);
    CHECK(shared.counters().buffer_bytes == cost);
}

// docs/back_ends.md names it.
WEFT_TEST("swapped: what a parked one costs beside the bytes that it uses is 128") {
    if (!WEFT_NATIVE_SWITCH || WEFT_ASAN || WEFT_TSAN)
        GTEST_SKIP() << "contexts are larger here (ucontext, sanitizers)";
    CHECK(sizeof(weft::basic_coroutine_block<weft::swapped_backend>) <= 128);
}

WEFT_TEST("swapped: buffers are the user's, of the size that is needed, and go back to the user") {
    counting_allocator allocator;
    {
        shared_stack shared({.allocator = &allocator});
        bool kept = true;
        const auto holding = [&](std::size_t bytes) {
            return swapped_coroutine({.shared = &shared},
                                     [&kept, bytes] { kept = kept && yield_holding(bytes); });
        };
        swapped_coroutine small = holding(100);
        swapped_coroutine large = holding(10'000);
        small.resume();
        large.resume();
        use_briefly(shared);
        REQUIRE(allocator.sizes.size() == 2);
        CHECK(allocator.sizes[0] == small.backend().buffer_size());
        CHECK(allocator.sizes[1] == large.backend().buffer_size());
        CHECK(allocator.sizes[1] >= allocator.sizes[0] + 9'800);
        CHECK(allocator.sizes[1] <= allocator.sizes[0] + 10'000);
        CHECK(shared.counters().buffer_bytes == allocator.held_bytes());
        small.resume();
        CHECK(small.done());
        CHECK(allocator.held() == 1);  // what has ended holds nothing
        large.resume();
        CHECK(kept);
        CHECK(allocator.held() == 0);
    }
}

WEFT_TEST("swapped: a buffer that is kept serves again, and grows when more is needed") {
    counting_allocator allocator;
    shared_stack shared({.allocator = &allocator});
    bool kept = true;
    swapped_coroutine c({.shared = &shared}, [&] {
        for (const std::size_t bytes : {1000U, 500U, 1000U, 3000U, 10U})
            kept = kept && yield_holding(bytes);
    });
    std::vector<std::size_t> buffers;
    std::vector<std::size_t> held;
    c.resume();
    while (!c.done()) {
        use_briefly(shared);
        buffers.push_back(allocator.sizes.size());
        held.push_back(allocator.held());
        c.resume();
    }
    CHECK(kept);
    CHECK((buffers == std::vector<std::size_t>{1, 1, 1, 2, 2}));
    CHECK((held == std::vector<std::size_t>{1, 1, 1, 1, 1}));
    CHECK(allocator.held() == 0);
}

WEFT_TEST("swapped: a buffer that is released at every resume is held only while it is needed") {
    counting_allocator allocator;
    shared_stack shared({.allocator = &allocator, .policy = buffer_policy::release_at_resume});
    bool kept = true;
    std::vector<std::size_t> held_inside;
    swapped_coroutine c({.shared = &shared}, [&] {
        for (const std::size_t bytes : {1000U, 500U, 3000U}) {
            kept = kept && yield_holding(bytes);
            held_inside.push_back(allocator.held());
        }
    });
    c.resume();
    while (!c.done()) {
        CHECK(allocator.held() == 0);
        use_briefly(shared);
        CHECK(allocator.held() == 1);
        c.resume();
    }
    CHECK(kept);
    CHECK((held_inside == std::vector<std::size_t>{0, 0, 0}));
    REQUIRE(allocator.sizes.size() == 3);
    CHECK(allocator.sizes[1] < allocator.sizes[0]);
    CHECK(allocator.sizes[0] < allocator.sizes[2]);
    CHECK(shared.counters().buffers == 3);
}

WEFT_TEST("swapped: a buffer that is allocated at creation is the only one") {
    counting_allocator allocator;
    shared_stack shared({.allocator = &allocator,
                         .policy = buffer_policy::allocate_at_creation,
                         .buffer_size = 20'000});
    bool kept = true;
    swapped_coroutine c({.shared = &shared}, [&] {
        for (const std::size_t bytes : {1000U, 100U, 3000U}) kept = kept && yield_holding(bytes);
    });
    CHECK((allocator.sizes == std::vector<std::size_t>{20'000}));
    CHECK(c.backend().buffer_size() == 20'000);
    allocator.failing = true;  // it is never asked again
    c.resume();
    for (; !c.done(); c.resume()) {
        swapped_coroutine* none = nullptr;
        EXPECT_THROW(none = new swapped_coroutine({.shared = &shared}, [] {}), std::bad_alloc);
        CHECK(none == nullptr);
        allocator.failing = false;
        use_briefly(shared);
        allocator.failing = true;
    }
    CHECK(kept);
    CHECK(shared.counters().copies_out == 3);
    CHECK(allocator.held() == 0);
}

WEFT_TEST("swapped: without an allocator of the user's, buffers are counted all the same") {
    shared_stack shared;
    {
        swapped_coroutine c({.shared = &shared}, yield_forever);
        c.resume();
        use_briefly(shared);
        CHECK(shared.counters().buffers == 1);
        CHECK(shared.counters().buffer_bytes == c.backend().buffer_size());
        CHECK(shared.counters().buffer_bytes > 0);
    }
    CHECK(shared.counters().buffer_bytes == 0);
}

WEFT_TEST("swapped: destroying one whose bytes are on the stack unwinds it without a copy") {
    shared_stack shared;
    bool unwound = false;
    {
        swapped_coroutine c({.shared = &shared}, [&] {
            try {
                yield();
            } catch (...) {
                unwound = true;
                throw;
            }
        });
        c.resume();
    }
    CHECK(unwound);
    CHECK(shared.counters().in_place == 1);
    CHECK(shared.counters().copies_out == 0);
}

WEFT_TEST("swapped: destroying one whose bytes are in a buffer leaves the one on the stack whole") {
    counting_allocator allocator;
    shared_stack shared({.allocator = &allocator});
    bool unwound = false;
    bool kept = false;
    swapped_coroutine stays({.shared = &shared}, [&] { kept = yield_holding(500); });
    {
        swapped_coroutine goes({.shared = &shared}, [&] {
            try {
                yield();
            } catch (...) {
                unwound = true;
                throw;
            }
        });
        goes.resume();
        stays.resume();
    }
    CHECK(unwound);
    stays.resume();
    CHECK(kept);
    CHECK(allocator.held() == 0);
}

WEFT_TEST("swapped: two shared stacks have nothing to do with each other") {
    shared_stack one;
    shared_stack two;
    bool kept = true;
    swapped_coroutine a({.shared = &one}, [&] { kept = kept && yield_holding(100); });
    swapped_coroutine b({.shared = &two}, [&] { kept = kept && yield_holding(200); });
    a.resume();
    b.resume();
    a.resume();
    b.resume();
    CHECK(kept);
    CHECK(one.counters().copies_out + two.counters().copies_out == 0);
    CHECK(one.counters().in_place == 1);
    CHECK(two.counters().in_place == 1);
}

WEFT_TEST("swapped: needs a shared stack, and has none of its own to measure") {
    EXPECT_THROW(swapped_coroutine([] {}), std::invalid_argument);
    EXPECT_THROW(swapped_coroutine(weft::coroutine_options{}, [] {}), std::invalid_argument);
    shared_stack shared;
    EXPECT_THROW(swapped_coroutine({.measure_stack = true, .shared = &shared}, [] {}),
                 std::invalid_argument);
    use_briefly(shared);  // and it has no user left over that would make its end abort
}

WEFT_TEST("swapped: a shared stack that goes before its coroutines is a mistake with a name") {
    const auto mistake = [] {
        auto shared = std::make_unique<shared_stack>();
        const swapped_coroutine c({.shared = shared.get()}, [] {});
        shared.reset();
    };
    EXPECT_DEATH(mistake(), "weft: shared_stack: destroyed while coroutines use it");
}

WEFT_TEST("swapped: stress, many take turns at random depths") {
    shared_stack shared({.policy = buffer_policy::release_at_resume});
    bool kept = true;
    std::vector<swapped_coroutine> all(20);
    unsigned random = 1;
    for (long i = 0; i < stress_count(2'000'000); ++i) {
        random = random * 1664525 + 1013904223;
        swapped_coroutine& c = all[(random >> 16) % all.size()];
        if (c.done()) {
            c = swapped_coroutine({.shared = &shared}, [&kept, bytes = (random >> 20) % 2000 + 1] {
                for (unsigned n = 0; n < 10; ++n) kept = yield_holding(bytes + n * 100) && kept;
            });
        }
        c.resume();
    }
    CHECK(kept);
    CHECK(shared.counters().copies_out > 0);
}
