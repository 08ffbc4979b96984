// serve_test.cpp - serve(): limits, deadlines, and a stop that finishes what is under way.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/io/serve.hpp>

#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <weft/exec/loop.hpp>
#include <weft/fiber/suspend_hook.hpp>
#include <weft/io/tcp.hpp>
#include <weft/io/unix.hpp>
#include <weft/sync/event.hpp>
#include <weft/sync/wait_group.hpp>

#include "pools.hpp"

using namespace weft;
using namespace std::chrono_literals;

namespace {

using peer = io::connection<io::tcp_stream>;

void echo(peer& c) {
    while (const auto line = c.read_line())
        if (!c.write_all(std::string(*line) + "\n")) return;
}

// A client, on whatever runs it.
class client {
public:
    explicit client(const io::tcp_listener& to)
        : stream_(io::tcp_stream::connect(to.local_address().value()).value()), lines_(stream_) {}

    void say(std::string_view text) { stream_.write_all(text).value(); }
    void try_say(std::string_view text) { static_cast<void>(stream_.write_all(text)); }
    /// A line with its end; "" at the end of the connection.
    std::string hear() {
        const auto line = lines_.read_until("\n");
        return line ? std::string(*line) : "";
    }
    std::string ask(const std::string& text) {
        say(text + "\n");
        return hear();
    }

private:
    io::tcp_stream stream_;
    io::buffered_reader<io::tcp_stream> lines_;
};

// A server on a fiber of its own. What it is made of stays put, whatever kind that fiber is.
template <class Handler>
class test_server {
public:
    template <class Test>
    test_server(Test& test, Handler handler, io::serve_limits limits = {})
        : handler_(std::move(handler)) {
        limits.fiber = test.options();
        fiber_ = fiber(test.p, test.options(), [this, limits] {
            try {
                report = io::serve(listener, handler_, limits);
            } catch (const std::runtime_error& error) { thrown = error.what(); }
        });
    }
    /// Asks it to stop and waits for its end.
    void stop() {
        fiber_.request_stop();
        join();
    }
    void ask_to_stop() { fiber_.request_stop(); }
    void join() { fiber_.join(); }

    io::tcp_listener listener = io::tcp_listener::bind(io::address::loopback_ipv4(0)).value();
    io::serve_report report;
    std::string thrown;

private:
    Handler handler_;
    fiber fiber_;
};

}  // namespace

POOL_TEST("serve: answers many clients, and stops when its fiber is asked to") {
    test_server server(*this, &echo);
    {
        std::vector<std::unique_ptr<client>> clients;
        for (int i = 0; i < 10; ++i) clients.push_back(std::make_unique<client>(server.listener));
        for (int round = 0; round < 5; ++round)
            for (std::size_t i = 0; i < clients.size(); ++i) {
                const std::string text = "line " + std::to_string(i);
                CHECK(clients[i]->ask(text) == text + "\n");
            }
    }
    server.stop();
    CHECK(server.report.accepted == 10);
    CHECK(server.report.most <= 10);
    CHECK(server.report.cut == 0);
    CHECK(server.report.stopped_by == std::errc::operation_canceled);
}

POOL_TEST("serve: takes lines that come in pieces, several at once, with either end") {
    test_server server(*this, &echo, {.line = 100});
    client c(server.listener);
    c.say("he");
    c.say("llo\r\nsecond\nthi");
    CHECK(c.hear() == "hello\n");
    CHECK(c.hear() == "second\n");
    CHECK(c.ask("rd") == "third\n");
    c.say(std::string(200, 'x'));
    CHECK(c.hear().empty());  // too long
    server.stop();
}

POOL_TEST("serve: never has more connections than its limit") {
    std::atomic<int> inside = 0;
    test_server server(*this,
                       [&](peer& c) {
                           if (++inside > 2) ADD_FAILURE() << "more than two";
                           echo(c);
                           --inside;
                       },
                       {.connections = 2});
    {
        client a(server.listener);
        auto b = std::make_unique<client>(server.listener);
        CHECK(a.ask("a") == "a\n");
        CHECK(b->ask("b") == "b\n");
        client waits(server.listener);  // in the backlog
        waits.say("w\n");
        CHECK(a.ask("again") == "again\n");
        b.reset();
        CHECK(waits.hear() == "w\n");
    }
    server.stop();
    CHECK(server.report.most == 2);
    CHECK(server.report.accepted == 3);
}

POOL_TEST("serve: a client that says nothing is let go after the idle time") {
    test_server server(*this, &echo, {.idle = 20ms});
    client c(server.listener);
    CHECK(c.ask("quick") == "quick\n");
    CHECK(c.hear().empty());
    client half(server.listener);
    half.say("half a li");
    CHECK(half.hear().empty());
    server.stop();
    CHECK(server.report.cut == 0);
}

