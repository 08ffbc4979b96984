// connect_test.cpp - how sockets come to be: listening, connecting, accepting, over loopback.
//
// connect() takes the place of the system's in this program: it does as that does, and then may say
// that a signal came in between. So does poll(), which may say that nothing is ready.
//
// SPDX-License-Identifier: Apache-2.0
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <ctime>
#include <string>
#include <thread>
#include <vector>

#include <weft/io/pipe.hpp>
#include <weft/io/tcp.hpp>
#include <weft/io/unix.hpp>
#include <weft/scope/deadline.hpp>

#include "dead_address.hpp"
#include "io_support.hpp"
#include "loops.hpp"
#include "scarce_descriptors.hpp"

using namespace weft;
using namespace std::chrono_literals;
using io::address;
using io::tcp_listener;
using io::tcp_stream;
using weft_test::all_descriptors_taken;

namespace {

std::atomic<int> connects_to_interrupt = 0;
std::atomic<int> polls_to_deny = 0;

}  // namespace

extern "C" int connect(int number, const sockaddr* who, socklen_t size) {
    const auto done = static_cast<int>(::syscall(SYS_connect, number, who, size));
    if (connects_to_interrupt == 0) return done;
    --connects_to_interrupt;
    errno = EINTR;
    return -1;
}

// The name itself is defined in the system's header where that is fortified.
extern "C" int poll_or_deny(pollfd* all, nfds_t count, int milliseconds) asm("poll");
extern "C" int poll_or_deny(pollfd* all, nfds_t count, int milliseconds) {
    if (polls_to_deny != 0) {
        --polls_to_deny;
        return 0;
    }
    timespec limit{.tv_sec = milliseconds / 1000, .tv_nsec = milliseconds % 1000 * 1'000'000L};
    return static_cast<int>(
        ::syscall(SYS_ppoll, all, count, milliseconds < 0 ? nullptr : &limit, nullptr, 0));
}

MATRIX_TEST("tcp: nobody listens there") {
    const weft_test::dead_address dead;
    std::error_code error;
    spawn([&] { error = tcp_stream::connect(dead.where()).error(); });
    run();
    CHECK(error == std::errc::connection_refused);
}

MATRIX_TEST("tcp: a connect that a signal interrupts goes on") {
    auto listener = tcp_listener::bind(address::loopback_ipv4(0)).value();
    const address where = listener.local_address().value();
    std::error_code error;
    std::byte got[2]{};
    connects_to_interrupt = 1;
    spawn([&] {
        if (auto peer = tcp_stream::connect(where)) {
            CHECK(peer->write_all("on"));
        } else {
            error = peer.error();
            listener.close();
        }
    });
    spawn([&] {
        if (auto peer = listener.accept()) CHECK(peer->read_exactly(got));
    });
    run();
    CHECK(!error);
    CHECK(got[1] == std::byte{'n'});
    CHECK(connects_to_interrupt == 0);
}

MATRIX_TEST("tcp: what is no address for it is refused, by name") {
    spawn([] {
        CHECK(tcp_stream::connect(address()).error() == std::errc::address_family_not_supported);
        const auto local = address::local("/tmp/x").value();
        CHECK(tcp_stream::connect(local).error() == std::errc::address_family_not_supported);
        CHECK(tcp_listener::bind(local).error() == std::errc::address_family_not_supported);
        CHECK(tcp_stream::connect(std::span<const address>()).error() ==
              std::errc::invalid_argument);
    });
    run();
}

WEFT_TEST("tcp: a port is bound once, unless it is shared") {
    const auto first = tcp_listener::bind(address::loopback_ipv4(0), {.reuse_port = true}).value();
    const address where = first.local_address().value();
    CHECK(tcp_listener::bind(where).error() == std::errc::address_in_use);
    CHECK(tcp_listener::bind(where, {.reuse_port = true}).has_value());
}

MATRIX_TEST("tcp: the first address that answers wins, others are tried in order") {
    const weft_test::dead_address nobody;
    const address dead = nobody.where();
    const auto listener = tcp_listener::bind(address::loopback_ipv4(0)).value();
    const std::vector<address> to{dead, dead, listener.local_address().value()};
    const std::vector<address> none{dead, dead};
    spawn([&] { CHECK(!tcp_stream::connect(none)); });  // so that the loop has its reactor
    run();
    const std::size_t before = weft_test::open_descriptors();
    std::string log;
    spawn([&] {
        const auto found = tcp_stream::connect(to);
        log += found && found->peer_address().value() == to[2] ? "found " : "wrong ";
        log +=
            tcp_stream::connect(none).error() == std::errc::connection_refused ? "none" : "wrong";
    });
    run();
    CHECK(log == "found none");
    CHECK(weft_test::open_descriptors() == before);
}

WEFT_TEST("tcp: a plain thread tries several addresses, too") {
    const weft_test::no_descriptor_left left;
    auto listener = tcp_listener::bind(address::loopback_ipv4(0)).value();
    const weft_test::dead_address nobody;
    const address dead = nobody.where();
    const std::vector<address> to{dead, listener.local_address().value()};
    auto here = tcp_stream::connect(to).value();
    auto there = listener.accept().value();
    CHECK(here.write_all("x"));
    std::byte one[1];
    CHECK(there.read_exactly(one));
    CHECK(tcp_stream::connect(std::vector{dead, dead}).error() == std::errc::connection_refused);
}

