// coroutine_misuse_test.cpp - each mistake ends in an abort whose message names it.
//
// A death test runs in a fork of this process, where other threads do not exist: so everything that
// a statement needs is made in it.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/coroutine/coroutine.hpp>

#include <memory>
#include <thread>
#include <utility>

#include "backends.hpp"
#include "exception_support.hpp"

using namespace weft_test;
using weft::this_coroutine::yield;

BACKEND_TEST("misuse: resuming one that has ended") {
    const auto mistake = [&] {
        Coroutine c(options({.name = "collector"}), [] {});
        c.resume();
        c.resume();
    };
    EXPECT_DEATH(mistake(), "weft: coroutine: resumed after its end \\('collector'\\)");
}

BACKEND_TEST("misuse: resuming one that has ended by an exception") {
    const auto mistake = [&] {
        Coroutine c(options(), [] { throw problem{1}; });
        try {
            c.resume();
        } catch (const problem&) {}
        c.resume();
    };
    EXPECT_DEATH(mistake(), "weft: coroutine: resumed after its end");
}

BACKEND_TEST("misuse: a running one resumes itself") {
    const auto mistake = [&] {
        Coroutine c;
        c = Coroutine(options({.name = "narcissus"}), [&] { c.resume(); });
        c.resume();
    };
    EXPECT_DEATH(mistake(), "weft: coroutine: resumed while it is running \\('narcissus'\\)");
}

BACKEND_TEST("misuse: resuming one whose own callee does it") {
    const auto mistake = [&] {
        Coroutine outer;
        Coroutine inner(options(), [&] { outer.resume(); });
        outer = Coroutine(options({.name = "outer"}), [&] { inner.resume(); });
        outer.resume();
    };
    EXPECT_DEATH(mistake(), "weft: coroutine: resumed while it is running \\('outer'\\)");
}

BACKEND_TEST("misuse: resuming in one thread what runs in another") {
    const auto mistake = [&] {
        Coroutine c;
        c = Coroutine(options(), [&] { std::thread([&] { c.resume(); }).join(); });
        c.resume();
    };
    EXPECT_DEATH(mistake(), "weft: coroutine: resumed while it is running");
}

WEFT_TEST("misuse: yielding outside any coroutine") {
    EXPECT_DEATH(yield(), "weft: this_coroutine::yield: called outside any coroutine");
}

BACKEND_TEST("misuse: yielding after the last coroutine has been left") {
    const auto mistake = [&] {
        Coroutine c(options(), [] { yield(); });
        c.resume();
        yield();
    };
    EXPECT_DEATH(mistake(), "weft: this_coroutine::yield: called outside any coroutine");
}

BACKEND_TEST("misuse: swallowing forced_unwind and ending") {
    const auto mistake = [&] {
        Coroutine c(options({.name = "glutton"}), [] {
            try {
                yield();
            } catch (...) {}
        });
        c.resume();
    };
    EXPECT_DEATH(mistake(), "weft: coroutine: its body swallowed forced_unwind \\('glutton'\\)");
}

BACKEND_TEST("misuse: throwing something else in the place of forced_unwind") {
    const auto mistake = [&] {
        Coroutine c(options(), [] {
            try {
                yield();
            } catch (...) { throw problem{1}; }
        });
        c.resume();
    };
    EXPECT_DEATH(mistake(), "weft: coroutine: its body swallowed forced_unwind");
}

BACKEND_TEST("misuse: swallowing forced_unwind and yielding again") {
    const auto mistake = [&] {
        Coroutine c(options({.name = "deaf"}), [] {
            for (;;) {
                try {
                    yield();
                } catch (...) {}
            }
        });
        c.resume();
    };
    EXPECT_DEATH(mistake(), "weft: coroutine: yielded while it is being destroyed .*\\('deaf'\\)");
}

BACKEND_TEST("misuse: a destructor yields while its coroutine is being destroyed") {
    const auto mistake = [&] {
        Coroutine c(options(), [] {
            const at_exit yielder{[] { yield(); }};
            yield();
        });
        c.resume();
    };
    EXPECT_DEATH(mistake(), "weft: coroutine: yielded while it is being destroyed");
}

BACKEND_TEST("misuse: destroying a running one") {
    const auto mistake = [&] {
        Coroutine c;
        c = Coroutine(options({.name = "sawyer"}), [&] { c = Coroutine(); });
        c.resume();
    };
    EXPECT_DEATH(mistake(), "weft: coroutine: destroyed while it is running \\('sawyer'\\)");
}

BACKEND_TEST("misuse: destroying one that waits for another it has resumed") {
    const auto mistake = [&] {
        Coroutine outer;
        Coroutine inner(options(), [&] { outer = Coroutine(); });
        outer = Coroutine(options(), [&] { inner.resume(); });
        outer.resume();
    };
    EXPECT_DEATH(mistake(), "weft: coroutine: destroyed while it is running");
}

BACKEND_TEST("misuse: using an empty one") {
    const auto resume_default = [] { Coroutine().resume(); };
    const auto resume_moved_from = [&] {
        Coroutine c(options(), [] {});
        const Coroutine taken(std::move(c));
        c.resume();
    };
    const auto ask_for_backend = [] { static_cast<void>(Coroutine().backend()); };
    EXPECT_DEATH(resume_default(), "weft: coroutine: used while empty");
    EXPECT_DEATH(resume_moved_from(), "weft: coroutine: used while empty");
    EXPECT_DEATH(ask_for_backend(), "weft: coroutine: used while empty");
}
