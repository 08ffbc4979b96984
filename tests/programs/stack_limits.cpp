// stack_limits.cpp - takes stacks until the system has no more, and goes on afterwards.
//
//     stack_limits stacks|pieces|large|coroutines|mappings|locked
//
// Address space is limited with RLIMIT_AS. That stands in for overcommit_memory=2 too, under which
// a reservation fails in the same way (ENOMEM from mmap), and which is a setting of the whole
// machine; what a depot reserves there is in overcommit_test.cpp. Says "right" and ends with status
// 0 if everything was; "no limit" if there is none.
//
// SPDX-License-Identifier: Apache-2.0
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <new>
#include <string_view>
#include <system_error>
#include <vector>

#include <weft/coroutine/coroutine.hpp>
#include <weft/stack/stack_depot.hpp>

#include "memory_probe.hpp"
#include "program_support.hpp"
#include "stack/guard.hpp"

using weft::guard_kind;
using weft::stack;
using weft::stack_depot;
using weft_test::require;

namespace {

constexpr std::size_t mebibyte = std::size_t{1} << 20;
const std::size_t size = weft::default_stack_size();

// Allows so much more address space than is used now.
void limit_address_space(std::size_t bytes) {
    std::ifstream statm("/proc/self/statm");
    std::size_t pages = 0;
    statm >> pages;
    const rlimit limit{pages * 4096 + bytes, RLIM_INFINITY};
    require(::setrlimit(RLIMIT_AS, &limit) == 0);
}

// Of mappings, or of memory that may be locked.
bool says_no_more(const std::system_error& error) {
    return error.code().value() == ENOMEM || error.code().value() == EAGAIN;
}

// Whether taking one more fails as it should, and changes nothing.
bool is_exhausted(stack_depot& depot) {
    const weft::stack_counters before = depot.counters();
    try {
        depot.give_back(depot.take(size));
        return false;
    } catch (const std::bad_alloc&) {
    } catch (const std::system_error& error) { require(says_no_more(error)); }
    const weft::stack_counters after = depot.counters();
    require(after.live == before.live && after.idle == before.idle &&
            after.mapped == before.mapped && after.reserved_bytes == before.reserved_bytes);
    return true;
}

// Takes all there are, but not more than there is room for in `taken`.
void take_all(stack_depot& depot, std::vector<stack>& taken) {
    while (taken.size() < taken.capacity()) {
        try {
            taken.push_back(depot.take(size));
        } catch (const std::bad_alloc&) { return; } catch (const std::system_error& error) {
            require(says_no_more(error));
            return;
        }
    }
}

void give_all_back(stack_depot& depot, std::vector<stack>& taken) {
    for (const stack& s : taken) depot.give_back(s);
    taken.clear();
}

// Takes all there are, twice, and looks at each.
void exhaust(stack_depot& depot, std::vector<stack>& taken, const weft_test::memory_probe& probe) {
    take_all(depot, taken);
    const std::size_t count = taken.size();
    if (count == taken.capacity()) {
        std::puts("no limit");
        std::exit(0);
    }
    require(count > 0 && depot.counters().live == count);
    for (int i = 0; i < 3; ++i) require(is_exhausted(depot));
    for (const stack& s : taken)
        require(probe.usable(s) && probe.guarded(s, weft::detail::guard_size));
    depot.give_back(taken.back());
    require(depot.take(size).low == taken.back().low);
    give_all_back(depot, taken);
    require(depot.counters().live == 0 && depot.counters().idle == count);
    take_all(depot, taken);
    require(taken.size() == count && is_exhausted(depot));
    give_all_back(depot, taken);
}

void stacks() {
    const weft_test::memory_probe probe;
    std::vector<stack> taken;
    taken.reserve(100'000);
    limit_address_space(300 * mebibyte);
    for (int i = 0; i < 2; ++i) {
        stack_depot depot;
        exhaust(depot, taken, probe);
        require(depot.counters().reserved_bytes > 200 * mebibyte);
        require(depot.counters().mapped > 1);
    }
}

void pieces() {
    limit_address_space(100 * mebibyte);
    stack_depot depot;
    const stack s = depot.take(size);
    require(weft_test::memory_probe().usable(s));
    require(depot.counters().mapped == 1);
    require(depot.counters().reserved_bytes < 100 * mebibyte);
    require(depot.counters().reserved_bytes > 20 * mebibyte);
    depot.give_back(s);
}

void large() {
    limit_address_space(100 * mebibyte);
    stack_depot depot;
    try {
        static_cast<void>(depot.take(512 * mebibyte));
        require(false);
    } catch (const std::bad_alloc&) {}
    require(depot.counters().live == 0 && depot.counters().reserved_bytes == 0);
    depot.give_back(depot.take(size));
    const stack s = depot.take(8 * mebibyte);
    require(weft_test::memory_probe().usable(s));
    depot.give_back(s);
}

void coroutines() {
    std::vector<weft::coroutine> made;
    made.reserve(100'000);
    limit_address_space(200 * mebibyte);
    std::size_t first_count = 0;
    for (int i = 0; i < 3; ++i) {
        try {
            for (;;) made.emplace_back([] { weft::this_coroutine::yield(); });
        } catch (const std::bad_alloc&) {}
        require(made.size() > 100);
        require(weft::shared_stack_depot().counters().live == made.size());
        if (i == 0) first_count = made.size();
        require(made.size() + 10 >
                first_count);  // memory for the blocks, not stacks, may end first
        for (weft::coroutine& c : made) c.resume();
        made.clear();
        require(weft::shared_stack_depot().counters().live == 0);
    }
}

// Guards made with mprotect take mappings, of which the system allows so many.
void mappings() {
    const weft_test::memory_probe probe;
    std::vector<stack> taken;
    taken.reserve(100'000);
    stack_depot depot({.guard = guard_kind::protect});
    exhaust(depot, taken, probe);
}

// All memory is locked that is mapped from here on, and only so much may be.
void locked() {
    constexpr std::size_t most = 6 * mebibyte;
    const weft_test::memory_probe probe;
    const rlimit limit{most, most};
    const bool is_limited = ::setrlimit(RLIMIT_MEMLOCK, &limit) == 0;
    if (::geteuid() == 0) require(::seteuid(65'534) == 0);  // for root there is no limit
    if (!is_limited || ::mlockall(MCL_FUTURE) != 0) {
        std::puts("not here");
        return;
    }
    stack_depot depot;
    std::vector<stack> taken;
    taken.reserve(1000);
    exhaust(depot, taken, probe);
    require(depot.counters().reserved_bytes > most / 2);
}

}  // namespace

int main(int argc, char** argv) {
    require(argc == 2);
    const std::string_view wanted = argv[1];
    if (wanted == "stacks") stacks();
    if (wanted == "pieces") pieces();
    if (wanted == "large") large();
    if (wanted == "coroutines") coroutines();
    if (wanted == "mappings") mappings();
    if (wanted == "locked") locked();
    std::puts("right");
}
