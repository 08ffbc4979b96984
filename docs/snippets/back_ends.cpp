// back_ends.cpp - the snippets of docs/back_ends.md and docs/fiber_context.md.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/weft.hpp>

#include "check.hpp"

int main() {
    // [three]
    weft::coroutine c([] { weft::this_coroutine::yield(); });

    weft::thread_cache threads;  // optional: without it each has a thread of its own
    weft::thread_coroutine t({.threads = &threads}, [] { weft::this_coroutine::yield(); });

    weft::shared_stack shared;  // required: the stack that they share
    weft::swapped_coroutine s({.shared = &shared}, [] { weft::this_coroutine::yield(); });
    // [/three]
    for (int i = 0; i < 2; ++i) {
        c.resume();
        t.resume();
        s.resume();
    }
    check(c.done() && t.done() && s.done(), "all are done");
    return 0;
}
