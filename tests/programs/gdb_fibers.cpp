// gdb_fibers.cpp - fibers that wait in several ways, for a debugger to look at.
//
// It calls weft_test_look_here() when all of them wait; gdb stops there (tests/scripts).
//
// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <cstdio>

#include <weft/weft.hpp>

using namespace weft;

// Names that a debugger shows, and a test looks for.
extern "C" {

[[gnu::noinline]] void weft_test_look_here() { asm volatile("" : : : "memory"); }

// Each call is followed by something, for a call at the end would leave no frame.
[[gnu::noinline]] void weft_test_parks(int depth) {
    asm volatile("" : "+r"(depth));
    if (depth != 0)
        weft_test_parks(depth - 1);
    else
        park();
    asm volatile("" : : : "memory");
}

[[gnu::noinline]] void weft_test_sleeps() {
    sleep_for(std::chrono::hours(1));
    asm volatile("" : : : "memory");
}

[[gnu::noinline]] void weft_test_yields() {
    yield();
    asm volatile("" : : : "memory");
}

}  // extern "C"

int main() {
    manual_clock clock;
    loop s({.clock = &clock});
    fiber parked(s, {.name = "parked"}, [] { weft_test_parks(3); });
    fiber in_generator(s, {.name = "in generator"}, [] {
        generator<int> numbers([](auto& yield) {
            weft_test_parks(0);
            yield(1);
        });
        for (int i : numbers) static_cast<void>(i);
    });
    fiber shared(s, {.name = "shared", .kind = stack_kind::swapped}, [] { park(); });
    fiber alone(s, {.name = "alone", .kind = stack_kind::thread}, [] { park(); });
    fiber portable(s, {.name = "portable", .kind = stack_kind::ucontext},
                   [] { weft_test_parks(1); });
    go(s, {.name = "sleeper"}, [] { weft_test_sleeps(); });
    go(s, {.name = "joiner"}, [&] {
        parked.join();
        in_generator.join();
        shared.join();
        alone.join();
        portable.join();
    });
    s.run_until_blocked();

    // One is ready, one runs, one has not started.
    go(s, {.name = "looker"}, [&s] {
        yield();
        go(s, {.name = "young"}, [] {});
        weft_test_look_here();
    });
    go(s, {.name = "ready"}, [] {
        yield();
        weft_test_yields();
    });
    s.run_until_blocked();
    unpark(parked.handle());
    unpark(in_generator.handle());
    unpark(shared.handle());
    unpark(alone.handle());
    unpark(portable.handle());
    clock.advance(std::chrono::hours(1));
    s.run();
    std::puts("right");
}