WEFT_TEST("tcp: a plain thread that had to wait for one of several keeps its descriptor alone") {
    auto listener = tcp_listener::bind(address::loopback_ipv4(0)).value();
    const std::vector<address> to(2, listener.local_address().value());
    const std::size_t before = weft_test::open_descriptors();
    polls_to_deny = 1;
    auto here = tcp_stream::connect(to, 1h).value();
    CHECK(polls_to_deny == 0);
    CHECK(weft_test::open_descriptors() == before + 1);
    auto there = listener.accept().value();
    CHECK(there.write_all("x"));
    std::byte one[1];
    CHECK(here.read_exactly(one));
    CHECK(here.peer_address().value() == to[0]);
}

LOOP_TEST("tcp: one that does not answer is left after the stagger, and nothing remains") {
    // A full backlog of 0 does not answer.
    const auto silent = tcp_listener::bind(address::loopback_ipv4(0), {.backlog = 0}).value();
    const auto listener = tcp_listener::bind(address::loopback_ipv4(0)).value();
    const std::vector<address> to{silent.local_address().value(), listener.local_address().value()};
    std::vector<tcp_stream> fillers;
    spawn([&] {
        for (int i = 0; i < 8; ++i) {
            auto filler = with_timeout(1ms, [&] { return tcp_stream::connect(to[0]); });
            if (!filler) break;
            fillers.push_back(std::move(*filler));
        }
    });
    run_until_blocked();
    advance(1ms);
    const std::size_t before = weft_test::open_descriptors();
    bool found = false;
    spawn([&] {
        const auto stream = tcp_stream::connect(to, 250ms);
        found = stream && stream->peer_address().value() == to[1];
    });
    run_until_blocked();
    CHECK(!found);
    advance(250ms);
    run();
    CHECK(found);
    CHECK(weft_test::open_descriptors() == before);
}

LOOP_TEST("tcp: accept pauses when there are no descriptors, and goes on") {
    NEEDS_NO_DESCRIPTOR_OF_UBSAN();
    auto listener = tcp_listener::bind(address::loopback_ipv4(0), {.pause = 10ms}).value();
    auto client = tcp_stream::connect(listener.local_address().value()).value();
    bool accepted = false;
    spawn([&] {  // so that the reactor has its own descriptors before
        CHECK(with_timeout(1ms, [&] {
                  io::pipe ends = io::pipe::make().value();
                  std::byte one[1];
                  return ends.reader.read_some(one);
              }).error() == std::errc::timed_out);
    });
    run_until_blocked();
    advance(1ms);
    all_descriptors_taken taken;
    spawn([&] { accepted = listener.accept().has_value(); });
    run_until_blocked();
    advance(10ms);
    CHECK(!accepted);
    CHECK(listener.pauses() == 2);
    advance(10ms);
    CHECK(listener.pauses() == 2);  // the second pause is twice as long
    taken.give_back();
    advance(10ms);
    run();
    CHECK(accepted);
}

WEFT_TEST("tcp: pauses are told to whoever looks while another accepts") {
    NEEDS_NO_DESCRIPTOR_OF_UBSAN();
    auto listener = tcp_listener::bind(address::loopback_ipv4(0), {.pause = 1ms}).value();
    auto client = tcp_stream::connect(listener.local_address().value()).value();
    bool accepted = false;
    all_descriptors_taken taken;
    std::thread accepts([&] { accepted = listener.accept().has_value(); });
    while (listener.pauses() == 0) std::this_thread::yield();
    taken.give_back();
    accepts.join();
    CHECK(accepted);
    CHECK(listener.aborted() == 0);
}

MATRIX_TEST("tcp: closing a listener ends accept with errc::closed") {
    auto listener = tcp_listener::bind(address::loopback_ipv4(0)).value();
    std::error_code error;
    spawn([&] { error = listener.accept().error(); });
    run_until_blocked();
    listener.close();
    run();
    CHECK(error == errc::closed);
}

MATRIX_TEST("unix: connects by a name, and waits while the backlog is full") {
    const std::string name = std::string("\0weft-test-", 11) + std::to_string(::getpid());
    const address where = address::local(name).value();
    auto listener = io::unix_listener::bind(where, {.backlog = 0}).value();
    std::vector<io::unix_stream> clients(3);
    for (io::unix_stream& one : clients)
        spawn([&] { one = io::unix_stream::connect(where).value(); });
    run_until_blocked();
    CHECK(s.next_deadline().has_value());
    std::vector<io::unix_stream> accepted;
    spawn([&] {
        for (int i = 0; i < 3; ++i) accepted.push_back(listener.accept().value());
    });
    for (int i = 0; i < 40; ++i) advance(1ms);
    run();
    CHECK(accepted.size() == 3);
    CHECK(io::unix_listener::bind(where).error() == std::errc::address_in_use);
    CHECK(io::unix_stream::connect(address::loopback_ipv4(1)).error() ==
          std::errc::address_family_not_supported);
}
