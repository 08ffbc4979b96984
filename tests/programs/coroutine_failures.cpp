// coroutine_failures.cpp - what the back ends of coroutine ask of the system is refused, on
// purpose.
//
//     coroutine_failures CASE
//
// The program has its own getcontext and pthread_create (refusal.hpp), which fail when told to. The
// cases are the functions below. Says "right" and ends with status 0 if everything was. A sanitizer
// has such functions of its own, so there it does nothing.
//
// SPDX-License-Identifier: Apache-2.0
#include <cerrno>
#include <cstdio>
#include <string_view>
#include <system_error>

#include <weft/coroutine/coroutine.hpp>
#include <weft/coroutine/thread_cache.hpp>
#include <weft/stack/stack_depot.hpp>

#include "program_support.hpp"

#if !WEFT_ASAN && !WEFT_TSAN

#include "refusal.hpp"

using weft::coroutine_options;
using weft_test::refuse;
using weft_test::require;

namespace {

// The errno of a refused constructor; 0 if it is not refused.
template <class Coroutine>
int error_of_making(const coroutine_options& options) {
    try {
        const Coroutine made(options, [] {});
        return 0;
    } catch (const std::system_error& error) {
        require(error.code().category() == std::generic_category());
        require(std::string_view(error.what()).starts_with("weft: "));
        return error.code().value();
    }
}

template <class Coroutine>
void require_usable(const coroutine_options& options) {
    int steps = 0;
    Coroutine c(options, [&] {
        ++steps;
        weft::this_coroutine::yield();
        ++steps;
    });
    c.resume();
    c.resume();
    require(steps == 2 && c.done());
}

std::size_t live_stacks() { return weft::shared_stack_depot().counters().live; }

// The stack is taken by then, and goes back to where it came from.
void getcontext_fails() {
    weft::stack_depot own;
    for (weft::stack_depot* depot : {&weft::shared_stack_depot(), &own}) {
        const coroutine_options options{.stacks = depot};
        refuse.getcontext = EINVAL;
        for (int i = 0; i < 3; ++i) {
            require(error_of_making<weft::ucontext_coroutine>(options) == EINVAL);
            require(depot->counters().live == 0 && depot->counters().idle == 1);
        }
        refuse = {};
        require_usable<weft::ucontext_coroutine>(options);
        require(depot->counters().live == 0 && depot->counters().idle == 1);
    }
}

void pthread_create_fails() {
    const std::size_t live = live_stacks();
    refuse.pthread_create = EAGAIN;
    require(error_of_making<weft::thread_coroutine>({}) == EAGAIN);
    refuse = {};
    require_usable<weft::thread_coroutine>({});
    require(live_stacks() == live);
}

void pthread_create_fails_for_a_cache() {
    weft::thread_cache threads;
    const coroutine_options options{.threads = &threads};
    refuse.pthread_create = EAGAIN;
    for (int i = 0; i < 3; ++i) {
        require(error_of_making<weft::thread_coroutine>(options) == EAGAIN);
        require(threads.started() == 0 && threads.idle() == 0);
    }
    refuse = {};
    require_usable<weft::thread_coroutine>(options);
    refuse.pthread_create = EAGAIN;
    require_usable<weft::thread_coroutine>(options);  // the one that there is will do
    refuse = {};
    require(threads.started() == 1 && threads.idle() == 1);
}

}  // namespace

int main(int argc, char** argv) {
    const weft_test::program_case cases[] = {
        {"getcontext_fails", getcontext_fails},
        {"pthread_create_fails", pthread_create_fails},
        {"pthread_create_fails_for_a_cache", pthread_create_fails_for_a_cache},
    };
    return weft_test::run_case(argc, argv, cases, "right");
}

#else

int main() { std::puts("not here"); }

#endif
