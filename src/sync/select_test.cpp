// select_test.cpp - one of several cases, and nothing of the others.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/sync/select.hpp>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <weft/fiber/cancel.hpp>

#include "loops.hpp"

using namespace weft;
using namespace std::chrono_literals;

namespace {
constexpr auto ignore = [](auto&&) {};
}

MATRIX_TEST("select: takes the case that is ready, calls its function, returns its index") {
    channel<int> a(1);
    channel<std::string> b(1);
    std::string log;
    CHECK(b.try_send("b"));
    spawn([&] {
        CHECK(select(on_receive(a, [&](auto) { log += 'a'; }),
                     on_receive(b, [&](auto text) { log += *text; }),
                     on_timeout(1s, [&] { log += 't'; })) == 1U);
        CHECK(select(on_receive(b, ignore), on_send(a, 5, [&](auto r) { log += r ? 's' : '?'; })) ==
              1U);
        CHECK(select(otherwise([&] { log += '?'; }),
                     on_receive(a, [&](auto n) { log += static_cast<char>('0' + *n); })) == 1U);
    });
    run();
    CHECK(log == "bs5");
}

MATRIX_TEST("select: waits for exactly one, and what is not taken has not happened") {
    channel<std::unique_ptr<int>> a;
    channel<std::unique_ptr<int>> b;
    channel<int> c;
    std::string log;
    spawn([&] {
        auto value = std::make_unique<int>(1);
        CHECK(select(on_send(a, std::move(value), ignore),
                     on_receive(b, [&](auto got) { log += static_cast<char>('0' + **got); }),
                     on_receive(c, ignore)) == 1U);
        CHECK(value != nullptr && *value == 1);
        log += 'd';
    });
    run_until_blocked();
    CHECK(log.empty());
    CHECK(b.try_send(std::make_unique<int>(7)));
    run();
    CHECK(log == "7d");
    CHECK(a.try_receive().error() == std::errc::operation_would_block);
    CHECK(c.try_send(1).error() == std::errc::operation_would_block);
}

MATRIX_TEST("select: a send that is taken while it waits moves from its value") {
    for (const std::size_t capacity : {0U, 1U}) {
        channel<std::unique_ptr<int>> a(capacity);
        channel<std::unique_ptr<int>> b;
        CHECK(capacity == 0 || a.try_send(std::make_unique<int>(0)));
        bool sent = false;
        spawn([&] {
            auto value = std::make_unique<int>(9);
            CHECK(select(on_receive(b, ignore), on_send(a, std::move(value), [&](auto r) {
                             sent = r.has_value();
                         })) == 1U);
            CHECK(value == nullptr);
        });
        run_until_blocked();
        CHECK(!sent);
        CHECK(capacity == 0 || **a.try_receive() == 0);
        run_until_blocked();
        CHECK(**a.try_receive() == 9);
        run();
        CHECK(sent);
    }
}

MATRIX_TEST("select: the default wins only when nothing is ready") {
    channel<int> a(1);
    std::string log;
    spawn([&] {
        const auto once = [&] {
            CHECK(select(on_receive(a, [&](auto) { log += 'a'; }), otherwise([&] { log += 'o'; })));
        };
        once();
        CHECK(a.send(1));
        once();
        once();
    });
    run();
    CHECK(log == "oao");
}

MATRIX_TEST("select: the earliest moment ends it, if nothing came before") {
    channel<int> a;
    std::string log;
    spawn([&] {
        CHECK(select(on_timeout(5ms, [&] { log += '5'; }), on_receive(a, ignore),
                     on_deadline(clock.now() + 3ms, [&] { log += '3'; }),
                     on_timeout(std::chrono::hours::max())) == 2U);
        CHECK(select(on_timeout(5ms, [&] { log += '?'; }),
                     on_receive(a, [&](auto) { log += 'a'; })) == 1U);
        CHECK(select(on_timeout(0s, [&] { log += 'z'; }), on_receive(a, ignore)) == 0U);
    });
    run_until_blocked();
    advance(3ms - 1ns);
    CHECK(log.empty());
    advance(1ns);
    CHECK(log == "3");
    CHECK(a.try_send(1));
    run_until_blocked();
    CHECK(log == "3az");
    run();
}

MATRIX_TEST("select: a closed channel makes its cases ready with the error") {
    channel<int> a;
    channel<std::string> b;
    std::string log;
    const auto note = [&](auto result) { log += result.error() == errc::closed ? 'c' : '?'; };
    spawn([&] {
        std::string kept = "kept";
        CHECK(select(on_receive(a, note)));  // told while it waits
        CHECK(select(on_receive(a, note)));
        CHECK(select(on_send(b, std::move(kept), note)));
        CHECK(select(on_send(b, std::move(kept), note)));
        CHECK(kept == "kept");
    });
    run_until_blocked();
    a.close();
    run_until_blocked();
    CHECK(log == "cc");
    b.close();
    run();
    CHECK(log == "cccc");
}

MATRIX_TEST("select: cancellation is reported, if it has to wait") {
    channel<int> a;
    channel<int> full(1);
    std::string log;
    fiber f(s, options(), [&] {
        CHECK(select(on_receive(a, ignore)).error() == std::errc::operation_canceled);
        CHECK(select(on_receive(a, ignore), on_timeout(1h)).error() ==
              std::errc::operation_canceled);
        CHECK(select(on_receive(a, ignore), on_send(full, 1, ignore)) == 1U);
        log += 'd';
    });
    run_until_blocked();
    f.request_stop();
    run();
    CHECK(log == "d");
    CHECK(!s.next_deadline());
    f.detach();
}

