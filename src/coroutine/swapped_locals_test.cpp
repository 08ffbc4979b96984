// swapped_locals_test.cpp - a touch of a parked swapped coroutine's locals is caught, where the
// build can.
//
// While nobody runs on the shared stack, that is: the addresses are those of who does. ASan reports
// it at once. Dev builds (WEFT_CHECKS) abort when it was a write and the coroutine goes on, unless
// it was copied out; a read gets garbage. Other builds do not look.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/coroutine/coroutine.hpp>
#include <weft/coroutine/shared_stack.hpp>

#include <weft/base/sanitizer.hpp>
#include <weft/stack/stack_depot.hpp>

#include "swapped_support.hpp"

using namespace weft_test;
using weft::shared_stack;
using weft::swapped_coroutine;
using weft::this_coroutine::yield;

namespace {

// One with a local of the value 41 that the test can reach, and sees what is in it in the end.
struct exposed {
    shared_stack shared;
    volatile int* local = nullptr;
    int seen = 0;
    swapped_coroutine c{{.shared = &shared}, [this] {
                            volatile int mine = 41;
                            local = &mine;
                            yield();
                            seen = mine;
                        }};

    void use_stack_by_another() {
        swapped_coroutine other({.shared = &shared}, [] { yield_holding(1000); });
        other.resume();
    }
};

// The same with a local so far down that the frames of others hardly come there.
struct exposed_far_down : exposed {
    exposed_far_down() {
        c = swapped_coroutine({.shared = &shared}, [this] { run_far_down(); });
    }

    [[gnu::noinline]] void run_far_down() {
        volatile int mine[4000] = {41};
        local = &mine[0];
        yield();
        seen = mine[0];
    }
};

#if !WEFT_ASAN && defined(WEFT_CHECKS) && WEFT_CHECKS

WEFT_TEST("swapped locals: one written while it is parked aborts the resume") {
    exposed e;
    e.c.resume();
    const auto mistake = [&] {
        *e.local = 42;
        e.c.resume();
    };
    EXPECT_DEATH(mistake(), "weft: coroutine: the locals of a parked swapped one were written");
}

WEFT_TEST("swapped locals: one written while it is parked aborts, also if it is destroyed") {
    const auto mistake = [] {
        exposed e;
        e.c.resume();
        *e.local = 42;
    };
    EXPECT_DEATH(mistake(), "weft: coroutine: the locals of a parked swapped one were written");
}

WEFT_TEST("swapped locals: one read while it is parked holds garbage") {
    exposed e;
    e.c.resume();
    CHECK(*e.local != 41);
    e.c.resume();
    CHECK(e.seen == 41);
}

#endif

#if WEFT_ASAN

WEFT_TEST("swapped locals: ASan reports one written while it is parked") {
    exposed e;
    e.c.resume();
    EXPECT_DEATH(*e.local = 42, "use-after-poison");
}

WEFT_TEST("swapped locals: ASan reports one read while it is parked") {
    exposed e;
    e.c.resume();
    EXPECT_DEATH(static_cast<void>(*e.local), "use-after-poison");
}

WEFT_TEST("swapped locals: ASan reports one touched after another has come and gone") {
    exposed e;
    e.c.resume();
    swapped_coroutine other({.shared = &e.shared}, [] {});
    other.resume();
    EXPECT_DEATH(*e.local = 42, "use-after-poison");
    e.c.resume();
    CHECK(e.seen == 41);
}

WEFT_TEST("swapped locals: ASan reports one touched below another that is parked there") {
    exposed_far_down e;
    e.c.resume();
    swapped_coroutine other({.shared = &e.shared}, [] { yield(); });
    other.resume();
    EXPECT_DEATH(*e.local = 42, "use-after-poison");
    e.c.resume();
    CHECK(e.seen == 41);
}

WEFT_TEST("swapped locals: ASan lets whoever has the stack next touch it") {
    weft::stack_depot stacks;
    weft::stack used;
    {
        shared_stack shared({.stacks = &stacks});
        used = shared.where();
        swapped_coroutine c({.shared = &shared}, [] {});
        c.resume();
    }
    std::memset(used.low, 0, used.size);
}

#endif

}  // namespace

WEFT_TEST("swapped locals: are whole when it goes on, in place and after a copy") {
    exposed in_place;
    in_place.c.resume();
    in_place.c.resume();
    CHECK(in_place.seen == 41);
    exposed copied;
    copied.c.resume();
    copied.use_stack_by_another();
    copied.c.resume();
    CHECK(copied.seen == 41);
}

WEFT_TEST("swapped locals: may be touched by whatever runs on the same coroutine") {
    shared_stack shared;
    int seen = 0;
    swapped_coroutine c({.shared = &shared}, [&] {
        int mine = 1;
        const auto change = [&mine](int by) {
            mine += by;
            yield();
            mine *= by;
        };
        change(2);
        change(3);
        seen = mine;
    });
    while (!c.done()) c.resume();
    CHECK(seen == 27);
}
