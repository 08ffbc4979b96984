// early_read_test.cpp - reads that a reactor makes for those who wait, and isolation.
//
// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <mutex>
#include <span>
#include <string>

#include <weft/actor/actor_context.hpp>
#include <weft/io/tcp.hpp>

#include "io_support.hpp"
#include "loops.hpp"

using namespace weft;

// While it waits others may be inside, and the buffer may be theirs to look at.
LOOP_TEST("actor_context: a read from inside fills its buffer when its fiber is inside again") {
    auto [first, to_first] = weft_test::tcp_pair();
    auto [second, to_second] = weft_test::tcp_pair();
    actor_context context;
    std::string text = "......";
    std::string seen;
    const auto buffer = [&] { return std::as_writable_bytes(std::span(text)); };
    spawn([&] {
        std::array<std::byte, 64> other;
        CHECK(first.read_some(other));
        CHECK(first.read_some(other));
        const std::lock_guard inside(context);
        seen = text;
    });
    spawn([&] {
        const std::lock_guard inside(context);
        CHECK(second.read_some(buffer()));
        text = "......";
        CHECK(second.read_some(buffer()).value() == 6);
    });
    run_until_blocked();
    to_first.write_all("1").value();
    to_second.write_all("1").value();
    run_until_blocked();
    to_first.write_all("second").value();
    to_second.write_all("second").value();
    run();
    CHECK(seen == "......");
    CHECK(text == "second");
}
