// pool_crowd.hpp - bodies that run at once, on loops or on a pool, with plain threads among them.
//
//     void conserve(const weft_test::gathering& gather) { gather(6, [&](int i) { ... }); }
//     MATRIX_TEST("...") { conserve(weft_test::on_loops(kind)); }
//     POOL_TEST("...") { conserve(weft_test::on_pool(p, kind)); }
//
// As crowd.hpp: every third body is a plain thread, the others are fibers of the kind given.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <thread>
#include <vector>

#include <weft/sync/wait_group.hpp>

#include "crowd.hpp"
#include "pools.hpp"

namespace weft_test {

/// Runs body(0) to body(count - 1) at once, and returns when all have ended.
using gathering = std::function<void(int count, const std::function<void(int)>& body)>;

/// For whoever polls: neither its worker nor its processor is taken from others.
inline void let_others_run() {
    if (weft::this_fiber::get_id()) weft::yield();
    std::this_thread::yield();
}

inline gathering on_loops(weft::stack_kind kind) {
    return [kind](int count, const std::function<void(int)>& body) {
        crowd_fixture(kind, nullptr).crowd(count, body);
    };
}

inline gathering on_pool(weft::pool& p, weft::stack_kind kind) {
    return [&p, kind](int count, const std::function<void(int)>& body) {
        weft::wait_group fibers;
        std::vector<std::thread> threads;
        for (int i = 0; i < count; ++i) {
            if (i % 3 == 2) {
                threads.emplace_back([&, i] { body(i); });
                continue;
            }
            fibers.add();
            weft::go(p, {.kind = kind}, [&, i] {
                const auto done = fibers.guard();
                body(i);
            });
        }
        for (std::thread& one : threads) one.join();
        fibers.wait();
    };
}

}  // namespace weft_test
