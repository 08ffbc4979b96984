// once_test.cpp - once_flag and call_once.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/sync/once.hpp>

#include <memory>
#include <string>

#include "crowd.hpp"

using namespace weft;
using weft_test::with_test_points;

MATRIX_TEST("call_once: the others wait until the one has returned") {
    once_flag flag;
    std::string log;
    for (const char name : {'a', 'b', 'c'})
        spawn([&, name] {
            call_once(
                flag,
                [&](char who) {
                    yield();
                    log += who;
                },
                name);
            log += '.';
        });
    run();
    CHECK(log == "a...");
    call_once(flag, [&] { log += '?'; });
    CHECK(log == "a...");
}

MATRIX_TEST("call_once: one that throws has not happened, and the next tries") {
    once_flag flag;
    std::string log;
    for (const char name : {'a', 'b', 'c'})
        spawn([&, name] {
            try {
                call_once(flag, [&] {
                    yield();
                    log += name;
                    if (name == 'a') throw 1;
                });
                log += '+';
            } catch (int) { log += '-'; }
        });
    run();
    CHECK(log == "a-b++");
}

CROWD_TEST("call_once: stress, it happens once, also if it throws at first") {
    const with_test_points points;
    const long count = rounds(100'000);
    struct shared {
        once_flag flag;
        int tries = 0;
        int done = 0;
    };
    std::vector<std::unique_ptr<shared>> all;
    for (long i = 0; i < count; ++i) all.push_back(std::make_unique<shared>());
    crowd(6, [&](int) {
        for (const auto& one : all) {
            for (bool again = true; again;) {
                again = false;
                try {
                    call_once(one->flag, [&] {
                        weft_test::yield_or_pass();
                        if (++one->tries < 3) throw 1;
                        ++one->done;
                    });
                } catch (int) { again = true; }
            }
            if (one->done != 1) ADD_FAILURE() << "has not happened once";
        }
    });
}

#if defined(WEFT_CHECKS) && WEFT_CHECKS
WEFT_TEST("call_once misuse: called again from inside it aborts") {
    once_flag flag;
    EXPECT_DEATH(call_once(flag, [&] { call_once(flag, [] {}); }),
                 "call_once: called again from inside its function");
}
#endif
