// stack_depot_test.cpp - sizes, order and counters of the depot, and what it refuses.
//
// The guards are in guard_test.cpp, failures of the system in out_of_memory_test.cpp, stacks larger
// than any class in large_stack_test.cpp.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/stack/stack_depot.hpp>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <limits>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "memory_probe.hpp"
#include "stack/guard.hpp"
#include "subprocess.hpp"
#include "weft_test.hpp"

using weft::guard_kind;
using weft::stack;
using weft::stack_counters;
using weft::stack_depot;
using weft_test::memory_probe;

namespace {

// What a request is multiplied by in this build.
std::size_t scale() { return stack_depot::size_classes()[1] / weft::default_stack_size(); }

// The largest request that gets a stack of this class.
std::size_t request_for(std::size_t size_class) {
    return stack_depot::size_classes()[size_class] / scale();
}

std::size_t large_request() { return request_for(3) + 1; }

bool is_page_aligned(const std::byte* address) {
    return reinterpret_cast<std::uintptr_t>(address) % 4096 == 0;
}

bool same(const stack_counters& a, const stack_counters& b) {
    return a.live == b.live && a.idle == b.idle && a.reserved_bytes == b.reserved_bytes &&
           a.mapped == b.mapped && a.guard == b.guard;
}

void touch_all_pages(const stack& s) {
    for (std::byte* page = s.low; page < s.high(); page += 4096) *page = std::byte{1};
}

// The memory that the mapping at this address holds, without what the kernel may take at any time.
std::size_t kept_bytes_at(const std::byte* address) {
    std::ifstream smaps("/proc/self/smaps");
    const auto wanted = reinterpret_cast<std::uintptr_t>(address);
    bool inside = false;
    std::size_t kibibytes = 0;
    for (std::string line; std::getline(smaps, line);) {
        std::uintptr_t low = 0;
        std::uintptr_t high = 0;
        std::size_t value = 0;
        if (std::sscanf(line.c_str(), "%lx-%lx ", &low, &high) == 2)
            inside = wanted >= low && wanted < high;
        else if (inside && std::sscanf(line.c_str(), "Rss: %zu", &value) == 1)
            kibibytes += value;
        else if (inside && std::sscanf(line.c_str(), "LazyFree: %zu", &value) == 1)
            kibibytes -= value;
    }
    return kibibytes * 1024;
}

}  // namespace

WEFT_TEST("stack depot: the stack given back last is the next one taken") {
    stack_depot depot;
    const stack a = depot.take(weft::default_stack_size());
    const stack b = depot.take(weft::default_stack_size());
    const stack c = depot.take(weft::default_stack_size());
    depot.give_back(b);
    depot.give_back(a);
    depot.give_back(c);
    CHECK(depot.take(weft::default_stack_size()).low == c.low);
    CHECK(depot.take(weft::default_stack_size()).low == a.low);
    CHECK(depot.take(weft::default_stack_size()).low == b.low);
    for (const stack& s : {a, b, c}) depot.give_back(s);
}

WEFT_TEST(
    "stack depot: several of any sizes are given back at once, and half come back, in order") {
    stack_depot depot;
    std::vector<stack> all;
    for (const std::size_t i : {1U, 1U, 1U, 1U, 0U, 1U, 1U})
        all.push_back(depot.take(request_for(i)));
    all.push_back(depot.take(request_for(3) + 1));
    depot.give_back_all(all);
    CHECK(depot.counters().live == 0);
    CHECK(depot.counters().idle == 7);  // the large one is gone

    std::array<stack, 8> some;
    REQUIRE(depot.take_idle(request_for(1), some) == 3);
    CHECK(some[2].low == all[6].low);
    CHECK(some[1].low == all[5].low);
    CHECK(some[0].low == all[3].low);
    CHECK(depot.counters().live == 3);
    CHECK(depot.take_idle(request_for(1), std::span(some).last(1)) == 1);
    CHECK(depot.take_idle(request_for(0), std::span(some).last(1)) == 0);  // half of one
    CHECK(depot.take_idle(request_for(2), std::span(some).last(1)) == 0);  // nothing is made
    CHECK(depot.take_idle(request_for(3) + 1, std::span(some).last(1)) == 0);
    depot.give_back_all(std::span(some).first(3));
    depot.give_back(some[7]);
}

