// end_writing_test.cpp - who waits to write on a socket whose own side ends its sending.
//
// The kernel tells such a one nothing where the socket is a local one.
//
// SPDX-License-Identifier: Apache-2.0
#include <sys/socket.h>

#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include <weft/base/test_point.hpp>
#include <weft/io/tcp.hpp>
#include <weft/io/unix.hpp>

#include "io_support.hpp"
#include "loops.hpp"
#include "test_points.hpp"

using namespace weft;

namespace {

// Nothing more goes in.
template <class Stream>
void fill(const Stream& stream) {
    const std::vector<std::byte> much(65536);
    while (::send(stream.native_handle(), much.data(), much.size(), MSG_DONTWAIT) > 0) {}
}

template <class Test, class Stream>
void ends_while_one_writes(Test& test, std::pair<Stream, Stream> ends) {
    Stream& here = ends.first;
    fill(here);
    std::error_code written;
    test.spawn([&] { written = here.write_all("more").error(); });
    test.run_until_blocked();
    CHECK(!written);
    test.spawn([&] { CHECK(here.shutdown_write()); });
    test.run();
    CHECK(written == std::errc::broken_pipe);
    bool ready = false;
    test.spawn([&] { ready = here.wait_writable().has_value(); });
    test.run();
    CHECK(ready);
}

}  // namespace

MATRIX_TEST("unix: who waits to write is told when its own side ends sending") {
    ends_while_one_writes(*this, io::unix_stream::pair().value());
}

MATRIX_TEST("tcp: who waits to write is told when its own side ends sending") {
    ends_while_one_writes(*this, weft_test::tcp_pair());
}

WEFT_TEST("unix: a plain thread that waits to write is told when its own side ends sending") {
    auto [here, there] = io::unix_stream::pair().value();
    fill(here);
    std::error_code before;
    std::thread writes([&before, stream = &here] { before = stream->write_all("more").error(); });
    CHECK(here.shutdown_write());
    writes.join();
    CHECK(before == std::errc::broken_pipe);
    CHECK(here.write_all("more").error() == std::errc::broken_pipe);
    CHECK(here.wait_writable());
}

#if defined(WEFT_CHECKS) && WEFT_CHECKS
namespace {

io::unix_stream* ended = nullptr;
const char* ended_at = "";

void end_there(const char* name) noexcept {
    if (std::strcmp(name, ended_at) != 0) return;
    ended_at = "";
    CHECK(ended->shutdown_write());
}

}  // namespace

// At its first wait, when it has not been registered, and at a later one.
MATRIX_TEST("unix: who is about to wait to write is told when its own side ends sending") {
    for (const char* const point : {"watched: not now", "watched: at home, not listed"}) {
        auto [here, there] = io::unix_stream::pair().value();
        fill(here);
        ended = &here;
        ended_at = point;
        detail::at_test_points = &end_there;
        std::error_code written;
        spawn([&, stream = &here] { written = stream->write_all("more").error(); });
        run();
        detail::at_test_points = nullptr;
        CHECK(*ended_at == '\0');
        CHECK(written == std::errc::broken_pipe);
    }
}

WEFT_TEST("unix: a plain thread about to wait to write is told when its own side ends sending") {
    for (const char* const point : {"watched: not now", "watched: a thread waits"}) {
        auto [here, there] = io::unix_stream::pair().value();
        fill(here);
        ended = &here;
        ended_at = point;
        detail::at_test_points = &end_there;
        CHECK(here.write_all("more").error() == std::errc::broken_pipe);
        detail::at_test_points = nullptr;
    }
}
#endif
