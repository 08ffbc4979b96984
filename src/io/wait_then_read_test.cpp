// wait_then_read_test.cpp - a wait for readability and a read, one after the other.
//
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <string>

#include <weft/io/tcp.hpp>

#include "io_support.hpp"
#include "loops.hpp"
#include "pools.hpp"

using namespace weft;

POOL_TEST("tcp: a read after a wait for readability finds what came, though the last was short") {
    auto [here, there] = weft_test::tcp_pair();
    fiber answers(p, options(), [&] {
        std::array<std::byte, 64> buffer;
        while (there.wait_readable()) {
            const auto n = there.read_some(buffer);
            if (!n || *n == 0 || !there.write_all(std::span(buffer).first(*n))) return;
        }
    });
    for (int i = 0; i < 20; ++i) {
        std::array<std::byte, 5> back{};
        here.write_all("hello").value();
        here.read_exactly(back).value();
        CHECK(std::ranges::equal(back, weft_test::bytes("hello")));
    }
    here.close();
    answers.join();
}

namespace {

// Reads until that has come, and by a read that was not filled: it has waited, and knows that there
// is no more.
void read_short(io::tcp_stream& from, std::string_view expected) {
    std::array<std::byte, 64> buffer;
    const std::size_t n = from.read_some(buffer).value();
    CHECK(std::ranges::equal(std::span(buffer).first(n), weft_test::bytes(expected)));
}

}  // namespace

MATRIX_TEST("tcp: a wait after a short read hears of the end that came together with the bytes") {
    auto [here, there] = weft_test::tcp_pair();
    std::size_t after = 1;
    spawn([&] {
        read_short(there, "hello");
        there.wait_readable().value();
        std::array<std::byte, 64> buffer;
        after = there.read_some(buffer).value();
    });
    run_until_blocked();
    here.write_all("hello").value();
    here.shutdown_write().value();
    run();
    CHECK(after == 0);
}

MATRIX_TEST("tcp: a wait whose deadline has passed tells what is there, after a short read") {
    auto [here, there] = weft_test::tcp_pair();
    bool done = false;
    spawn([&] {
        read_short(there, "hello");
        here.write_all("again").value();
        CHECK(there.wait_readable(s.clock().now()));
        read_short(there, "again");
        CHECK(there.wait_readable(s.clock().now()).error() == std::errc::timed_out);
        done = true;
    });
    run_until_blocked();
    here.write_all("hello").value();
    run();
    CHECK(done);
}
