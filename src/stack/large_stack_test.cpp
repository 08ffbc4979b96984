// large_stack_test.cpp - stacks larger than any size class, each a mapping of its own.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/stack/stack_depot.hpp>

#include <chrono>
#include <ctime>
#include <vector>

#include <weft/base/sanitizer.hpp>

#include "memory_probe.hpp"
#include "stack/guard.hpp"
#include "subprocess.hpp"
#include "weft_test.hpp"

using weft::stack;
using weft::stack_counters;
using weft::stack_depot;
using weft_test::memory_probe;

namespace {

std::size_t large_request() {
    const auto& classes = stack_depot::size_classes();
    return classes[3] / (classes[1] / weft::default_stack_size()) + 1;
}

bool same(const stack_counters& a, const stack_counters& b) {
    return a.live == b.live && a.idle == b.idle && a.reserved_bytes == b.reserved_bytes &&
           a.mapped == b.mapped && a.guard == b.guard;
}

std::chrono::nanoseconds time_of_this_thread() {
    timespec now{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

// For each of that many that are live together: to take it, and to give it back.
std::chrono::nanoseconds time_of_one_of(std::size_t count) {
    stack_depot depot;
    std::vector<stack> taken;
    taken.reserve(count);
    const auto before = time_of_this_thread();
    for (std::size_t i = 0; i < count; ++i) taken.push_back(depot.take(large_request()));
    for (const stack& s : taken) depot.give_back(s);
    return (time_of_this_thread() - before) / count;
}

}  // namespace

WEFT_TEST("stack depot: a large stack has a mapping of its own, which ends when it is given back") {
    stack_depot depot;
    const memory_probe probe;
    const stack_counters before = depot.counters();
    const stack large = depot.take(large_request());
    CHECK(large.size >= large_request());
    CHECK(probe.usable(large));
    const stack_counters meanwhile = depot.counters();
    CHECK(meanwhile.live == 1);
    CHECK(meanwhile.mapped == before.mapped + 1);
    CHECK(meanwhile.reserved_bytes ==
          before.reserved_bytes + large.size + weft::detail::guard_size);
    depot.give_back(large);
    CHECK(!probe.readable(large.low));
    CHECK(!probe.readable(large.high() - 1));
    CHECK(same(depot.counters(), before));
}

WEFT_TEST("stack depot: large stacks may be given back in any order") {
    stack_depot depot;
    const memory_probe probe;
    const stack a = depot.take(large_request());
    const stack b = depot.take(large_request() * 3);
    const stack c = depot.take(large_request() * 2);
    depot.give_back(a);
    CHECK(probe.usable(b));
    CHECK(probe.usable(c));
    depot.give_back(c);
    CHECK(probe.usable(b));
    depot.give_back(b);
    CHECK(depot.counters().live == 0);
    CHECK(depot.counters().reserved_bytes == 0);
}

WEFT_TEST("stack depot: a large stack takes no longer where there are many") {
    if (WEFT_ASAN || WEFT_TSAN || weft_test::emulated)
        GTEST_SKIP() << "sanitizers and the emulator look through all mappings themselves";
    const auto takes_longer = [] { return time_of_one_of(12'000) > 3 * time_of_one_of(500); };
    CHECK(!(takes_longer() && takes_longer() && takes_longer()));
}
