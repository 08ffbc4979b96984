// serve_streams_test.cpp - serve() over streams that are not the system's.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/io/serve.hpp>

#include <memory>
#include <string>
#include <utility>

#include <weft/io/memory_stream.hpp>
#include <weft/io/tcp.hpp>
#include <weft/sync/channel.hpp>
#include <weft/sync/event.hpp>

#include "loops.hpp"
#include "pools.hpp"

using namespace weft;
using namespace std::chrono_literals;

namespace {

using peer = io::connection<io::memory_stream>;

static_assert(detail::socket_like<io::tcp_stream> && !detail::socket_like<io::memory_stream>);

// Who connects is in the process.
class memory_listener {
public:
    io::result<io::memory_stream> accept() { return waiting_.receive(); }

    std::unique_ptr<io::memory_stream> connect() {
        auto [here, there] = io::memory_stream::pair();
        waiting_.send(std::move(here)).value();
        return std::make_unique<io::memory_stream>(std::move(there));
    }
    /// Whoever was not accepted sees the end.
    void close() {
        waiting_.close();
        while (waiting_.try_receive()) {}
    }

private:
    channel<io::memory_stream> waiting_{unbounded};
};

// What is there up to the end of a line; "" at the end.
std::string hear(io::memory_stream& from) {
    std::string line;
    const auto one = std::make_unique<std::byte[]>(1);
    while (!line.ends_with('\n')) {
        if (from.read_some(std::span(one.get(), 1)).value_or(0) == 0) return "";
        line += static_cast<char>(one[0]);
    }
    return line;
}

void echo(peer& c) {
    while (const auto line = c.read_line())
        if (!c.write_all(std::string(*line) + "!\n")) return;
}

}  // namespace

MATRIX_TEST("serve: answers over streams that are no sockets, and ends those that are idle") {
    memory_listener listener;
    io::serve_report report;
    fiber server(s, options(), [&] { report = io::serve(listener, &echo, {.fiber = options()}); });
    const auto one = listener.connect();
    const auto two = listener.connect();
    std::string heard;
    spawn([&] {
        CHECK(one->write_all("first\nsec"));
        heard += hear(*one);
        CHECK(one->write_all("ond\n"));
        heard += hear(*one);
        CHECK(two->shutdown_write());
        heard += hear(*two) + "end ";
    });
    run_until_blocked();
    CHECK(heard == "first!\nsecond!\nend ");
    server.request_stop();
    spawn([&] { heard += hear(*one) + "end"; });
    run();
    CHECK(heard == "first!\nsecond!\nend end");
    CHECK(report.accepted == 2);
    CHECK(report.cut == 0);
}

MATRIX_TEST("serve: a stop finishes what is under way over streams that are no sockets") {
    memory_listener listener;
    event answer;
    io::serve_report report;
    spawn([&] {
        report = io::serve(listener,
                           [&](peer& c) {
                               while (const auto line = c.read_line()) {
                                   const std::string text(*line);
                                   answer.wait();
                                   if (!c.write_all(text + "?\n")) return;
                               }
                           },
                           {.fiber = options()});
    });
    const auto slow = listener.connect();
    std::string heard;
    spawn([&] {
        CHECK(slow->write_all("slow\nnever\n"));
        heard += hear(*slow);
        heard += hear(*slow) + "end";
    });
    run_until_blocked();
    listener.close();
    run_until_blocked();
    CHECK(heard.empty());
    answer.set();
    run();
    CHECK(heard == "slow?\nend");
    CHECK(report.cut == 0);
    CHECK(report.stopped_by == errc::closed);
}

MATRIX_TEST("serve: who is silent, or reads nothing, is let go over streams that are no sockets") {
    memory_listener listener;
    int told = 0;
    spawn([&] {
        io::serve(listener,
                  [&](peer& c) {
                      const auto request = c.wait_for_request();
                      if (!request) {
                          told += request.error() == std::errc::timed_out;
                          return;
                      }
                      io::result<void> sent;
                      while (sent) sent = c.write_all("much much more\n");
                      told += sent.error() == std::errc::timed_out;
                  },
                  {.idle = 20ms, .fiber = options()});
    });
    const auto silent = listener.connect();
    const auto reads_nothing = listener.connect();
    spawn([&] { CHECK(reads_nothing->write_all("go\n")); });
    run_until_blocked();
    CHECK(told == 0);
    advance(20ms);
    CHECK(told == 2);
    listener.close();
    run();
}

// Each request is answered, or was never taken.
POOL_TEST("serve: stress, a stop while requests come over streams that are no sockets") {
    const long rounds = weft_test::stress_count(kind == stack_kind::thread ? 1'000 : 5'000);
    for (long round = 0; round < rounds; ++round) {
        const auto listener = std::make_shared<memory_listener>();
        fiber server(p, options(), [=, this] {
            CHECK(io::serve(*listener, &echo, {.fiber = options()}).cut == 0);
        });
        for (int i = 0; i < 3; ++i)
            spawn([one = std::shared_ptr(listener->connect())] {
                while (one->write_all("x\n") && !hear(*one).empty()) {}
            });
        fiber stops(p, options(), [&server, round] {
            for (long i = 0; i < round % 16; ++i) yield();
            server.request_stop();
        });
        stops.join();
        server.join();
        listener->close();
        p.drain();
    }
}
