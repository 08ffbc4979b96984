// guard_test.cpp - the memory below a stack cannot be touched, whatever the kind of guard.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/stack/stack_depot.hpp>

#include <sys/mman.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "memory_probe.hpp"
#include "stack/guard.hpp"
#include "subprocess.hpp"
#include "weft_test.hpp"

using weft::guard_kind;
using weft::stack;
using weft::stack_depot;
using weft::detail::guard_size;
using weft_test::memory_probe;

namespace {

constexpr bool with_sanitizer = WEFT_ASAN || WEFT_TSAN;

bool is_usable_here(guard_kind kind) {
    return kind == guard_kind::protect ||
           weft::detail::choose_guard(guard_kind::best) == guard_kind::install;
}

// The sanitizers turn the signal into an exit.
bool died_of_a_fault(int status) {
    return with_sanitizer ? !(WIFEXITED(status) && WEXITSTATUS(status) == 0)
                          : WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV;
}

void write_to(std::byte* address) { *static_cast<volatile std::byte*>(address) = std::byte{1}; }
void read_from(std::byte* address) {
    static_cast<void>(*static_cast<volatile std::byte*>(address));
}

std::size_t lines_in_maps() {
    std::ifstream maps("/proc/self/maps");
    std::size_t lines = 0;
    for (std::string line; std::getline(maps, line);) ++lines;
    return lines;
}

}  // namespace

// One test for each kind of guard; in its body the kind is called Kind.
#define GUARD_TEST_AT(sentence, run)                                                 \
    template <guard_kind Kind>                                                       \
    static void run();                                                               \
    template <guard_kind Kind>                                                       \
    static void WEFT_TEST_NAME(run, _if_usable)() {                                  \
        if (!is_usable_here(Kind)) GTEST_SKIP() << "this system has no such guards"; \
        run<Kind>();                                                                 \
    }                                                                                \
    [[maybe_unused]] static const bool WEFT_TEST_NAME(run, _added) =                 \
        weft_test::add(sentence, "install", __FILE__, __LINE__,                      \
                       &WEFT_TEST_NAME(run, _if_usable) < guard_kind::install >) &&  \
        weft_test::add(sentence, "protect", __FILE__, __LINE__,                      \
                       &WEFT_TEST_NAME(run, _if_usable) < guard_kind::protect >);    \
    template <guard_kind Kind>                                                       \
    static void run()
#define GUARD_TEST(sentence) GUARD_TEST_AT(sentence, WEFT_TEST_NAME(test_at_line_, __LINE__))

WEFT_TEST("guard: the best kind is one that works, and a kind that is asked for is used") {
    const guard_kind best = weft::detail::choose_guard(guard_kind::best);
    CHECK(best != guard_kind::best);
    CHECK(stack_depot().counters().guard == best);
    CHECK(stack_depot({.guard = guard_kind::protect}).counters().guard == guard_kind::protect);
    CHECK(stack_depot({.guard = guard_kind::install}).counters().guard == guard_kind::install);
    // An emulator may say yes to installing, and then guards nothing.
    CHECK(!weft_test::emulated || best == guard_kind::protect);
}

GUARD_TEST("guard: touching the memory below a stack is a fault") {
    stack_depot depot({.guard = Kind});
    const stack s = depot.take(weft::default_stack_size());
    EXPECT_EXIT(write_to(s.low - 1), died_of_a_fault, "");
    EXPECT_EXIT(write_to(s.low - guard_size), died_of_a_fault, "");
    EXPECT_EXIT(read_from(s.low - 1), died_of_a_fault, "");
    write_to(s.low);
    depot.give_back(s);
}

