// pool.cpp - the snippets of docs/pool.md and docs/threads.md and docs/no_preemption.md.
//
// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <cerrno>
#include <vector>

#include <weft/weft.hpp>

#include "check.hpp"

using namespace weft;

namespace {

// [my_errno]
[[gnu::noinline]] int* my_errno() {
    int* where = &errno;
    // Without it the compiler may infer that the result never changes.
    asm volatile("" : "+r"(where)::"memory");
    return where;
}
// [/my_errno]

struct row {
    int value;
};

void digest(const row& r, std::atomic<long>& sum) { sum += r.value; }

void many() {
    std::atomic<int> ended = 0;
    // [many]
    pool p({.workers = 4});
    wait_group wg;
    for (int i = 0; i < 128; ++i) {
        wg.add();
        go(p, [&] {
            auto done = wg.guard();  // done() at the end, also on an exception
            for (int j = 0; j < 7; ++j) yield();
            ++ended;
        });
    }
    wg.wait();  // from a plain thread or from a fiber
    // [/many]
    check(ended == 128, "all have ended");
}

void calculating() {
    std::atomic<long> sum = 0;
    const std::vector<row> table(1'000, row{1});
    loop s;
    go(s, [&] {
        // [due]
        for (const row& r : table) {
            digest(r, sum);
            yield_if_due();
        }
        // [/due]
    });
    s.run();
    check(sum == 1'000, "digested");
}

}  // namespace

int main() {
    many();
    calculating();
    *my_errno() = EAGAIN;
    check(errno == EAGAIN, "errno");
    return 0;
}