MATRIX_TEST("select: one channel in several cases, both ends among them, does not meet itself") {
    channel<int> a;
    std::string log;
    spawn([&] {
        CHECK(select(on_send(a, 1, [&](auto) { log += 's'; }),
                     on_receive(a, [&](auto) { log += 'r'; }),
                     on_receive(a, [&](auto) { log += 'R'; })));
    });
    run_until_blocked();
    CHECK(log.empty());
    CHECK(a.try_receive() == 1);
    run();
    CHECK(log == "s");
    CHECK(a.try_receive().error() == std::errc::operation_would_block);
    CHECK(a.try_send(1).error() == std::errc::operation_would_block);
}

MATRIX_TEST("select: two that face each other make exactly one pair") {
    channel<std::string> a;
    channel<std::string> b;
    int sent = 0;
    int received = 0;
    const auto there = [&] {
        CHECK(select(on_send(a, "x", [&](auto) { ++sent; }),
                     on_receive(b, [&](auto) { ++received; })));
    };
    const auto back = [&] {
        CHECK(select(on_send(b, "y", [&](auto) { ++sent; }),
                     on_receive(a, [&](auto) { ++received; })));
    };
    for (int i = 1; i <= 50; ++i) {
        spawn(there);
        spawn(back);
        run();
        CHECK(sent == i);
        CHECK(received == i);
    }
}

MATRIX_TEST("select: over a range of cases, or of pointers to cases") {
    std::array<channel<int>, 20> channels;
    std::vector<int> got(20);
    std::size_t taken = 0;
    spawn([&] {
        using one =
            decltype(on_receive(channels[0], std::function<void(channel<int>::received)>()));
        std::vector<one> cases;
        for (std::size_t i = 0; i < 20; ++i)
            cases.push_back(
                on_receive(channels[i], std::function<void(channel<int>::received)>(
                                            [&got, i](channel<int>::received n) { got[i] = *n; })));
        taken = select(cases).value();
        std::vector<std::unique_ptr<select_case>> mixed;
        mixed.push_back(std::make_unique<one>(std::move(cases[3])));
        auto idle = on_timeout(1ms);
        mixed.push_back(std::make_unique<decltype(idle)>(std::move(idle)));
        CHECK(select(mixed) == 1U);
    });
    run_until_blocked();
    CHECK(channels[13].try_send(5));
    run_until_blocked();
    CHECK(taken == 13);
    CHECK(got[13] == 5);
    advance(1ms);
}

LOOP_TEST("select: those that are ready are taken equally often, the others never") {
    constexpr int rounds = 4000;
    std::array<channel<int>, 8> channels;
    std::vector<std::unique_ptr<channel<int>>> ready;
    std::array<int, 4> taken{};
    for (int i = 0; i < 4; ++i) ready.push_back(std::make_unique<channel<int>>(rounds));
    for (auto& one : ready)
        for (int i = 0; i < rounds; ++i) CHECK(one->try_send(i));
    const auto count = [&](std::size_t i) { return [&taken, i](auto) { ++taken[i]; }; };
    const auto rounds_of = [&] {
        for (int i = 0; i < rounds; ++i)
            CHECK(select(on_receive(*ready[0], count(0)), on_receive(channels[0], ignore),
                         on_receive(channels[1], ignore), on_receive(*ready[1], count(1)),
                         on_receive(channels[2], ignore), on_receive(channels[3], ignore),
                         on_receive(*ready[2], count(2)), on_receive(*ready[3], count(3))));
    };
    spawn(rounds_of);
    run();
    for (const int n : taken) CHECK(n > rounds / 4 - 200 && n < rounds / 4 + 200);
    taken = {};
    for (auto& one : ready)
        while (one->try_send(0)) {}
    rounds_of();  // in a plain thread
    for (const int n : taken) CHECK(n > rounds / 4 - 200 && n < rounds / 4 + 200);
}

WEFT_TEST("select: plain threads wait, and time out") {
    channel<int> a;
    channel<std::string> b;
    CHECK(select(on_receive(a, ignore), on_receive(b, ignore), on_timeout(100us)) == 2U);
    std::thread other([&] { CHECK(b.send("x")); });
    CHECK(select(on_receive(a, ignore), on_receive(b, ignore)) == 1U);
    other.join();
}

MATRIX_TEST("select: a function that throws, and one that selects again") {
    channel<int> a(2);
    CHECK(a.try_send(1));
    CHECK(a.try_send(2));
    int thrown = 0;
    int inner = 0;
    spawn([&] {
        try {
            static_cast<void>(select(on_receive(a, [](auto n) { throw *n; })));
        } catch (int n) { thrown = n; }
        CHECK(
            select(otherwise([&] { CHECK(select(on_receive(a, [&](auto n) { inner = *n; }))); })));
    });
    run();
    CHECK(thrown == 1);
    CHECK(inner == 2);
}

MATRIX_TEST("select: cases may be kept and used again, and a moment may be of any clock") {
    channel<int> a(2);
    int sum = 0;
    spawn([&] {
        auto kept = on_receive(a, [&](auto n) { sum += *n; });
        for (int i = 1; i <= 2; ++i) {
            CHECK(a.try_send(i));
            CHECK(select(kept, otherwise()) == 0U);
        }
        CHECK(select(kept, on_deadline(std::chrono::system_clock::now())) == 1U);
        CHECK(a.receive_until(std::chrono::system_clock::now()).error() == std::errc::timed_out);
        CHECK(a.send_until(1, std::chrono::system_clock::time_point::max()));
    });
    run();
    CHECK(sum == 3);
}
