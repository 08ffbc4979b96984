// socket_test.cpp - what goes through sockets, over loopback: bytes, datagrams, ends and resets.
//
// SPDX-License-Identifier: Apache-2.0
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>

#include <weft/io/tcp.hpp>
#include <weft/io/udp.hpp>
#include <weft/io/unix.hpp>
#include <weft/scope/deadline.hpp>
#include <weft/sync/wait_group.hpp>

#include "io_support.hpp"
#include "loops.hpp"
#include "pools.hpp"

using namespace weft;
using namespace std::chrono_literals;
using io::address;
using io::tcp_listener;
using io::tcp_stream;
using weft_test::bytes;
using weft_test::read_all;

namespace {

// What fibers share: not on their stacks, for those of swapped ones go away.
struct connection {
    tcp_stream here;
    tcp_stream there;
    std::byte buffer[64];

    connection() { std::tie(here, there) = weft_test::tcp_pair(); }
};

}  // namespace

MATRIX_TEST("tcp: connects, sends, and tells who is who") {
    tcp_listener listener = tcp_listener::bind(address::loopback_ipv4(0)).value();
    const address where = listener.local_address().value();
    CHECK(where.port() != 0);
    std::string got;
    spawn([&] {
        address from;
        auto peer = listener.accept(from).value();
        CHECK(from == peer.peer_address().value());
        got = read_all(peer);
        CHECK(peer.write_all("bye"));
    });
    spawn([&] {
        auto stream = tcp_stream::connect(where).value();
        CHECK(stream.peer_address().value() == where);
        CHECK(stream.option(IPPROTO_TCP, TCP_NODELAY).value() != 0);
        CHECK(stream.write_all("hello"));
        CHECK(stream.shutdown_write());
        CHECK(read_all(stream) == "bye");
    });
    run();
    CHECK(got == "hello");
}

POOL_TEST("tcp: connects, sends and echoes on a pool") {
    auto listener =
        std::make_shared<tcp_listener>(tcp_listener::bind(address::loopback_ipv4(0)).value());
    const address where = listener->local_address().value();
    constexpr int clients = 8;
    spawn([=, this] {
        for (int i = 0; i < clients; ++i)
            spawn([peer = listener->accept().value()]() mutable {
                auto buffer = std::make_unique<std::array<std::byte, 512>>();
                for (;;) {
                    const auto got = peer.read_some(*buffer);
                    if (!got || *got == 0) break;
                    CHECK(peer.write_all(std::span(*buffer).first(*got)));
                }
            });
    });
    std::atomic<int> right = 0;
    for (int i = 0; i < clients; ++i)
        spawn([&, where] {
            auto stream = tcp_stream::connect(where).value();
            for (int round = 0; round < 50; ++round) {
                const std::string text = "round " + std::to_string(round);
                CHECK(stream.write_all(text));
                std::string back(text.size(), ' ');
                CHECK(stream.read_exactly(std::as_writable_bytes(std::span(back))));
                right += back == text;
            }
        });
    p.drain();
    CHECK(right == clients * 50);
}

WEFT_TEST("tcp: the program of the design") {
    pool p({.workers = 2});
    std::atomic<std::uint16_t> port = 0;
    fiber server(p, [&] {
        io::tcp_listener listener = io::tcp_listener::bind(io::address("127.0.0.1", 0)).value();
        port = listener.local_address().value().port();
        port.notify_all();
        while (auto peer = listener.accept())
            go([s = std::move(*peer)]() mutable {
                std::array<std::byte, 4096> buffer;
                while (auto n = s.read_some(buffer)) {
                    if (*n == 0 || !s.write_all(std::span(buffer).first(*n))) break;
                }
            });
    });
    port.wait(0);
    auto client = tcp_stream::connect(address("127.0.0.1", port)).value();  // a plain thread
    CHECK(client.write_all("echo"));
    CHECK(client.shutdown_write());
    CHECK(read_all(client) == "echo");
    server.request_stop();
    server.join();
}

MATRIX_TEST("tcp: half-closed, it still answers") {
    connection c;
    std::string got;
    spawn([&] {
        CHECK(c.here.write_all("question"));
        CHECK(c.here.shutdown_write());
        got = read_all(c.here);
    });
    spawn([&] {
        CHECK(read_all(c.there) == "question");
        CHECK(c.there.write_all("answer"));
        c.there.close();
    });
    run();
    CHECK(got == "answer");
}

