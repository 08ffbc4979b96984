// async_test.cpp - functions whose results are futures, and futures of several.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/sync/async.hpp>

#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <weft/fiber/cancel.hpp>
#include <weft/sync/when.hpp>

#include "loops.hpp"

using namespace weft;
using namespace std::chrono_literals;

MATRIX_TEST("async: runs as a fiber, and its result or exception comes out of get") {
    std::string log;
    int here = 3;
    spawn([&] {
        auto value = async(options(), [&] {
            log += 'b';
            yield();
            return std::make_unique<int>(5);
        });
        auto reference = async(options(), [&]() -> int& { return here; });
        auto thrown = async(options(), [&] { throw std::runtime_error("x"); });
        log += 'a';
        CHECK(*value.get() == 5);
        CHECK(&reference.get() == &here);
        try {
            thrown.get();
        } catch (const std::runtime_error&) { log += 'c'; }
    });
    run();
    CHECK(log == "abc");
}

MATRIX_TEST("async: its future waits in its destructor, and requests no stop") {
    std::string log;
    fiber outer(s, options(), [&] {
        {
            auto f = async(options(), [&] {
                log += sleep_for(1ms) ? 's' : '?';
                log += this_fiber::stop_requested() ? '?' : 'n';
            });
            f = async(options(), [&] { log += '2'; });  // waits for the first, too
            log += 'a';
        }
        log += 'e';
    });
    run_until_blocked();
    CHECK(log == "2");
    outer.request_stop();  // ignored by a destructor
    run_until_blocked();
    CHECK(log == "2");
    advance(1ms);
    run();
    CHECK(log == "2snae");
    outer.detach();
}

MATRIX_TEST("async: the last of shared futures waits") {
    std::string log;
    spawn([&] {
        {
            shared_future<void> a = async(options(), [&] {
                yield();
                yield();
                log += 'f';
            });
            { const shared_future<void> b = a; }
            log += 'b';
        }
        log += 'e';
    });
    run();
    CHECK(log == "bfe");
}

MATRIX_TEST("async: nothing of the function is left when its future is gone") {
    auto held = std::make_shared<int>(1);
    spawn([&] {
        auto f = async(options(), [held] { yield(); });
        CHECK(held.use_count() == 2);
        f.get();
        CHECK(held.use_count() == 1);
    });
    run();
}

MATRIX_TEST("async: deferred runs in the first wait, or never") {
    std::string log;
    spawn([&] {
        auto lazy = async(launch::deferred, [&] {
            log += 'l';
            yield();
            return 4;
        });
        CHECK(lazy.wait_for(1h) == future_status::deferred);
        log += 'a';
        CHECK(lazy.get() == 4);
        const auto never = async(launch::deferred, [&] { log += '?'; });
        auto eager = async(launch::async | launch::deferred, [&] { log += 'e'; });
        eager.get();
        shared_future<int> shared = async(launch::deferred, [&] {
            yield();
            log += 's';
            return 1;
        });
        auto other = async(options(), [shared] { return shared.get(); });
        CHECK(shared.get() + other.get() == 2);
    });
    run();
    CHECK(log == "ales");
}

MATRIX_TEST("async: cancelled while it waits for the future, not while it runs the function") {
    int caught = 0;
    fiber outer(s, options(), [&] {
        auto f = async(options(), [] {
            sleep_for(1ms);
            return 1;
        });
        try {
            f.get();
        } catch (const cancelled&) { ++caught; }
        CHECK(f.valid());
    });
    run_until_blocked();
    outer.request_stop();
    run_until_blocked();
    CHECK(caught == 1);
    advance(1ms);
    run();
    outer.detach();
}

WEFT_TEST("async: from a plain thread, on an executor of its own") {
    loop s;
    s.add_work(1);
    std::thread runs([&] { s.run(); });
    CHECK(weft::async(s, [] { return 6; }).get() == 6);
    CHECK(weft::async(launch::async, s, [] { return 7; }).get() == 7);
    {
        auto waits = weft::async(s, [] { sleep_for(1ms); });
    }
    s.add_work(-1);
    runs.join();
}

