// fiber_census_test.cpp - every fiber is in a dump, from its birth to its end.
//
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <weft/exec/pool.hpp>
#include <weft/fiber/dump.hpp>
#include <weft/fiber/fiber.hpp>

#include "loops.hpp"
#include "pools.hpp"

using namespace weft;

namespace {

std::vector<std::string> dumped() {
    std::vector<std::string> lines;
    dump([&](std::string_view line) { lines.emplace_back(line); });
    return lines;
}

// Lines that begin so.
std::size_t count(const std::vector<std::string>& lines, std::string_view beginning) {
    return static_cast<std::size_t>(std::ranges::count_if(
        lines, [&](const std::string& line) { return line.starts_with(beginning); }));
}

constexpr auto long_name = "one whose name has no place beside what else it has";

}  // namespace

MATRIX_TEST("dump: one that has not started is listed, with the line that started it") {
    go(s, options({.name = "young"}), [] {});
    const auto line = std::to_string(__LINE__ - 1);
    spawn([] {});
    const std::vector<std::string> before = dumped();
    CHECK(before.size() == 2);
    CHECK(count(before, "fiber young: has not started, started at ") == 1);
    CHECK(std::ranges::any_of(before, [&](const std::string& one) {
        return one.ends_with("fiber_census_test.cpp:" + line);
    }));
    CHECK(count(before, "fiber (no name): has not started") == 1);
    run();
    CHECK(dumped().empty());
}

MATRIX_TEST("dump: a fiber with a handle tells the line that started it, on whatever executor") {
    static std::vector<std::string> lines;
    lines.clear();
    const auto starts = [](int line, const std::vector<std::string>& all) {
        const std::string end = "fiber_census_test.cpp:" + std::to_string(line);
        return std::ranges::count_if(all,
                                     [&](const std::string& one) { return one.ends_with(end); });
    };
    spawn([this] {
        fiber plain([] {});
        fiber told(options(), [] {});
        fiber named(s, [] {});
        fiber stopped([](std::stop_token) {});
        lines = dumped();
    });
    const int last = __LINE__ - 2;
    run();
    for (int line = last - 4; line < last; ++line) CHECK(starts(line, lines) == 1);
}

MATRIX_TEST("dump: one that runs and has never waited is listed as running") {
    std::vector<std::string> seen;
    spawn({.name = "looks"}, [&] { seen = dumped(); });
    spawn({.name = "next"}, [] {});
    run();
    CHECK(seen.size() == 2);
    CHECK(count(seen, "fiber looks: running") == 1);
    CHECK(count(seen, "fiber next: has not started") == 1);
}

// With each of the ways that a wait goes: for its event alone, and one that can be cancelled.
MATRIX_TEST("dump: what a fiber waits for is told while it waits, and no longer") {
    static constexpr wait_reason firm{"waits firmly", false};
    static constexpr wait_reason soft{"waits softly"};
    waiter* waiting = nullptr;
    const auto publish = [&waiting](waiter& me) noexcept {
        waiting = &me;
        return true;
    };
    std::vector<std::string> seen;
    spawn({.name = "waits"}, [&] {
        yield();
        for (int round = 0; round < 3; ++round) {
            wait(firm, no_deadline, publish);
            seen = dumped();
            CHECK(count(seen, "fiber waits: running") == 1);
            wait(soft, no_deadline, publish, [](waiter&) noexcept {});
            seen = dumped();
            CHECK(count(seen, "fiber waits: running") == 1);
        }
    });
    const auto wake = [&](const char* told) {
        s.run_until_blocked();
        CHECK(count(dumped(), told) == 1);
        REQUIRE(waiting->claim());
        waiting->wake();
        CHECK(count(dumped(), "fiber waits: ready") == 1);
    };
    for (int round = 0; round < 3; ++round) {
        wake("fiber waits: waits firmly");
        wake("fiber waits: waits softly");
    }
    run();
}

