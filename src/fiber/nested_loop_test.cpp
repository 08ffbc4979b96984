// nested_loop_test.cpp - loops and pools that are run inside fibers of loops.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/exec/loop.hpp>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <weft/exec/pool.hpp>
#include <weft/fiber/cancel.hpp>

#include "loops.hpp"

using namespace weft;
using namespace std::chrono_literals;

WEFT_TEST("loop: run inside a fiber of another lets that one's other fibers run") {
    std::string log;
    loop outer;
    fiber_handle parked;
    go(outer, [&] {
        loop inner;
        go(inner, [&] {
            parked = this_fiber::handle();
            log += 'a';
            park();
            log += 'd';
        });
        inner.run();
        log += 'e';
    });
    go(outer, [&] {
        log += 'b';
        yield();
        log += 'c';
        unpark(parked);
    });
    outer.run();
    CHECK(log == "abcde");
}

namespace {

// A loop that others may post to, inside a fiber of one that nobody may post to.
struct nested {
    explicit nested(weft_test::loop_fixture& test) : outer(test) {}

    weft_test::loop_fixture& outer;
    std::unique_ptr<loop> inner = std::make_unique<loop>();
    std::string log;
    fiber_handle parked;

    void run_inner_in_fiber() {
        outer.spawn([this] {
            go(*inner, [this] {
                parked = this_fiber::handle();
                log += 'i';
                static_cast<void>(park());
                log += 'I';
            });
            CHECK(!inner->run());
            log += 'e';
        });
    }
};

}  // namespace

MATRIX_TEST("loop: an open one that is idle in a fiber of a closed one lets the others run") {
    nested both(*this);
    both.run_inner_in_fiber();
    spawn([&both] {
        both.log += 'o';
        yield();
        both.log += 'O';
        unpark(both.parked);
    });
    run();
    CHECK(both.log == "ioOIe");
}

MATRIX_TEST("loop: a step of the closed one does not wait for the open one inside") {
    nested both(*this);
    both.run_inner_in_fiber();
    CHECK(run_until_blocked() == 1);
    CHECK(!s.step());
    unpark(both.parked);
    run_until_blocked();
    CHECK(both.log == "iIe");
}

MATRIX_TEST("loop: another thread wakes the open one inside, and the closed one does not end") {
    nested both(*this);
    both.run_inner_in_fiber();
    run_until_blocked();
    std::thread other([&both] { unpark(both.parked); });
    run();
    other.join();
    CHECK(both.log == "iIe");
}

MATRIX_TEST("loop: another thread wakes an open one two closed ones deep") {
    nested both(*this);
    loop middle({.external_wakes = false});
    go(middle, [&both] {
        go(*both.inner, [&both] {
            both.parked = this_fiber::handle();
            static_cast<void>(park());
            both.log += 'i';
        });
        both.inner->run();
        both.log += 'm';
    });
    spawn([&middle] { CHECK(!middle.run()); });
    run_until_blocked();
    std::thread other([&both] { unpark(both.parked); });
    run();
    other.join();
    CHECK(both.log == "im");
}

MATRIX_TEST("loop: inside a fiber of one whose clock stands still another's time passes") {
    nested both(*this);
    spawn([&both] {
        go(*both.inner, [&both] {
            for (auto some = 1ms; both.log.empty(); some *= 2) sleep_for(some);
            both.log += 'i';
        });
        both.inner->run();
        both.log += 'e';
    });
    spawn([&both] { both.log += 'o'; });
    run();
    CHECK(both.log == "oie");
}

MATRIX_TEST("loop: many open ones in fibers of a closed one, woken by a thread in stress") {
    constexpr int count = 5;
    const long rounds = weft_test::stress_count(kind == stack_kind::thread ? 5'000 : 20'000);
    struct one {
        loop inner;
        std::atomic<bool> parks = false;
        fiber_handle parked;
        long woken = 0;
    };
    std::vector<std::unique_ptr<one>> all;
    for (int i = 0; i < count; ++i) {
        one& mine = *all.emplace_back(std::make_unique<one>());
        spawn([&mine, rounds] {
            go(mine.inner, [&mine, rounds] {
                mine.parked = this_fiber::handle();
                mine.parks = true;
                for (; mine.woken < rounds; ++mine.woken) CHECK(park());
            });
            mine.inner.run();
        });
    }
    std::thread other([&all, rounds] {
        for (const auto& mine : all)
            while (!mine->parks) std::this_thread::yield();
        for (long round = 0; round < 2 * rounds; ++round)
            for (const auto& mine : all) {
                unpark(mine->parked);
                if (round % 16 == 0) std::this_thread::yield();
            }
    });
    s.run_until_blocked();
    other.join();
    for (const auto& mine : all)
        while (mine->woken < rounds) {
            unpark(mine->parked);
            s.run_until_blocked();
        }
    run();
}

MATRIX_TEST("pool: drained in a fiber of a closed loop it lets the others run") {
    std::string log;
    const auto p = std::make_unique<pool>(pool_options{.workers = 1});
    std::atomic<bool> may_end = false;
    go(*p, [&may_end] {
        while (!may_end) std::this_thread::yield();
    });
    spawn([&log, &p] {
        p->drain();
        log += 'd';
    });
    spawn([&log, &may_end] {
        log += 'o';
        may_end = true;
    });
    run();
    CHECK(log == "od");
}

WEFT_TEST("loop misuse: with an open one idle inside, starting a fiber on a closed one aborts") {
    weft_test::allow_threads_in_death_tests();
    const auto misuse = [] {
        loop inner;
        loop outer({.external_wakes = false});
        inner.add_work(1);
        go(outer, [&] { inner.run(); });
        go(outer, [&] { std::thread([&] { go(outer, [] {}); }).join(); });
        outer.run();
    };
    EXPECT_DEATH(misuse(), "posted to from another thread, and external_wakes is false");
}

WEFT_TEST("loop: a fiber of an inner loop posts to the outer one") {
    std::string log;
    loop outer;
    go(outer, [&] {
        loop inner({.external_wakes = false});
        go(inner, [&] {
            go(outer, [&] { log += 'o'; });
            log += 'i';
        });
        inner.run();
    });
    outer.run();
    CHECK(log == "io");
}

WEFT_TEST("loop misuse: run by two threads at once it aborts") {
    weft_test::allow_threads_in_death_tests();
    const auto misuse = [] {
        loop s;
        go(s, [&] { std::thread([&] { s.run(); }).join(); });
        s.run();
    };
    EXPECT_DEATH(misuse(), "loop: run by two threads at once");
}
