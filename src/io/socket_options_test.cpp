// socket_options_test.cpp - what is set on a socket is what the kernel has.
//
// Read back by getsockopt(2) itself, not by our option().
//
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <weft/io/tcp.hpp>
#include <weft/io/udp.hpp>
#include <weft/io/unix.hpp>

#include "io_support.hpp"
#include "loops.hpp"

using namespace weft;
using io::address;
using io::tcp_listener;
using io::tcp_stream;

namespace {

template <class Value = int>
Value kernel_has(const io::socket_base& asked, int level, int name) {
    Value value{};
    socklen_t size = sizeof value;
    CHECK(::getsockopt(asked.native_handle(), level, name, &value, &size) == 0);
    return value;
}

// Whether the kernel has what was set, and what was taken back.
template <class Set>
bool can_be_set(const io::socket_base& asked, int level, int name, Set set) {
    bool right = true;
    for (const bool on : {true, false, true})
        right = right && set(on).has_value() && (kernel_has(asked, level, name) != 0) == on;
    return right;
}

bool is_prepared(const io::socket_base& asked) {
    return (::fcntl(asked.native_handle(), F_GETFD) & FD_CLOEXEC) != 0 &&
           (::fcntl(asked.native_handle(), F_GETFL) & O_NONBLOCK) != 0;
}

}  // namespace

WEFT_TEST("socket options: those of a connection") {
    auto [here, there] = weft_test::tcp_pair();
    for (tcp_stream* const one : {&here, &there}) {
        CHECK(kernel_has(*one, IPPROTO_TCP, TCP_NODELAY) != 0);  // from the beginning
        CHECK(can_be_set(*one, IPPROTO_TCP, TCP_NODELAY,
                         [one](bool on) { return one->set_no_delay(on); }));
        CHECK(can_be_set(*one, SOL_SOCKET, SO_KEEPALIVE,
                         [one](bool on) { return one->set_keep_alive(on); }));
        for (const bool on : {true, false}) {
            CHECK(one->set_reset_on_close(on));
            const auto value = kernel_has<linger>(*one, SOL_SOCKET, SO_LINGER);
            CHECK((value.l_onoff != 0) == on);
            CHECK(value.l_linger == 0);
        }
        CHECK(one->set_option(IPPROTO_TCP, TCP_KEEPIDLE, 77));
        CHECK(kernel_has(*one, IPPROTO_TCP, TCP_KEEPIDLE) == 77);
        CHECK(one->option(IPPROTO_TCP, TCP_KEEPIDLE).value() == 77);
    }
}

WEFT_TEST("socket options: buffers have the size that was asked for, on every kind of socket") {
    auto [tcp, other_tcp] = weft_test::tcp_pair();
    auto [local, other_local] = io::unix_stream::pair().value();
    auto listener = tcp_listener::bind(address::loopback_ipv4(0)).value();
    auto udp = io::udp_socket::bind(address::loopback_ipv4(0)).value();
    for (io::socket_base* const one : std::initializer_list<io::socket_base*>{
             &tcp, &other_tcp, &local, &other_local, &listener, &udp}) {
        for (const int size : {16'384, 65'536}) {
            CHECK(one->set_receive_buffer(static_cast<std::size_t>(size)));
            CHECK(kernel_has(*one, SOL_SOCKET, SO_RCVBUF) == 2 * size);  // the system doubles it
            CHECK(one->set_send_buffer(static_cast<std::size_t>(size) / 2));
            CHECK(kernel_has(*one, SOL_SOCKET, SO_SNDBUF) == size);
            CHECK(kernel_has(*one, SOL_SOCKET, SO_RCVBUF) == 2 * size);
        }
        CHECK(one->set_receive_buffer(~std::size_t{0}));  // the system's limit
        CHECK(kernel_has(*one, SOL_SOCKET, SO_RCVBUF) > 0);
    }
}

