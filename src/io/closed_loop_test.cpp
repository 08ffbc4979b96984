// closed_loop_test.cpp - calls on other threads, made on loops to which nobody else may post.
//
// SPDX-License-Identifier: Apache-2.0
#include <semaphore>
#include <string>

#include <weft/io/blocking.hpp>
#include <weft/io/file.hpp>
#include <weft/io/process.hpp>
#include <weft/io/resolver.hpp>

#include "loops.hpp"

using namespace weft;

MATRIX_TEST("blocking: a closed loop waits for the call, and runs others meanwhile") {
    io::side_pool side;
    std::binary_semaphore open{0};
    std::string log;
    spawn([&] {
        log += io::blocking(side, [&open] {
            open.acquire();
            return 'b';
        });
    });
    spawn([&] {
        log += 'o';
        yield();
        log += 'O';
    });
    run_until_blocked();
    CHECK(log == "oO");
    open.release();
    run();
    CHECK(log == "oOb");
}

MATRIX_TEST("blocking: a call that has begun is waited for on a closed loop, too") {
    io::side_pool side;
    std::binary_semaphore begun{0};
    std::binary_semaphore open{0};
    int got = 0;
    fiber calls(s, options(), [&] {
        got = io::blocking(side, [&] {
            begun.release();
            open.acquire();
            return 7;
        });
    });
    run_until_blocked();
    begun.acquire();
    calls.request_stop();
    run_until_blocked();
    CHECK(got == 0);
    open.release();
    run();
    CHECK(got == 7);
}

MATRIX_TEST("blocking: stress of many calls on a closed loop") {
    io::side_pool side({.limit = 3});
    const long rounds = weft_test::stress_count(kind == stack_kind::thread ? 1'000 : 5'000);
    long sum = 0;
    for (int i = 0; i < 5; ++i)
        spawn([&] {
            for (long j = 0; j < rounds; ++j) sum += io::blocking(side, [] { return 1; });
        });
    run();
    CHECK(sum == 5 * rounds);
}

MATRIX_TEST("io: files, names and programs are there for a closed loop") {
    bool done = false;
    spawn([&] {
        CHECK(io::read_file("/proc/self/comm").has_value());
        CHECK(io::resolver({.system = true}).resolve("localhost", "80").has_value());
        CHECK(io::process::spawn({"true"}).value().wait().value().exited_with(0));
        done = true;
    });
    run();
    CHECK(done);
}
