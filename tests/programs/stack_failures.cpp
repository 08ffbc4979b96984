// stack_failures.cpp - what the stack part asks of the system is refused, on purpose.
//
//     stack_failures CASE
//
// The program has its own mmap and so on (refusal.hpp), which fail when told to. The cases are the
// functions below. Says "right" and ends with status 0 if everything was; "not here" if this system
// has no guards of the kind to be refused. A sanitizer has such functions of its own, so there it
// does nothing.
//
// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <weft/coroutine/coroutine.hpp>
#include <weft/stack/overflow.hpp>
#include <weft/stack/stack_cache.hpp>
#include <weft/stack/stack_depot.hpp>

#include "memory_probe.hpp"
#include "program_support.hpp"
#include "stack/guard.hpp"

#if !WEFT_ASAN && !WEFT_TSAN

#include "refusal.hpp"

using weft::guard_kind;
using weft::stack;
using weft::stack_counters;
using weft::stack_depot;
using weft_test::mapped_bytes;
using weft_test::refuse;
using weft_test::require;

namespace {

const std::size_t size = weft::default_stack_size();
constexpr std::size_t large_size = std::size_t{16} << 20;

bool same(const stack_counters& a, const stack_counters& b) {
    return a.live == b.live && a.idle == b.idle && a.mapped == b.mapped &&
           a.reserved_bytes == b.reserved_bytes;
}

bool is_right(const stack& s) {
    const weft_test::memory_probe probe;
    return probe.usable(s) && probe.guarded(s, weft::detail::guard_size);
}

void take_and_check(stack_depot& depot, std::size_t wanted = size) {
    const stack s = depot.take(wanted);
    require(is_right(s));
    depot.give_back(s);
}

// The errno of a refused take; -1 for std::bad_alloc, 0 if it is not refused.
int error_of_take(stack_depot& depot, std::size_t wanted = size) {
    try {
        depot.give_back(depot.take(wanted));
        return 0;
    } catch (const std::system_error& error) {
        require(error.code().category() == std::generic_category());
        return error.code().value();
    } catch (const std::bad_alloc&) { return -1; }
}

void mmap_fails() {
    stack_depot depot;
    const std::size_t before = mapped_bytes;
    for (const auto& [error, expected] : {std::pair{EAGAIN, EAGAIN}, {EPERM, EPERM}, {ENOMEM, -1}})
        for (const std::size_t wanted : {size, large_size}) {
            refuse.mmap = error;
            require(error_of_take(depot, wanted) == expected);
            require(same(depot.counters(), {}));
            require(mapped_bytes == before);
        }
    refuse.mmap = 0;
    take_and_check(depot);
    take_and_check(depot, large_size);
}

void reservations_get_smaller() {
    stack_depot depot;
    refuse.mmap = ENOMEM;
    refuse.mmap_above = std::size_t{1} << 20;
    const stack s = depot.take(size);
    require(is_right(s));
    require(weft_test::refused_sizes.size() >=
            5);  // 1 GiB, 256, 64, 16 and 4 MiB, or a little less
    for (std::size_t i = 1; i < weft_test::refused_sizes.size(); ++i)
        require(weft_test::refused_sizes[i] <= weft_test::refused_sizes[i - 1] / 4);
    require(depot.counters().mapped == 1);
    require(depot.counters().reserved_bytes <= refuse.mmap_above);
    refuse.mmap_above = s.size + weft::detail::guard_size;  // a single slot
    std::vector<stack> taken;
    for (int i = 0; i < 50; ++i) taken.push_back(depot.take(size));
    refuse.mmap_above -= 1;
    require(error_of_take(depot) == -1);
    refuse.mmap = 0;
    const std::size_t mapped = depot.counters().mapped;
    const std::size_t reserved = depot.counters().reserved_bytes;
    taken.push_back(depot.take(size));
    require(depot.counters().mapped == mapped + 1);
    require(depot.counters().reserved_bytes > reserved + (std::size_t{1} << 29));
    for (const stack& one : taken) {
        require(is_right(one));
        depot.give_back(one);
    }
    depot.give_back(s);
}

void guard_fails(guard_kind kind, int& refused_call, int error) {
    stack_depot depot({.guard = kind});
    refused_call = error;
    require(error_of_take(depot) == error);  // the reservation stays for the next
    require(depot.counters().live == 0 && depot.counters().idle == 0);
    refused_call = 0;
    const stack first = depot.take(size);
    require(is_right(first) && depot.counters().mapped == 1);
    const stack_counters before = depot.counters();
    const std::size_t mapped = mapped_bytes;
    refused_call = error;
    for (int i = 0; i < 3; ++i) {
        require(error_of_take(depot) == error && same(depot.counters(), before));
        require(error_of_take(depot, large_size) == error && same(depot.counters(), before));
    }
    require(mapped_bytes == mapped);
    depot.give_back(first);
    require(error_of_take(depot) == 0);  // an idle one has its guard
    refused_call = 0;
    const stack again = depot.take(size);
    const stack second = depot.take(size);
    require(again.low == first.low && is_right(again) && is_right(second));
    require(second.low == first.high() + weft::detail::guard_size);  // no slot was lost
    take_and_check(depot, large_size);
    depot.give_back(again);
    depot.give_back(second);
}

void install_fails() {
    if (stack_depot().counters().guard != guard_kind::install) {
        std::puts("not here");
        std::exit(0);
    }
    guard_fails(guard_kind::install, refuse.madvise, EPERM);
    guard_fails(guard_kind::install, refuse.madvise, ENOMEM);
}

void protect_fails() {
    guard_fails(guard_kind::protect, refuse.mprotect, EACCES);
    guard_fails(guard_kind::protect, refuse.mprotect, ENOMEM);
}

// What this process cannot install, it does without.
void check_that_protect_is_chosen() {
    stack_depot depot;
    require(depot.counters().guard == guard_kind::protect);
    refuse = {};
    take_and_check(depot);
    take_and_check(depot, large_size);
}

void probe_is_refused() {
    refuse.madvise = EINVAL;
    check_that_protect_is_chosen();
}

void probe_has_no_memory() {
    refuse.mmap = ENOMEM;
    check_that_protect_is_chosen();
}

void probe_is_told_a_lie() {
    refuse.madvise_does_nothing = true;
    check_that_protect_is_chosen();
}

void trim_fails() {
    stack_depot depot({.guard = guard_kind::protect});
    const stack s = depot.take(size);
    depot.give_back(s);
    refuse.madvise = EINVAL;
    static_cast<void>(depot.trim());
    refuse.madvise = 0;
    take_and_check(depot);
}

// The first, the second, ... allocation of each operation fails.
void new_fails() {
    stack_depot warm;
    take_and_check(warm);
    for (const std::size_t wanted : {size, large_size}) {
        int failures = 0;
        for (bool failed = true; failed; ++failures) {
            const std::size_t before = mapped_bytes;
            stack_depot depot;
            refuse.allocations_left = failures;
            failed = error_of_take(depot, wanted) == -1;
            refuse.allocations_left = weft_test::no_limit;
            if (failed) require(same(depot.counters(), {}) && mapped_bytes == before);
            take_and_check(depot, wanted);
        }
        require(failures > 1);
    }
    for (long shelf = 0; shelf < 4; ++shelf) {
        refuse.allocations_left = shelf;
        try {
            const weft::stack_cache cache(warm);
            require(false);
        } catch (const std::bad_alloc&) {}
    }
    refuse.allocations_left = 4;
    weft::stack_cache cache(warm);
    require(refuse.allocations_left == 0);
    cache.give_back(cache.take(size));
    require(cache.cached() == 1);
    refuse.allocations_left = weft_test::no_limit;
}

void coroutine_gets_no_stack() {
    const stack_counters before = weft::shared_stack_depot().counters();
    const std::size_t mapped = mapped_bytes;
    for (const int error : {EAGAIN, ENOMEM}) {
        refuse.mmap = error;
        try {
            weft::coroutine([] {});
            require(false);
        } catch (const std::system_error& refused) {
            require(error == EAGAIN && refused.code().value() == EAGAIN);
        } catch (const std::bad_alloc&) { require(error == ENOMEM); }
    }
    refuse.mmap = 0;
    require(same(weft::shared_stack_depot().counters(), before) && mapped_bytes == mapped);
    bool ran = false;
    weft::coroutine c([&] { ran = true; });
    c.resume();
    require(ran);
}

bool has_signal_stack() {
    stack_t now{};
    require(::sigaltstack(nullptr, &now) == 0);
    return (now.ss_flags & SS_DISABLE) == 0;
}

// A coroutine runs all the same; only a report could not be made.
void check_that_nothing_is_left() {
    bool ran = false;
    weft::coroutine c([&] { ran = true; });
    const std::size_t mapped = mapped_bytes;
    c.resume();
    require(ran && !has_signal_stack() && mapped_bytes == mapped);
    // Nor is anybody else's thread-specific value touched, or their signal stack taken away.
    refuse = {};
}

void signal_stack_has_no_memory() {
    static_cast<void>(weft::shared_stack_depot());
    weft::coroutine c([] {});
    refuse.mmap = ENOMEM;
    c.resume();
    require(!has_signal_stack());
    refuse = {};
}

void signal_stack_is_refused() {
    refuse.sigaltstack = EPERM;
    check_that_nothing_is_left();
}

void signal_stack_cannot_be_kept() {
    refuse.setspecific = ENOMEM;
    check_that_nothing_is_left();
}

void signal_stack_has_no_key() {
    pthread_key_t somebodys{};
    require(::pthread_key_create(&somebodys, nullptr) == 0);
    require(::pthread_setspecific(somebodys, "theirs") == 0);
    refuse.key_create = EAGAIN;
    check_that_nothing_is_left();
    require(std::string_view(static_cast<const char*>(::pthread_getspecific(somebodys))) ==
            "theirs");
}

void handler_is_refused() {
    refuse.sigaction = EINVAL;
    try {
        weft::enable_overflow_report();
        require(false);
    } catch (const std::system_error& error) { require(error.code().value() == EINVAL); }
    weft::coroutine([] {}).resume();
    weft::disable_overflow_report();
    refuse = {};
    weft::enable_overflow_report();
    weft::coroutine([] {}).resume();
}

}  // namespace

int main(int argc, char** argv) {
    const weft_test::program_case cases[] = {
        {"mmap_fails", mmap_fails},
        {"reservations_get_smaller", reservations_get_smaller},
        {"install_fails", install_fails},
        {"protect_fails", protect_fails},
        {"probe_is_refused", probe_is_refused},
        {"probe_has_no_memory", probe_has_no_memory},
        {"probe_is_told_a_lie", probe_is_told_a_lie},
        {"trim_fails", trim_fails},
        {"new_fails", new_fails},
        {"coroutine_gets_no_stack", coroutine_gets_no_stack},
        {"signal_stack_has_no_memory", signal_stack_has_no_memory},
        {"signal_stack_is_refused", signal_stack_is_refused},
        {"signal_stack_cannot_be_kept", signal_stack_cannot_be_kept},
        {"signal_stack_has_no_key", signal_stack_has_no_key},
        {"handler_is_refused", handler_is_refused},
    };
    return weft_test::run_case(argc, argv, cases, "right");
}

#else

int main() { std::puts("not here"); }

#endif