WEFT_TEST("stack depot: a stack that is in use is not handed out") {
    stack_depot depot;
    const stack a = depot.take(weft::default_stack_size());
    const stack b = depot.take(weft::default_stack_size());
    CHECK(a.low >= b.high() + weft::detail::guard_size ||
          b.low >= a.high() + weft::detail::guard_size);
    depot.give_back(a);
    depot.give_back(b);
}

WEFT_TEST("stack depot: a request is rounded up to a size class") {
    stack_depot depot;
    const auto& classes = stack_depot::size_classes();
    const auto size_for = [&](std::size_t request) {
        const stack taken = depot.take(request);
        depot.give_back(taken);
        return taken.size;
    };
    CHECK(size_for(4096) == classes[0]);
    for (std::size_t i = 0; i < classes.size(); ++i) {
        CHECK(size_for(request_for(i) - 1) == classes[i]);
        CHECK(size_for(request_for(i)) == classes[i]);
        CHECK(i == 0 || size_for(request_for(i - 1) + 1) == classes[i]);
    }
    CHECK(size_for(weft::default_stack_size()) == classes[1]);
}

WEFT_TEST("stack depot: each size class has its own stacks") {
    stack_depot depot;
    const stack small = depot.take(request_for(0));
    depot.give_back(small);
    const stack medium = depot.take(request_for(1));
    CHECK(medium.low != small.low);
    CHECK(depot.take(request_for(0)).low == small.low);
    depot.give_back(small);
    depot.give_back(medium);
}

WEFT_TEST("stack depot: every byte of a stack is usable, and its ends are at pages") {
    stack_depot depot;
    for (std::size_t i = 0; i <= stack_depot::size_classes().size(); ++i) {
        const stack s = depot.take(i < 4 ? request_for(i) : large_request());
        CHECK(is_page_aligned(s.low));
        CHECK(is_page_aligned(s.high()));
        std::memset(s.low, 0x5a, s.size);
        CHECK(s.span().front() == std::byte{0x5a});
        CHECK(s.span().back() == std::byte{0x5a});
        depot.give_back(s);
    }
}

WEFT_TEST("stack depot: its counters follow every stack") {
    stack_depot depot;
    CHECK(depot.counters().live == 0);
    CHECK(depot.counters().idle == 0);
    CHECK(depot.counters().reserved_bytes == 0);
    CHECK(depot.counters().mapped == 0);
    CHECK(depot.counters().guard != guard_kind::best);
    const stack a = depot.take(request_for(1));
    const stack b = depot.take(request_for(1));
    const stack c = depot.take(request_for(2));
    CHECK(depot.counters().live == 3);
    CHECK(depot.counters().idle == 0);
    CHECK(depot.counters().mapped == 2);
    CHECK(depot.counters().reserved_bytes > a.size + b.size + c.size);
    depot.give_back(a);
    depot.give_back(c);
    CHECK(depot.counters().live == 1);
    CHECK(depot.counters().idle == 2);
    const stack_counters before = depot.counters();
    depot.give_back(depot.take(request_for(1)));
    CHECK(same(depot.counters(), before));
    depot.give_back(b);
}

WEFT_TEST("stack depot: reserves address space by the chunk that it was told") {
    const std::size_t stride = stack_depot::size_classes()[1] + weft::detail::guard_size;
    stack_depot depot({.chunk_size = 3 * stride + 1});
    std::vector<stack> taken;
    for (std::size_t i = 1; i <= 7; ++i) {
        taken.push_back(depot.take(request_for(1)));
        CHECK(depot.counters().mapped == (i + 2) / 3);
        CHECK(depot.counters().reserved_bytes == (i + 2) / 3 * 3 * stride);
    }
    for (const stack& s : taken) depot.give_back(s);
}

