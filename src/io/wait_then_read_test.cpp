// wait_then_read_test.cpp - a wait for readability and a read, one after the other.
//
// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <string>

#include <weft/io/tcp.hpp>

#include "io_support.hpp"
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