POOL_TEST("serve: a connection ends when its total time is over, however busy") {
    std::atomic<int> answered = 0;
    test_server server(*this,
                       [&](peer& c) {
                           while (const auto line = c.read_line()) {
                               ++answered;
                               if (!c.write_all("more?\n")) return;
                           }
                       },
                       {.total = 30ms});
    client c(server.listener);
    int heard = 0;
    for (c.try_say("first\n"); c.hear() == "more?\n"; ++heard) c.try_say("again\n");
    CHECK(heard > 0);
    CHECK(answered >= heard);
    server.stop();
}

POOL_TEST("serve: a stop finishes what is under way, and ends what waits for a request") {
    event asked;
    event answer;
    test_server server(*this, [&](peer& c) {
        while (const auto line = c.read_line()) {
            const std::string text(*line);
            if (text == "slow") {
                asked.set();
                answer.wait();
            }
            if (!c.write_all(text + "!\n")) return;
        }
    });
    client slow(server.listener);
    client idle(server.listener);
    CHECK(idle.ask("hello") == "hello!\n");
    slow.say("slow\nnever\n");
    asked.wait();
    server.ask_to_stop();
    CHECK(idle.hear().empty());
    answer.set();
    CHECK(slow.hear() == "slow!\n");
    CHECK(slow.hear().empty());
    server.join();
    CHECK(server.report.cut == 0);
    CHECK(server.report.accepted == 2);
}

POOL_TEST("serve: what is not finished after the grace is cancelled") {
    event begun;
    std::atomic<bool> told = false;
    test_server server(*this,
                       [&](peer&) {
                           begun.set();
                           told = !sleep_for(1h);
                       },
                       {.grace = 1ms});
    client c(server.listener);
    begun.wait();
    server.stop();
    CHECK(told);
    CHECK(server.report.cut == 1);
}

POOL_TEST("serve: what a handler throws stops the server and comes out of it") {
    test_server server(*this, [](peer& c) {
        while (const auto line = c.read_line()) {
            if (*line == "bad") throw std::runtime_error("a bad line");
            if (!c.write_all("ok\n")) return;
        }
    });
    client good(server.listener);
    CHECK(good.ask("fine") == "ok\n");
    client bad(server.listener);
    bad.say("bad\n");
    server.join();
    CHECK(server.thrown == "a bad line");
    CHECK(good.hear().empty());
}

POOL_TEST("serve: closing the listener stops it") {
    test_server server(*this, &echo);
    client c(server.listener);
    CHECK(c.ask("one") == "one\n");
    server.listener.close();
    CHECK(c.hear().empty());
    server.join();
    CHECK(server.report.stopped_by == errc::closed);
}

POOL_TEST("serve: closing the listener stops it, though it has as many as it may") {
    test_server server(*this, &echo, {.connections = 2});
    client one(server.listener);
    client two(server.listener);
    CHECK(one.ask("one") == "one\n");
    CHECK(two.ask("two") == "two\n");
    server.listener.close();
    CHECK(one.hear().empty());
    CHECK(two.hear().empty());
    server.join();
    CHECK(server.report.stopped_by == errc::closed);
    CHECK(server.report.accepted == 2);
}

POOL_TEST("serve: a stop is heard though it has as many as it may") {
    test_server server(*this, &echo, {.connections = 1});
    client one(server.listener);
    CHECK(one.ask("one") == "one\n");
    server.stop();
    CHECK(one.hear().empty());
    CHECK(server.report.stopped_by == std::errc::operation_canceled);
}

POOL_TEST("serve: stress, one place after another is given back and taken") {
    test_server server(*this, &echo, {.connections = 3});
    const long rounds = weft_test::stress_count(kind == stack_kind::thread ? 5'000 : 20'000);
    std::atomic<long> answered = 0;
    wait_group clients;
    for (int lane = 0; lane < 6; ++lane) {
        clients.add();
        spawn([&] {
            const auto done = clients.guard();
            for (long i = 0; i < rounds; ++i) {
                const auto mine = std::make_unique<client>(server.listener);
                answered += mine->ask("x") == "x\n";
            }
        });
    }
    clients.wait();
    server.stop();
    CHECK(answered == 6 * rounds);
    CHECK(server.report.most <= 3);
}

POOL_TEST("serve: a client that reads nothing is let go after the idle time") {
    std::atomic<bool> told = false;
    test_server server(*this,
                       [&](peer& c) {
                           const std::string much(1 << 20, 'm');
                           for (;;) {
                               const auto sent = c.write_all(much);
                               if (sent) continue;
                               told = sent.error() == std::errc::timed_out;
                               return;
                           }
                       },
                       {.idle = 20ms});
    client c(server.listener);
    c.say("more\n");
    while (!told) std::this_thread::yield();
    server.stop();
    CHECK(server.report.cut == 0);
}

POOL_TEST("serve: handlers are dealt out to all workers") {
    std::mutex lock;
    std::set<std::thread::id> threads;
    test_server server(*this, [&](peer& c) {
        if (kind != stack_kind::thread) {
            const std::lock_guard guard(lock);
            threads.insert(std::this_thread::get_id());
        }
        echo(c);
    });
    {
        std::vector<std::unique_ptr<client>> clients;
        for (int i = 0; i < 16; ++i) {
            clients.push_back(std::make_unique<client>(server.listener));
            CHECK(clients.back()->ask("x") == "x\n");
        }
    }
    server.stop();
    if (kind != stack_kind::thread) { CHECK(threads.size() == p.workers()); }
}