GUARD_TEST("guard: a system call that is given the memory below a stack fails") {
    stack_depot depot({.guard = Kind});
    const memory_probe probe;
    for (std::size_t size : {std::size_t{4096}, weft::default_stack_size(), std::size_t{9} << 20}) {
        const stack s = depot.take(size);
        for (std::byte* page = s.low - guard_size; page < s.low; page += 4096) {
            CHECK(!probe.readable(page));
            CHECK(!probe.writable(page));
        }
        CHECK(probe.guarded(s, guard_size));
        CHECK(probe.usable(s));
        depot.give_back(s);
    }
}

GUARD_TEST("guard: is made as well where the memory was locked meanwhile") {
    stack_depot depot({.guard = Kind});
    const memory_probe probe;
    const stack first = depot.take(weft::default_stack_size());
    if (::mlock(first.high(), guard_size + first.size) != 0) {
        depot.give_back(first);
        GTEST_SKIP() << "memory cannot be locked here (RLIMIT_MEMLOCK, or a sanitizer)";
    }
    const stack second = depot.take(weft::default_stack_size());
    CHECK(second.low == first.high() + guard_size);
    CHECK(probe.guarded(second, guard_size));
    CHECK(probe.usable(second));
    depot.give_back(second);
    depot.give_back(first);
}

GUARD_TEST("guard: stands between two stacks that lie side by side") {
    stack_depot depot({.guard = Kind});
    const memory_probe probe;
    std::vector<stack> taken;
    for (int i = 0; i < 100; ++i) taken.push_back(depot.take(weft::default_stack_size()));
    for (const stack& s : taken) std::memset(s.low, 0x5a, s.size);
    for (const stack& s : taken) {
        CHECK(probe.guarded(s, guard_size));
        depot.give_back(s);
    }
}

GUARD_TEST("guard: stays when its stack is given back, trimmed and taken again") {
    stack_depot depot({.guard = Kind});
    const memory_probe probe;
    std::vector<stack> taken;
    for (int i = 0; i < 20; ++i) taken.push_back(depot.take(weft::default_stack_size()));
    for (const stack& s : taken) std::memset(s.low, 0x5a, s.size);
    for (const stack& s : taken) depot.give_back(s);
    for (const stack& s : taken) CHECK(probe.guarded(s, guard_size));
    CHECK(depot.trim() == taken.size());
    for (const stack& s : taken) CHECK(probe.guarded(s, guard_size));
    for (stack& s : taken) {
        s = depot.take(weft::default_stack_size());
        CHECK(probe.guarded(s, guard_size));
        std::memset(s.low, 0xa5, s.size);
        CHECK(s.span().front() == std::byte{0xa5});
        CHECK(s.span().back() == std::byte{0xa5});
    }
    for (const stack& s : taken) depot.give_back(s);
}

// The figure of the library: a million stacks of 64 KiB. The sanitizers keep a record of each
// stack, and look through all of them when one goes.
WEFT_TEST("guard: a million under stress cost no mappings, and each is effective") {
    stack_depot depot;
    if (depot.counters().guard != guard_kind::install)
        GTEST_SKIP() << "this system has guards only at the price of mappings";
    const long stated = weft_test::stress_count(1'000'000);
    const auto count = static_cast<std::size_t>(with_sanitizer ? std::min(stated, 5'000L) : stated);
    const memory_probe probe;
    const std::size_t before = lines_in_maps();
    std::vector<stack> taken;
    taken.reserve(count);
    for (std::size_t i = 0; i < count; ++i) taken.push_back(depot.take(64 * 1024));
    CHECK(depot.counters().live == count);
    const std::size_t after = lines_in_maps();
    CHECK(after - before < 100);
    CHECK(with_sanitizer || after < 200);
    std::size_t ineffective = 0;
    for (const stack& s : taken)
        if (!probe.guarded(s, guard_size)) ++ineffective;
    CHECK(ineffective == 0);
    CHECK(probe.usable(taken.front()));
    CHECK(probe.usable(taken.back()));
    for (const stack& s : taken) depot.give_back(s);
    CHECK(depot.counters().idle == count);
}
