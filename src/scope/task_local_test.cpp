// task_local_test.cpp - task locals: bound for a block, inherited by whoever is started there.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/scope/task_local.hpp>

#include <memory>
#include <string>

#include <weft/scope/task_group.hpp>
#include <weft/sync/async.hpp>

#include "loops.hpp"
#include "pools.hpp"

using namespace weft;

namespace {
const task_local<std::string> request("none");
const task_local<int> depth(0);
}  // namespace

MATRIX_TEST("task_local: bound for a block, the innermost counts") {
    std::string log;
    spawn([&] {
        log += *request;
        {
            const auto outer = request.bind("a");
            const auto other = depth.bind(7);
            {
                const auto inner = request.bind("b");
                yield();
                log += *request + std::to_string(*depth);
            }
            log += request.get();
        }
        log += *request + std::to_string(*depth);
    });
    run();
    CHECK(log == "noneb7anone0");
    CHECK(*request == "none");  // outside of fibers
}

MATRIX_TEST("task_local: go, fiber, async and groups start with what their starter has") {
    std::string log;
    spawn([&] {
        const auto bound = request.bind("r");
        go(options(), [&] { log += 'g' + *request; });
        fiber f(options(), [&] { log += 'f' + *request; });
        async(options(), [&] { log += 'a' + *request; }).get();
        f.join();
        with_task_group<void>({.shares_locals = false, .fiber = options()}, [&](auto& g) {
            g.add([&] {
                const auto own = request.bind("child");
                log += 't' + *request;
            });
            g.wait();
            log += *request;
        });
    });
    spawn([&] { log += *request; });
    run();
    CHECK(log.find("none") != std::string::npos);
    for (const char* part : {"gr", "fr", "ar", "tchild"})
        CHECK(log.find(part) != std::string::npos);
    CHECK(log.ends_with("childr"));
}

MATRIX_TEST("task_local: a value lives as long as somebody may read it") {
    const auto counted = std::make_shared<int>(1);
    const task_local<std::shared_ptr<int>> held;
    spawn([&] {
        const auto bound = held.bind(counted);
        go(options(), [&] {
            yield();
            CHECK(**held == 1);
            CHECK(counted.use_count() == 2);
        });
    });
    run();
    CHECK(counted.use_count() == 1);
}

LOOP_TEST("task_local: many at once") {
    std::vector<std::unique_ptr<task_local<int>>> all;
    for (int i = 0; i < 100; ++i) all.push_back(std::make_unique<task_local<int>>(-1));
    spawn([&] {
        std::vector<std::unique_ptr<task_local<int>::binding>> bound;
        const std::function<void(std::size_t)> next = [&](std::size_t i) {
            if (i == all.size()) {
                for (std::size_t j = 0; j < all.size(); ++j) CHECK(**all[j] == static_cast<int>(j));
                return;
            }
            const auto one = all[i]->bind(static_cast<int>(i));
            next(i + 1);
        };
        next(0);
        for (const auto& one : all) CHECK(**one == -1);
    });
    run();
}