WEFT_TEST("stack depot: a chunk smaller than a stack holds one") {
    stack_depot depot({.chunk_size = 0});
    const memory_probe probe;
    const stack a = depot.take(request_for(3));
    const stack b = depot.take(request_for(3));
    CHECK(depot.counters().mapped == 2);
    CHECK(probe.usable(a));
    CHECK(probe.usable(b));
    depot.give_back(a);
    depot.give_back(b);
}

WEFT_TEST("stack depot: its memory is gone when it is") {
    const memory_probe probe;
    stack s;
    {
        stack_depot depot;
        s = depot.take(request_for(1));
        CHECK(probe.usable(s));
        depot.give_back(s);
        CHECK(probe.usable(s));
    }
    CHECK(!probe.readable(s.low));
}

WEFT_TEST("stack depot: trim counts each idle stack once, until it is used again") {
    stack_depot depot;
    CHECK(depot.trim() == 0);
    std::array<stack, 5> taken;
    for (stack& s : taken) s = depot.take(request_for(1));
    CHECK(depot.trim() == 0);
    for (const stack& s : taken) depot.give_back(s);
    CHECK(depot.trim() == 5);
    CHECK(depot.trim() == 0);
    const stack a = depot.take(request_for(1));
    const stack b = depot.take(request_for(1));
    CHECK(depot.trim() == 0);
    depot.give_back(a);
    depot.give_back(b);
    CHECK(depot.trim() == 2);
    depot.give_back(depot.take(request_for(0)));
    CHECK(depot.trim() == 1);
    CHECK(depot.counters().live == 0);
    CHECK(depot.counters().idle == 6);
}

WEFT_TEST("stack depot: trim lets the kernel take the memory of idle stacks, and of no others") {
    if (weft_test::emulated) GTEST_SKIP() << "the emulator ignores MADV_FREE";
    stack_depot depot({.chunk_size = std::size_t{256} << 20});
    std::vector<stack> idle;
    for (int i = 0; i < 64; ++i) idle.push_back(depot.take(request_for(1)));
    const stack used = depot.take(request_for(1));
    for (const stack& s : idle) touch_all_pages(s);
    std::memset(used.low, 0x5a, used.size);
    const std::size_t before = kept_bytes_at(idle[0].low);
    for (const stack& s : idle) depot.give_back(s);
    CHECK(depot.trim() == idle.size());
    if (depot.counters().guard == guard_kind::install) {
        // All in one mapping. Half, for the kernel keeps a few pages back for a while.
        CHECK(kept_bytes_at(idle[0].low) + idle.size() * used.size / 2 <= before);
    }
    for (const std::byte byte : used.span()) REQUIRE(byte == std::byte{0x5a});
    depot.give_back(used);
}

WEFT_TEST("stack depot: sizes that make no sense are refused, with the number") {
    stack_depot depot;
    const std::size_t too_large = (std::size_t{1} << 40) + 1;
    for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{4095}, too_large,
                                   std::numeric_limits<std::size_t>::max()}) {
        SCOPED_TRACE(size);
        try {
            static_cast<void>(depot.take(size));
            ADD_FAILURE() << "it was taken";
        } catch (const std::invalid_argument& error) {
            const std::string said = error.what();
            CHECK(said.find(" " + std::to_string(size) + " bytes") != said.npos);
        }
    }
    CHECK(same(depot.counters(), stack_depot().counters()));
}