WEFT_TEST("socket options: a listener shares its address and port as it was told") {
    for (const bool on : {true, false}) {
        const auto address_reused =
            tcp_listener::bind(address::loopback_ipv4(0), {.reuse_address = on}).value();
        CHECK((kernel_has(address_reused, SOL_SOCKET, SO_REUSEADDR) != 0) == on);
        CHECK(kernel_has(address_reused, SOL_SOCKET, SO_REUSEPORT) == 0);
        const auto port_reused =
            tcp_listener::bind(address::loopback_ipv4(0), {.reuse_port = on}).value();
        CHECK((kernel_has(port_reused, SOL_SOCKET, SO_REUSEPORT) != 0) == on);
        CHECK(kernel_has(port_reused, SOL_SOCKET, SO_REUSEADDR) != 0);
    }
}

WEFT_TEST("socket options: a listener has the backlog that was asked for") {
    for (const unsigned most : {3U, 20U}) {
        const auto listener =
            tcp_listener::bind(address::loopback_ipv4(0), {.backlog = static_cast<int>(most)})
                .value();
        // Of one that listens that is how many may wait.
        CHECK(kernel_has<tcp_info>(listener, IPPROTO_TCP, TCP_INFO).tcpi_sacked == most);
    }
}

MATRIX_TEST("socket options: an IPv6 listener takes IPv4 connections, or none") {
    for (const bool only : {true, false}) {
        auto listener = tcp_listener::bind(address("::", 0), {.ipv6_only = only});
        if (!listener) GTEST_SKIP() << "no IPv6 here: " << listener.error().message();
        CHECK((kernel_has(*listener, IPPROTO_IPV6, IPV6_V6ONLY) != 0) == only);
        const address by_ipv4("127.0.0.1", listener->local_address().value().port());
        std::error_code error;
        spawn([&] {
            if (const auto peer = tcp_stream::connect(by_ipv4); !peer) error = peer.error();
        });
        run();
        CHECK((error == std::errc::connection_refused) == only);
        CHECK(static_cast<bool>(error) == only);
    }
}

MATRIX_TEST("socket options: after shutdown_read a read gives the end, also one that waits") {
    auto [tcp, other_tcp] = weft_test::tcp_pair();
    auto [local, other_local] = io::unix_stream::pair().value();
    std::string log;
    std::byte buffer[8];
    for (io::stream_socket* const one : std::initializer_list<io::stream_socket*>{&tcp, &local}) {
        spawn([&, one] {
            for (int i = 0; i < 2; ++i)
                log += std::to_string(one->read_some(buffer).value_or(99)) + " ";
            log += one->write_all("still sent") ? "yes " : "no ";
        });
        run_until_blocked();
        CHECK(s.alive() == 1);
        CHECK(one->shutdown_read());
        run_until_blocked();
        CHECK(s.alive() == 0);
        one->close();
        run();
    }
    CHECK(log == "0 0 yes 0 0 yes ");
}

MATRIX_TEST("socket options: no socket blocks, and none is there after an exec") {
    auto listener = tcp_listener::bind(address::loopback_ipv4(0)).value();
    const std::string name = std::string("\0weft-options-", 14) + std::to_string(::getpid());
    auto local = io::unix_listener::bind(address::local(name).value()).value();
    spawn([&] {
        const auto client = tcp_stream::connect(listener.local_address().value()).value();
        const auto peer = listener.accept().value();
        const auto local_client = io::unix_stream::connect(address::local(name).value()).value();
        const auto local_peer = local.accept().value();
        const auto pair = io::unix_stream::pair().value();
        const auto bound = io::udp_socket::bind(address::loopback_ipv4(0)).value();
        const auto connected = io::udp_socket::connect(bound.local_address().value()).value();
        for (const io::socket_base* const one : std::initializer_list<const io::socket_base*>{
                 &listener, &local, &client, &peer, &local_client, &local_peer, &pair.first,
                 &pair.second, &bound, &connected})
            CHECK(is_prepared(*one));
    });
    run();
}