// A short read says that nothing is left; the end, and urgent bytes, come without an edge of their
// own when they were reported together with the bytes before.
MATRIX_TEST("tcp: bytes and the end that are reported at once are both seen") {
    connection c;
    std::string log;
    const auto read = [&] {
        const auto got = c.here.read_some(c.buffer);
        log += (got ? std::to_string(*got) : "error") + " ";
    };
    spawn([&] {
        read();
        read();
        read();
    });
    run_until_blocked();
    CHECK(::write(c.there.native_handle(), "a", 1) == 1);
    run_until_blocked();
    CHECK(::write(c.there.native_handle(), "bcd", 3) == 3);
    CHECK(::shutdown(c.there.native_handle(), SHUT_WR) == 0);
    run();
    CHECK(log == "1 3 0 ");
}

MATRIX_TEST("tcp: bytes that came while nobody waited are seen, though the last read left room") {
    connection c;
    std::size_t read = 0;
    bool again = false;
    spawn([&] {
        read += c.here.read_some(c.buffer).value();
        while (!again) yield();  // meanwhile the reactor is told, and finds nobody
        read += c.here.read_some(c.buffer).value();
    });
    run_until_blocked();
    CHECK(::write(c.there.native_handle(), "a", 1) == 1);
    while (read == 0) s.step();
    CHECK(::write(c.there.native_handle(), "bc", 2) == 2);
    for (int i = 0; i < 10; ++i) s.step();
    again = true;
    run();
    CHECK(read == 3);
}

// Both use up the edge, and may leave bytes behind.
MATRIX_TEST("tcp: a read after a wait for readability, or after a vectored one, finds the rest") {
    connection c;
    std::size_t read = 0;
    spawn([&] {
        read += c.here.read_some(c.buffer).value();  // leaves room
        CHECK(c.here.wait_readable());
        read += c.here.read_some(std::span(c.buffer).first(2)).value();
        read += c.here.read_some(c.buffer).value();  // leaves room
        const std::span<std::byte> one[] = {std::span(c.buffer).first(1)};
        read += c.here.read_some(one).value();
        read += c.here.read_some(c.buffer).value();
    });
    for (const char* text : {"a", "bcd", "ef"}) {
        run_until_blocked();
        CHECK(::write(c.there.native_handle(), text, std::strlen(text)) ==
              static_cast<ssize_t>(std::strlen(text)));
    }
    run();
    CHECK(read == 6);
}

MATRIX_TEST("tcp: what never waits is done by one who was asked to stop, too") {
    connection c;
    bool done = false;
    fiber f(s, options(), [&] {
        done = c.here.local_address() && c.here.set_no_delay(false) && c.here.shutdown_write();
    });
    f.request_stop();
    run();
    CHECK(done);
}

LOOP_TEST("tcp: bytes behind an urgent one are seen") {
    connection c;
    CHECK(c.here.set_option(SOL_SOCKET, SO_OOBINLINE, 1));
    std::size_t read = 0;
    spawn([&] {
        while (read < 9) read += c.here.read_some(c.buffer).value();
    });
    run_until_blocked();
    for (int i = 0; i < 3; ++i) {
        CHECK(::send(c.there.native_handle(), "a", 1, 0) == 1);
        CHECK(::send(c.there.native_handle(), "b", 1, MSG_OOB) == 1);
        CHECK(::send(c.there.native_handle(), "c", 1, 0) == 1);
    }
    run();
    CHECK(read == 9);
}

MATRIX_TEST("tcp: a reset in the middle is an error, and not the end") {
    connection c;
    std::error_code error;
    std::error_code later;
    spawn([&] {
        CHECK(c.here.read_exactly(std::span(c.buffer).first(4)));
        error = c.here.read_some(c.buffer).error();
        later = c.here.write_all("x").error();
    });
    spawn([&] {
        CHECK(c.there.write_all("abcd"));
        yield();
        CHECK(c.there.set_reset_on_close(true));
        c.there.close();
    });
    run();
    CHECK(error == std::errc::connection_reset);
    CHECK(later == std::errc::broken_pipe);
}

MATRIX_TEST("tcp: segments of one byte, and many buffers in one call") {
    connection c;
    constexpr std::size_t size = 2000;
    std::vector<std::byte> got(size);
    spawn([&] {
        for (std::size_t i = 0; i < size; ++i) {
            const std::byte one = weft_test::byte_at(i);
            CHECK(c.here.write_some(std::span(&one, 1)).value() == 1);
            if (i % 7 == 0) yield();
        }
    });
    spawn([&] { CHECK(c.there.read_exactly(got)); });
    run();
    for (std::size_t i = 0; i < size; ++i) REQUIRE(got[i] == weft_test::byte_at(i));
}

