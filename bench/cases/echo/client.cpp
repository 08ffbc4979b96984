// client.cpp - the one client of the case `echo`: PORT CONNECTIONS MESSAGES. See workload.hpp.
//
// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>
#include <cstring>
#include <vector>

#include "cases/echo/workload.hpp"

namespace {

using bench::require;
using bench::echo::message;

// Not where the server is.
void leave_its_cpu() {
    cpu_set_t server;
    cpu_set_t others;
    CPU_ZERO(&others);
    require(::sched_getaffinity(0, sizeof server, &server) == 0, "sched_getaffinity");
    for (std::size_t i = 0; i < static_cast<std::size_t>(::sysconf(_SC_NPROCESSORS_CONF)); ++i)
        if (!CPU_ISSET(i, &server)) CPU_SET(i, &others);
    if (CPU_COUNT(&others) != 0) ::sched_setaffinity(0, sizeof others, &others);
}

struct connection {
    int number = -1;
    std::uint64_t sent = 0;
    std::size_t back = 0;  // bytes of the message under way
    std::array<char, message> text{};
};

int connect_to(std::uint16_t port) {
    const int number = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in where{};
    where.sin_family = AF_INET;
    where.sin_port = htons(port);
    where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    require(::connect(number, reinterpret_cast<sockaddr*>(&where), sizeof where) == 0, "connect");
    const int on = 1;
    ::setsockopt(number, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return number;
}

void send_next(connection& c) {
    std::memset(c.text.data(), static_cast<int>('a' + ++c.sent % 26), message);
    require(::send(c.number, c.text.data(), message, MSG_NOSIGNAL) == message, "send");
    c.back = 0;
}

// Whether the message has come back as a whole.
bool receive(connection& c) {
    char got[message];
    const ssize_t size = ::recv(c.number, got, message - c.back, 0);
    require(size > 0, "recv");
    require(std::memcmp(got, c.text.data(), static_cast<std::size_t>(size)) == 0, "the bytes");
    c.back += static_cast<std::size_t>(size);
    return c.back == message;
}

}  // namespace

int main(int argc, char** argv) {
    require(argc == 4, "client PORT CONNECTIONS MESSAGES");
    leave_its_cpu();
    std::vector<connection> all(std::stoul(argv[2]));
    std::uint64_t to_send = std::stoul(argv[3]);
    std::uint64_t to_come = to_send;
    const int epoll = ::epoll_create1(0);
    for (connection& one : all) {
        one.number = connect_to(static_cast<std::uint16_t>(std::stoul(argv[1])));
        epoll_event event{.events = EPOLLIN, .data = {.ptr = &one}};
        require(::epoll_ctl(epoll, EPOLL_CTL_ADD, one.number, &event) == 0, "epoll_ctl");
    }
    for (connection& one : all)
        if (to_send != 0) {
            --to_send;
            send_next(one);
        }
    std::array<epoll_event, 256> events;
    while (to_come != 0) {
        const int count = ::epoll_wait(epoll, events.data(), events.size(), -1);
        for (int i = 0; i < count; ++i) {
            connection& one =
                *static_cast<connection*>(events[static_cast<std::size_t>(i)].data.ptr);
            if (!receive(one)) continue;
            --to_come;
            if (to_send == 0) continue;
            --to_send;
            send_next(one);
        }
    }
    for (const connection& one : all) ::close(one.number);
}