WEFT_TEST("serve: runs on a loop, over a unix socket, with fibers of every kind") {
    using enum stack_kind;
    for (const stack_kind kind : {own, ucontext, thread, swapped}) {
        auto listener = io::unix_listener::bind(
                            io::address::local(std::string_view("\0weft-serve", 11)).value())
                            .value();
        loop s;
        std::string heard;
        io::serve_report report;
        auto server = std::make_unique<fiber>(s, fiber_options{.kind = kind}, [&] {
            report = io::serve(listener,
                               [](io::connection<io::unix_stream>& c) {
                                   while (const auto line = c.read_line())
                                       if (!c.write_all(std::string(*line) + "?\n")) return;
                               },
                               {.fiber = {.kind = kind}});
        });
        go(s, [&] {
            auto stream = io::unix_stream::connect(listener.local_address().value()).value();
            io::buffered_reader lines(stream);
            stream.write_all("really\n").value();
            heard = lines.read_until("\n").value();
            server->request_stop();
            heard += lines.read_until("\n") ? "more" : "end";
        });
        s.run();
        CHECK(heard == "really?\nend");
        CHECK(report.accepted == 1);
        server->detach();
    }
}

namespace {

// Lets no fiber suspend for the first time.
class throws_once final : public suspend_hook {
public:
    void suspend() override {
        if (std::exchange(throws_, false)) throw std::runtime_error("not now");
        suspend_hook::suspend();
    }

private:
    bool throws_ = true;
};

}  // namespace

WEFT_TEST("serve: what a suspend hook throws while it has as many as it may comes out of it") {
    using enum stack_kind;
    for (const stack_kind kind : {own, ucontext, thread, swapped}) {
        auto listener = io::tcp_listener::bind(io::address::loopback_ipv4(0)).value();
        client c(listener);  // so nothing is waited for till it is accepted
        throws_once hook;
        loop s;
        std::string thrown;
        int ended = 0;
        go(s, {.kind = kind}, [&] {
            this_fiber::set_suspend_hook(&hook);
            try {
                io::serve(listener, [&](peer& one) { ended += !one.read_line(); },
                          {.connections = 1, .fiber = {.kind = kind}});
            } catch (const std::runtime_error& error) { thrown = error.what(); }
            this_fiber::set_suspend_hook(nullptr);
        });
        s.run();
        CHECK(thrown == "not now");
        CHECK(ended == 1);
        CHECK(c.hear().empty());
    }
}

WEFT_TEST("serve: limits that make no sense are refused") {
    auto listener = io::tcp_listener::bind(io::address::loopback_ipv4(0)).value();
    loop s;
    int refused = 0;
    go(s, [&] {
        for (const io::serve_limits& wrong :
             {io::serve_limits{.connections = 0}, io::serve_limits{.idle = 0ns},
              io::serve_limits{.total = -1ns}, io::serve_limits{.grace = -1ns},
              io::serve_limits{.linger = -1ns}, io::serve_limits{.line = 0}}) {
            try {
                io::serve(
                    listener, [](peer&) {}, wrong);
            } catch (const std::invalid_argument&) { ++refused; }
        }
    });
    s.run();
    CHECK(refused == 6);
}

WEFT_TEST("serve: outside any fiber it aborts by name") {
    weft_test::allow_threads_in_death_tests();
    auto listener = io::tcp_listener::bind(io::address::loopback_ipv4(0)).value();
    EXPECT_DEATH(io::serve(listener, [](peer&) {}), "called outside any fiber ..serve");
}

namespace {

fiber_id serving_fiber;

// One that cannot be handed over to a handler.
class brittle_stream : public io::unix_stream {
public:
    explicit brittle_stream(io::unix_stream whole) : io::unix_stream(std::move(whole)) {}
    brittle_stream(brittle_stream&& other) : io::unix_stream(std::move(other)) {
        if (this_fiber::get_id() != serving_fiber) throw std::runtime_error("brittle");
    }
};

// Accepts one.
struct brittle_listener {
    io::result<brittle_stream> accept() {
        auto [here, there] = io::unix_stream::pair().value();
        if (accepted++ == 0) return brittle_stream(std::move(here));
        std::byte some[8];
        return std::unexpected(here.read_some(some).error());
    }
    int accepted = 0;
};

}  // namespace

WEFT_TEST("serve: a connection that cannot be made stops it, and it says why") {
    loop s({.external_wakes = false, .unhandled = [](std::exception_ptr, runnable&) {}});
    brittle_listener listener;
    std::string said;
    go(s, [&] {
        serving_fiber = this_fiber::get_id();
        try {
            io::serve(listener, [](io::connection<brittle_stream>&) {});
        } catch (const std::runtime_error& error) { said = error.what(); }
    });
    CHECK(!s.run());
    CHECK(said == "brittle");
}