MATRIX_TEST(
    "tcp: vectored writes go on where they stopped, over more buffers than one call takes") {
    connection c;
    CHECK(c.here.set_send_buffer(4096));
    std::vector<std::vector<std::byte>> parts;
    std::size_t size = 0;
    for (std::size_t i = 0; i < 200; ++i) {
        parts.emplace_back(i % 5 == 0 ? 0 : i * 37);
        for (std::byte& one : parts.back()) one = weft_test::byte_at(size++);
    }
    std::vector<std::span<const std::byte>> buffers(parts.begin(), parts.end());
    std::vector<std::byte> got(size);
    std::size_t done = 0;
    spawn([&] { CHECK(c.here.write_all(buffers, done)); });
    spawn([&] {
        std::vector<std::span<std::byte>> halves{std::span(got).first(10),
                                                 std::span(got).subspan(10, 90)};
        const std::size_t first = c.there.read_some(halves).value();
        CHECK(c.there.read_exactly(std::span(got).subspan(first)));
    });
    run();
    CHECK(done == size);
    for (std::size_t i = 0; i < size; ++i) REQUIRE(got[i] == weft_test::byte_at(i));
}

MATRIX_TEST("unix: one report for both directions wakes the reader and the writer") {
    auto [here, there] = io::unix_stream::pair().value();
    const int far = there.native_handle();
    std::byte some[4096]{};
    while (::send(here.native_handle(), some, sizeof some, MSG_DONTWAIT) > 0) {}
    std::byte got[1];
    bool wrote = false;
    bool read = false;
    spawn([&, stream = &here] { wrote = stream->write_some(bytes("w")).has_value(); });
    spawn([&, stream = &here] { read = stream->read_some(got).has_value(); });
    run_until_blocked();
    CHECK((!wrote && !read));
    while (::recv(far, some, sizeof some, MSG_DONTWAIT) > 0) {}
    CHECK(::send(far, some, 1, 0) == 1);
    run_until_blocked();
    CHECK(wrote);
    CHECK(read);
    here.close();
    run();
}

MATRIX_TEST("tcp: a write that is cancelled in its middle tells how far it came") {
    connection c;
    std::vector<std::byte> much(8 << 20);
    for (std::size_t i = 0; i < much.size(); ++i) much[i] = weft_test::byte_at(i);
    std::size_t done = 0;
    std::error_code error;
    fiber writer(s, options(), [&] { error = c.here.write_all(much, done).error(); });
    run_until_blocked();
    writer.request_stop();
    run();
    CHECK(error == std::errc::operation_canceled);
    CHECK(done > 0 && done < much.size());
    std::vector<std::byte> got(much.size());
    spawn([&] { CHECK(c.here.write_all(much, done)); });
    spawn([&] { CHECK(c.there.read_exactly(got)); });
    run();
    CHECK(got == much);
}

MATRIX_TEST("udp: datagrams keep their borders, and tell who sent them") {
    auto here = io::udp_socket::bind(address::loopback_ipv4(0)).value();
    auto there = io::udp_socket::connect(here.local_address().value()).value();
    std::byte buffer[8];
    std::string log;
    spawn([&] {
        for (int i = 0; i < 3; ++i) {
            const io::datagram got = here.receive(buffer).value();
            CHECK(got.from == there.local_address().value());
            log += std::to_string(got.size) + (got.truncated ? "+ " : " ");
            CHECK(here.send_to(bytes("ok"), got.from));
        }
    });
    spawn([&] {
        CHECK(there.send(bytes("abc")));
        CHECK(there.send(bytes("")));
        CHECK(there.send(bytes("123456789")));
        std::byte answer[8];
        for (int i = 0; i < 3; ++i) CHECK(there.receive(answer).value().size == 2);
        const std::vector<std::byte> large(70'000);
        CHECK(there.send(large).error() == std::errc::message_size);
    });
    run();
    CHECK(log == "3 0 8+ ");
}

MATRIX_TEST("udp: who refuses a datagram is heard of") {
    address where;
    {
        const auto gone = io::udp_socket::bind(address::loopback_ipv4(0)).value();
        where = gone.local_address().value();
    }
    auto there = io::udp_socket::connect(where).value();
    std::error_code error;
    spawn([&] {
        CHECK(there.send(bytes("x")));
        std::byte answer[8];
        error = there.receive(answer).error();
    });
    run();
    CHECK(error == std::errc::connection_refused);
}