WEFT_TEST("stack depot: destroyed while a stack is in use, it aborts by name") {
    const auto destroy_early = [](std::size_t size) {
        stack_depot depot;
        static_cast<void>(depot.take(size));
    };
    EXPECT_DEATH(destroy_early(request_for(0)), "weft: stack depot: destroyed while stacks of it");
    EXPECT_DEATH(destroy_early(request_for(3)), "weft: stack depot: destroyed while stacks of it");
    EXPECT_DEATH(destroy_early(large_request()), "weft: stack depot: destroyed while stacks of it");
}

WEFT_TEST("stack depot: given back more stacks than were taken, it aborts by name") {
    stack_depot depot;
    const stack s = depot.take(request_for(1));
    depot.give_back(s);
    EXPECT_DEATH(depot.give_back(s), "weft: stack depot: given back more stacks than were taken");
    const stack large = depot.take(large_request());
    depot.give_back(large);
    EXPECT_DEATH(depot.give_back(large), "weft: stack depot: given a stack that it did not hand");
}

WEFT_TEST("stack depot: given the stack of another depot, it aborts by name") {
    stack_depot depot;
    stack_depot other;
    const stack large = other.take(large_request());
    EXPECT_DEATH(depot.give_back(large), "weft: stack depot: given a stack that it did not hand");
    other.give_back(large);
#if defined(WEFT_CHECKS) && WEFT_CHECKS
    const stack own = depot.take(request_for(1));
    const stack foreign = other.take(request_for(1));
    EXPECT_DEATH(depot.give_back(foreign), "weft: stack depot: given a stack that it did not hand");
    const stack shifted{own.low + 4096, own.size};
    EXPECT_DEATH(depot.give_back(shifted), "weft: stack depot: given a stack that it did not hand");
    depot.give_back(own);
    other.give_back(foreign);
#endif
}

WEFT_TEST("stack depot: the shared one is one, and counts what is taken through the seam") {
    CHECK(&weft::shared_stacks() == &weft::shared_stack_depot());
    const std::size_t live = weft::shared_stack_depot().counters().live;
    const stack s = weft::shared_stacks().take(weft::default_stack_size());
    CHECK(weft::shared_stack_depot().counters().live == live + 1);
    weft::shared_stacks().give_back(s);
    CHECK(weft::shared_stack_depot().counters().live == live);
}

// Each holder signs both ends of its stacks, and finds its signature when it gives them back.
WEFT_TEST("stack depot: under stress by many threads no stack is handed out twice") {
    constexpr int threads = 4;
    constexpr std::size_t held = 8;
    const long rounds = weft_test::stress_count(1'000'000);
    stack_depot depot({.chunk_size = std::size_t{16} << 20});
    std::atomic<bool> right = true;
    const auto sign = [](const stack& s, long signature) {
        std::memcpy(s.low, &signature, sizeof signature);
        std::memcpy(s.high() - sizeof signature, &signature, sizeof signature);
    };
    const auto is_signed = [](const stack& s, long signature) {
        return std::memcmp(s.low, &signature, sizeof signature) == 0 &&
               std::memcmp(s.high() - sizeof signature, &signature, sizeof signature) == 0;
    };
    const auto work = [&](int thread) {
        std::array<stack, held> mine{};
        for (long round = 0; round < rounds / threads; ++round) {
            const std::size_t at = static_cast<std::size_t>(round) % held;
            if (mine[at]) {
                if (!is_signed(mine[at], (round - static_cast<long>(held)) * threads + thread))
                    right = false;
                depot.give_back(mine[at]);
            }
            mine[at] = depot.take(request_for(static_cast<std::size_t>(round) % 2));
            sign(mine[at], round * threads + thread);
            if (thread == 0 && round % 100 == 0) static_cast<void>(depot.trim());
        }
        for (const stack& s : mine)
            if (s) depot.give_back(s);
    };
    std::vector<std::thread> workers;
    for (int thread = 0; thread < threads; ++thread) workers.emplace_back(work, thread);
    for (std::thread& worker : workers) worker.join();
    CHECK(right);
    CHECK(depot.counters().live == 0);
    CHECK(depot.counters().idle <= threads * held * 2);
}
