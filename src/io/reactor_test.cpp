// reactor_test.cpp - where there is a reactor, and that it keeps what is registered.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/io/reactor.hpp>

#include <unistd.h>

#include <cstddef>
#include <thread>

#include <weft/exec/loop.hpp>
#include <weft/exec/pool.hpp>
#include <weft/fiber/fiber.hpp>
#include <weft/io/pipe.hpp>

#include "io_support.hpp"

using namespace weft;
using io::reactor_kind;

namespace {

// Waits for a byte, and says which reactor served.
reactor_kind wait_for_a_byte(io::pipe& ends) {
    std::byte one[1];
    CHECK(ends.reader.read_some(one).value_or(0) == 1);
    return io::reactor_in_use();
}

reactor_kind in_use_on(loop& s) {
    io::pipe ends = io::pipe::make().value();
    reactor_kind served = reactor_kind::none;
    go(s, [&] {
        CHECK(io::reactor_in_use() == reactor_kind::none);  // none before the first wait
        served = wait_for_a_byte(ends);
    });
    go(s, [&] { CHECK(ends.writer.write_all("x")); });
    s.run();
    return served;
}

}  // namespace

WEFT_TEST("reactor: outside there is none") {
    CHECK(io::reactor_in_use() == reactor_kind::none);
    CHECK(io::to_string(reactor_kind::none) == "none");
}

WEFT_TEST("reactor: a loop has one as soon as something waits there") {
    loop s;
    CHECK(in_use_on(s) == reactor_kind::epoll);
}

// The loop goes from thread to thread, and those end: what they submitted must live on.
WEFT_TEST("reactor: a loop that is run by one thread after another keeps its registrations") {
    loop s;
    io::pipe ends = io::pipe::make().value();
    int reads = 0;
    go(s, [&] {
        std::byte one[1];
        while (ends.reader.read_some(one).value_or(0) == 1) ++reads;
    });
    for (int i = 1; i <= 5; ++i) {
        std::thread([&] { s.run_until_blocked(); }).join();
        CHECK(::write(ends.writer.native_handle(), "x", 1) == 1);
        std::thread([&] {
            while (reads < i && s.step()) {}
            while (reads < i) s.step();
        }).join();
        CHECK(reads == i);
    }
    ends.writer.close();
    s.run();
}
