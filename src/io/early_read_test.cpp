// early_read_test.cpp - reads that the reactor makes for those who wait.
//
// SPDX-License-Identifier: Apache-2.0
#include <sys/ioctl.h>

#include <array>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <tuple>

#include <weft/base/errc.hpp>
#include <weft/io/tcp.hpp>

#include "io_support.hpp"
#include "loops.hpp"

using namespace weft;

namespace {

struct connection {
    connection() { std::tie(here, there) = weft_test::tcp_pair(); }

    std::string read(std::size_t most = 64) {
        std::string text(most, '.');
        const auto got = here.read_some(std::as_writable_bytes(std::span(text)));
        text.resize(got.value());
        return text;
    }
    [[nodiscard]] int unread() const {
        int bytes = -1;
        CHECK(::ioctl(here.native_handle(), FIONREAD, &bytes) == 0);
        return bytes;
    }

    io::tcp_stream here;
    io::tcp_stream there;
};

void say(std::initializer_list<connection*> to, std::string_view text) {
    for (connection* const one : to) one->there.write_all(text).value();
}

// A fiber's first wait for a descriptor registers it; only after that reads are made for it.
void let_them_wait_twice(weft_test::loop_fixture& test, std::initializer_list<connection*> all) {
    test.run_until_blocked();
    say(all, "first");
    test.run_until_blocked();
}

}  // namespace

LOOP_TEST("tcp: what a batch of reports brings is read before any of its fibers runs") {
    connection a;
    connection b;
    int unread = 0;
    std::string got;
    spawn([&] {
        CHECK(a.read() == "first");
        got += a.read();
        unread += b.unread();
    });
    spawn([&] {
        CHECK(b.read() == "first");
        got += b.read();
        unread += a.unread();
    });
    let_them_wait_twice(*this, {&a, &b});
    say({&a, &b}, "second");
    run();
    CHECK(got == "secondsecond");
    CHECK(unread == 0);
}

LOOP_TEST("tcp: bytes that were read for one who waited are his, though it is closed meanwhile") {
    connection a;
    connection b;
    std::string got;
    std::error_code after;
    spawn([&] {
        CHECK(a.read() == "first");
        CHECK(a.read() == "second");
        b.here.close();
    });
    spawn([&] {
        CHECK(b.read() == "first");
        got = b.read();
        std::array<std::byte, 1> more;
        after = b.here.read_some(more).error();
    });
    let_them_wait_twice(*this, {&a, &b});
    say({&a, &b}, "second");
    run();
    CHECK(got == "second");
    CHECK(after == errc::closed);
}

MATRIX_TEST("tcp: nothing is read for one who is cancelled as its bytes come") {
    connection a;
    connection b;
    fiber reads(s, options(), [&] {
        CHECK(b.read() == "first");
        std::array<std::byte, 64> buffer;
        CHECK(b.here.read_some(buffer).error() == std::errc::operation_canceled);
    });
    spawn([&] {
        CHECK(a.read() == "first");
        CHECK(a.read() == "second");
    });
    let_them_wait_twice(*this, {&a, &b});
    reads.request_stop();
    say({&a, &b}, "second");
    run();
    CHECK(b.unread() == 6);
    CHECK(b.read() == "second");
}

LOOP_TEST("tcp: a large read is made by its own fiber, and in whole") {
    connection a;
    connection b;
    int unread = 0;
    std::string got;
    spawn([&] {
        CHECK(a.read() == "first");
        CHECK(a.read() == "second");
        unread = b.unread();
    });
    spawn([&] {
        CHECK(b.read() == "first");
        got = b.read(1 << 20);
    });
    let_them_wait_twice(*this, {&a, &b});
    say({&a, &b}, "second");
    run();
    CHECK(got == "second");
    CHECK(unread == 6);
}
