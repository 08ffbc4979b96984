// crowd.hpp - bodies that run at once: fibers on two loops, each on a thread of its own, and plain
// threads.
//
//     MATRIX_TEST("mutex: two are never inside at once, in stress") {
//         const with_test_points points;
//         mutex m;
//         crowd(kind, 6, [&](int i) { const std::lock_guard lock(m); ... });
//     }
//
// Every third body is a plain thread; the others are fibers of the kind given.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include <weft/base/test_point.hpp>

#include "loops.hpp"

namespace weft_test {

/// Lets threads meet at the test points: most give up the processor there, now and then.
class with_test_points {
public:
    with_test_points() { weft::detail::at_test_points = &meet; }
    with_test_points(const with_test_points&) = delete;
    with_test_points& operator=(const with_test_points&) = delete;
    ~with_test_points() { weft::detail::at_test_points = nullptr; }

private:
    static void meet(const char*) noexcept {
        static std::atomic<unsigned> count = 0;
        if ((count.fetch_add(1, std::memory_order_relaxed) * 2654435761U >> 29) == 0)
            std::this_thread::yield();
    }
};

/// Runs body(0) to body(count - 1) at once, and returns when all have ended.
inline void crowd(weft::stack_kind kind, int count, const std::function<void(int)>& body) {
    weft::loop loops[2];
    std::vector<std::thread> threads;
    std::atomic<bool> begin = false;
    for (int i = 0; i < count; ++i) {
        if (i % 3 == 2)
            threads.emplace_back([&, i] {
                while (!begin) std::this_thread::yield();
                body(i);
            });
        else
            weft::go(loops[i % 3], {.kind = kind}, [&body, i] { body(i); });
    }
    for (weft::loop& one : loops)
        threads.emplace_back([&] {
            while (!begin) std::this_thread::yield();
            one.run();
        });
    begin = true;
    for (std::thread& one : threads) one.join();
}

/// Whether whoever calls is on a fiber: the body of a crowd may be a plain thread.
inline void yield_or_pass() {
    if (weft::this_fiber::get_id())
        weft::yield();
    else
        std::this_thread::yield();
}

}  // namespace weft_test