MATRIX_TEST("dump: each is listed once, whether it has waited or not") {
    std::vector<std::string> seen;
    spawn({.name = "ready"}, [] { yield(); });
    spawn({.name = "looks"}, [&] {
        yield();
        seen = dumped();
    });
    s.step();
    spawn({.name = "sleeps"}, [] { sleep_for(std::chrono::seconds(1)); });
    spawn({.name = "young"}, [] {});
    s.step();
    s.step();  // ready
    s.step();  // sleeps
    CHECK(dumped().size() == 3);
    run_until_blocked();
    advance(std::chrono::seconds(1));
    CHECK(seen.size() == 2);
    CHECK(count(seen, "fiber looks: running") == 1);
    CHECK(count(seen, "fiber sleeps: sleeps") == 1);
}

MATRIX_TEST("dump: a large callable or a long name is no reason to be left out") {
    const std::array<char, 4096> large{};
    std::vector<std::string> seen;
    spawn({.name = "large"}, [large, &seen] {
        if (large[0] == 0) seen = dumped();
    });
    spawn({.name = long_name}, [] {});
    const std::vector<std::string> before = dumped();
    CHECK(before.size() == 2);
    CHECK(count(before, "fiber large: has not started") == 1);
    CHECK(count(before, std::string("fiber ") + long_name + ": has not started") == 1);
    run();
    CHECK(count(seen, "fiber large: running") == 1);
    CHECK(dumped().empty());
}

LOOP_TEST("dump: one that has ended is not listed, though somebody holds it") {
    fiber held(s, {.name = "held"}, [] {});
    run();
    CHECK(dumped().empty());
    held.join();
}

LOOP_TEST("dump: the sink may make a loop of its own") {
    spawn([] {});
    dump([](std::string_view) {
        loop other;
        go(other, [] {});
        other.run();
    });
    run();
}

LOOP_TEST("dump: loop::describe has those of one loop") {
    loop other({.external_wakes = false});
    go(other, {.name = "other"}, [] {});
    spawn({.name = "mine"}, [] {});
    std::vector<std::string> lines;
    s.describe([&](std::string_view line) { lines.emplace_back(line); });
    CHECK(lines.size() == 1);
    CHECK(count(lines, "fiber mine: has not started") == 1);
    CHECK(dumped().size() == 2);
    other.run();
    run();
}

WEFT_TEST("pool: shutdown reports who runs, and who has not started behind it") {
    std::atomic<bool> runs = false;
    std::atomic<bool> may_end = false;
    pool p({.workers = 1});
    go(p, {.name = "stubborn"}, [&] {
        go({.name = "behind"}, [] {});
        runs = true;
        while (!may_end) std::this_thread::yield();
    });
    while (!runs) std::this_thread::yield();
    const stuck_report left = p.shutdown(std::chrono::milliseconds(1));
    may_end = true;
    CHECK(left.waiters.size() == 2);
    CHECK(count(left.waiters, "fiber stubborn: running") == 1);
    CHECK(count(left.waiters, "fiber behind: has not started") == 1);
    p.drain();
}

// Lines of one fiber never have the name of another: each is named after its place in the source.
WEFT_TEST("dump: stress, from a thread while fibers begin, wait and end") {
    pool p({.workers = 2});
    std::atomic<bool> done = false;
    std::size_t wrong = 0;
    std::thread looker([&] {
        while (!done)
            for (const std::string& line : dumped()) {
                const bool first = line.starts_with("fiber first: ");
                const bool second = line.starts_with("fiber second: ");
                const bool none = line.starts_with("fiber (no name): ");
                if (!first && !second && !none) ++wrong;
                if (line.find("fiber_census_test.cpp:") == std::string::npos) ++wrong;
            }
    });
    const long rounds = weft_test::stress_count(2000);
    for (long i = 0; i < rounds; ++i) {
        go(p, {.name = "first"}, [] {});
        go(p, {.name = "second"}, [] { yield(); });
        go(p, [] {});
        if (i % 4 == 0) p.drain();
    }
    done = true;
    looker.join();
    CHECK(wrong == 0);
}