WEFT_TEST("async: a function that finds no stack breaks its promise") {
    struct none final : stack_source {
        stack take(std::size_t) override { throw std::bad_alloc(); }
        void give_back(stack) noexcept override {}
    } empty;
    int unhandled = 0;
    loop s({.unhandled = [&](std::exception_ptr, runnable&) { ++unhandled; }});
    auto f = async(s, {.stacks = &empty}, [] { return 1; });
    s.run();
    EXPECT_THROW(f.get(), future_error);
    CHECK(unhandled == 1);
}

MATRIX_TEST("when_all: ready when all are, in whatever order") {
    promise<int> a;
    promise<std::string> b;
    const shared_future<std::string> shared = b.get_future();
    std::string log;
    spawn([&] {
        auto [x, y, z] = when_all(a.get_future(), shared, shared).get();
        log += std::to_string(x.get()) + y.get() + z.get();
    });
    run_until_blocked();
    b.set_value("b");
    run_until_blocked();
    CHECK(log.empty());
    a.set_value(1);
    run();
    CHECK(log == "1bb");
    CHECK(shared.get() == "b");
}

MATRIX_TEST("when_any: ready when one is, and says which") {
    std::vector<promise<int>> promises(5);
    std::vector<future<int>> futures;
    for (auto& p : promises) futures.push_back(p.get_future());
    std::string log;
    spawn([&] {
        auto any = when_any(futures).get();
        log += std::to_string(any.index) + std::to_string(any.futures[any.index].get());
        auto [index, rest] = when_any(any.futures[0].share(), std::move(any.futures[1])).get();
        log += std::to_string(index) + std::to_string(std::get<1>(rest).get());
    });
    run_until_blocked();
    promises[3].set_value(9);
    run_until_blocked();
    CHECK(log == "39");
    promises[1].set_value(8);
    run();
    CHECK(log == "3918");
}

MATRIX_TEST("when_all and when_any: of none, of those that are ready, broken or deferred") {
    spawn([&] {
        CHECK(when_all(std::vector<future<int>>()).get().empty());
        CHECK(when_any(std::vector<future<int>>()).get().index == static_cast<std::size_t>(-1));
        auto [lazy] = when_all(async(launch::deferred, [] { return 1; })).get();
        CHECK(lazy.get() == 1);
        auto broken = promise<int>().get_future();
        auto also = promise<int>().get_future();
        auto any = when_any(std::move(broken), std::move(also)).get();
        CHECK(any.index == 0);
        EXPECT_THROW(std::get<0>(any.futures).get(), future_error);
        EXPECT_THROW(static_cast<void>(when_all(future<int>())), future_error);
    });
    run();
}

MATRIX_TEST("when_all and when_any: what async started is waited for, though nobody asks") {
    std::string log;
    spawn([&] {
        {
            auto all = when_all(async(options(),
                                      [&] {
                                          yield();
                                          log += 'a';
                                      }),
                                promise<int>().get_future());
        }
        log += '1';
        promise<int> never;
        {
            auto any = when_any(never.get_future(), async(options(), [&] {
                                    yield();
                                    yield();
                                    log += 'b';
                                }));
        }
        log += '2';
    });
    run();
    CHECK(log == "a1b2");
}

WEFT_TEST("async: when_any gives the first, and does not wait for the others") {
    loop s({.external_wakes = false});
    bool go_on = false;
    bool got = false;
    go(s, [&] {
        auto first = when_any(async([&] {
                                  while (!go_on) yield();
                              }),
                              async([] {}))
                         .get();
        CHECK(first.index == 1);
        got = true;
        go_on = true;  // the slow one could not end before
    });
    s.run();
    CHECK(got);
}
