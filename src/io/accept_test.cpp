// accept_test.cpp - what accept(2) may say besides a connection, said on purpose.
//
// accept4() takes the place of the system's in this program: it says what is on a list, and then
// does as that does.
//
// SPDX-License-Identifier: Apache-2.0
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <initializer_list>

#include <weft/io/tcp.hpp>
#include <weft/io/unix.hpp>
#include <weft/scope/deadline.hpp>

#include "io_support.hpp"
#include "loops.hpp"

using namespace weft;
using namespace std::chrono_literals;
using io::address;
using io::tcp_listener;
using io::tcp_stream;

namespace {

std::atomic<int> said[16];  // 0: nothing more
std::atomic<unsigned> next_said = 0;
std::atomic<int> said_always = 0;

void say(std::initializer_list<int> errors) {
    unsigned i = 0;
    for (const int error : errors) said[i++] = error;
    said[i] = 0;
    next_said = 0;
}

}  // namespace

extern "C" int accept4(int number, sockaddr* who, socklen_t* size, int flags) {
    const unsigned place = next_said.load();
    if (const int error = said_always) {
        errno = error;
        return -1;
    }
    if (const int error = said[place]) {
        next_said = place + 1;
        errno = error;
        return -1;
    }
    return static_cast<int>(::syscall(SYS_accept4, number, who, size, flags));
}

MATRIX_TEST("tcp: accept goes on over connections that ended before, and counts them") {
    auto listener = tcp_listener::bind(address::loopback_ipv4(0)).value();
    const auto client = tcp_stream::connect(listener.local_address().value()).value();
    say({ECONNABORTED, EPROTO, EPERM, EINTR, ENETDOWN, EHOSTUNREACH});
    bool accepted = false;
    spawn([&] { accepted = listener.accept().has_value(); });
    run();
    CHECK(accepted);
    CHECK(listener.aborted() == 5);
    CHECK(listener.pauses() == 0);
}

MATRIX_TEST("tcp: accept pauses for every kind of shortage, longer each time, and goes on") {
    auto listener = tcp_listener::bind(address::loopback_ipv4(0), {.pause = 10ms}).value();
    const auto client = tcp_stream::connect(listener.local_address().value()).value();
    say({ENOBUFS, ENOMEM, ENFILE, EMFILE});
    bool accepted = false;
    spawn([&] { accepted = listener.accept().has_value(); });
    run_until_blocked();
    unsigned pauses = 0;
    for (const auto pause : {10ms, 20ms, 40ms, 80ms}) {
        CHECK(listener.pauses() == ++pauses);
        advance(pause - 1ms);
        CHECK(listener.pauses() == pauses);
        CHECK(!accepted);
        advance(1ms);
    }
    run();
    CHECK(accepted);
    CHECK(listener.pauses() == 4);
    CHECK(listener.aborted() == 0);
}

MATRIX_TEST("tcp: an accept that the system forbids each time lets others run") {
    auto listener = tcp_listener::bind(address::loopback_ipv4(0), {.pause = 10ms}).value();
    const auto client = tcp_stream::connect(listener.local_address().value()).value();
    said_always = EPERM;
    bool accepted = false;
    spawn([&] { accepted = listener.accept().has_value(); });
    run_until_blocked();
    CHECK(listener.aborted() == 64);
    advance(10ms);
    CHECK(listener.aborted() == 128);
    said_always = 0;
    advance(20ms);
    run();
    CHECK(accepted);
    CHECK(listener.pauses() == 0);
}

MATRIX_TEST("tcp: closing a listener ends the pause of accept at once") {
    auto listener = tcp_listener::bind(address::loopback_ipv4(0)).value();
    const auto client = tcp_stream::connect(listener.local_address().value()).value();
    say({EMFILE, EMFILE});
    std::error_code error;
    spawn([&] { error = listener.accept().error(); });
    run_until_blocked();
    CHECK(listener.pauses() == 1);
    listener.close();
    run_until_blocked();  // the clock stands still
    CHECK(error == errc::closed);
    say({});  // the second was for an accept that does not end
}

MATRIX_TEST("unix: a pause of accept is cancelled, and by a deadline around it, too") {
    const auto where =
        address::local(std::string("\0weft-pause-", 12) + std::to_string(::getpid())).value();
    auto listener = io::unix_listener::bind(where).value();
    const auto client = io::unix_stream::connect(where).value();
    std::error_code error;
    fiber asked(s, options(), [&] { error = listener.accept().error(); });
    say({EMFILE, EMFILE});
    run_until_blocked();
    CHECK(listener.pauses() == 1);
    asked.request_stop();
    run();
    CHECK(error == std::errc::operation_canceled);
    say({EMFILE, EMFILE});
    spawn([&] { error = with_timeout(3ms, [&] { return listener.accept(); }).error(); });
    run_until_blocked();
    advance(3ms);
    CHECK(error == std::errc::timed_out);
    say({});
}
