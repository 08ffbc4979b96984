// serve_stop_test.cpp - serve(): connections that are late, or many, when it stops, and what a
// client still gets that goes on sending.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/io/serve.hpp>

#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <weft/io/tcp.hpp>
#include <weft/io/unix.hpp>

#include "io_support.hpp"
#include "loops.hpp"

using namespace weft;
using namespace std::chrono_literals;

namespace {

// Accepts so many without any wait, and then nobody.
class short_listener {
public:
    explicit short_listener(int connections) : left_(connections) {}

    io::result<io::unix_stream> accept() {
        if (left_-- == 0) return std::unexpected(make_error_code(errc::closed));
        auto [here, there] = io::unix_stream::pair().value();
        others_.push_back(std::move(there));
        return std::move(here);
    }

private:
    int left_;
    std::vector<io::unix_stream> others_;
};

// Accepts this one, and then nobody.
class one_listener {
public:
    explicit one_listener(io::tcp_stream only) : only_(std::move(only)) {}

    io::result<io::tcp_stream> accept() {
        if (!only_) return std::unexpected(make_error_code(errc::closed));
        return std::exchange(only_, {});
    }

private:
    io::tcp_stream only_;
};

constexpr std::size_t answer_size = 300'000;

// A server that has read less than its client has sent, has answered, and stops. The client has not
// read yet.
template <class Test>
class answered {
public:
    answered(Test& test, io::serve_limits limits) : listener_(std::move(ends_.first)) {
        CHECK(client.write_all("ask\nand more"));
        limits.fiber = test.options();
        test.spawn([this, limits] { report = io::serve(listener_, &answer, limits); });
        test.run_until_blocked();
    }

private:
    static void answer(io::connection<io::tcp_stream>& peer) {
        std::byte ask[4];
        CHECK(peer.read_exactly(ask));
        CHECK(peer.write_all(std::string(answer_size, 'x')));
    }

    std::pair<io::tcp_stream, io::tcp_stream> ends_ = weft_test::tcp_pair();
    one_listener listener_;

public:
    io::tcp_stream& client = ends_.second;
    io::serve_report report;
};

}  // namespace

MATRIX_TEST("serve: a handler that begins after the grace is cancelled, too") {
    short_listener listener(3);
    int told = 0;
    io::serve_report report;
    spawn([&] {
        report =
            io::serve(listener, [&](io::connection<io::unix_stream>&) { told += !sleep_for(1h); },
                      {.grace = 0ns, .fiber = options()});
    });
    run();
    CHECK(told == 3);
    CHECK(report.accepted == 3);
    CHECK(report.cut == 3);
    CHECK(report.stopped_by == errc::closed);
}

MATRIX_TEST("serve: an answer arrives in whole, though its client has sent more than was read") {
    answered server(*this, {});
    CHECK(s.alive() != 0);
    spawn([&] {
        std::vector<std::byte> all(answer_size);
        CHECK(server.client.read_exactly(all));
        CHECK(server.client.read_some(all).value_or(1) == 0);
        server.client.close();
    });
    run();
    CHECK(server.report.cut == 0);
}

MATRIX_TEST("serve: a client that sends, and does not read, is listened to no longer than told") {
    answered server(*this, {.linger = 3s});
    advance(2999ms);
    CHECK(s.alive() != 0);
    advance(1ms);
    CHECK(s.alive() == 0);
    CHECK(server.report.cut == 0);
    const answered at_once(*this, {.linger = 0ns});
    CHECK(s.alive() == 0);
}

MATRIX_TEST("serve: a client that sends, and does not read, is cut after the grace") {
    answered server(*this, {.grace = 1s});
    CHECK(s.alive() != 0);
    advance(1s);
    CHECK(s.alive() == 0);
    CHECK(server.report.cut == 1);
}
