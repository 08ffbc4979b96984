// late_end_test.cpp - executors that are destroyed while somebody is there.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/fiber/fiber.hpp>

#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include <weft/exec/loop.hpp>
#include <weft/exec/pool.hpp>
#include <weft/fiber/suspend.hpp>

#include "late_support.hpp"
#include "weft_test.hpp"

using namespace weft;

WEFT_TEST("loop misuse: destroyed from inside itself it aborts") {
    const auto misuse = [] {
        auto s = std::make_unique<loop>();
        go(*s, [&] { s.reset(); });
        s->run();
    };
    EXPECT_DEATH(misuse(), "loop: destroyed from inside itself");
}

namespace {

// Ends when the list was read, whoever asked it to stop before.
void ends_late(executor& where, weft_test::late_list& list, std::thread& helper,
               std::string& listed) {
    go(where, {.name = "slow"}, [&] {
        suspend([&](runnable* me) noexcept -> runnable* {
            helper = std::thread([&, me] {
                listed = list.wait_for("fiber slow: ");
                where.post(me);
            });
            return nullptr;
        });
    });
}

}  // namespace

WEFT_TEST("loop: destroyed while somebody does not end, it lists him and goes on waiting") {
    weft_test::late_list list;
    std::thread helper;
    std::string listed;
    {
        loop s;
        ends_late(s, list, helper, listed);
    }
    helper.join();
    CHECK(listed.starts_with("weft: loop: destroyed, and after 0.001 s these have not ended:\n"));
}

WEFT_TEST("loop: destroyed while somebody only yields, it lists him, too") {
    weft_test::late_list list;
    std::atomic<bool> read = false;
    std::thread helper([&] {
        list.wait_for("fiber busy: ");
        read = true;
    });
    {
        loop s({.external_wakes = false});
        go(s, {.name = "busy"}, [&] {
            while (!read) yield();
        });
    }
    helper.join();
}

WEFT_TEST("pool: destroyed while somebody does not end, it lists him and goes on waiting") {
    weft_test::late_list list;
    std::thread helper;
    std::string listed;
    {
        pool p({.workers = 2});
        ends_late(p, list, helper, listed);
    }
    helper.join();
    CHECK(listed.starts_with("weft: pool: destroyed, and after 0.001 s these have not ended:\n"));
}
