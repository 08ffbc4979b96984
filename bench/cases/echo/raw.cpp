// raw.cpp - the case `echo` by hand: one epoll, level-triggered, one read and one write a message.
//
// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>
#include <functional>

#include "cases/echo/workload.hpp"

namespace {

using bench::require;

int listen_on_loopback(std::uint16_t& port) {
    const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    sockaddr_in where{};
    where.sin_family = AF_INET;
    where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof where;
    require(::bind(listener, reinterpret_cast<sockaddr*>(&where), size) == 0, "bind");
    require(::listen(listener, 1024) == 0, "listen");
    ::getsockname(listener, reinterpret_cast<sockaddr*>(&where), &size);
    port = ntohs(where.sin_port);
    return listener;
}

void watch(int epoll, int number) {
    epoll_event event{.events = EPOLLIN, .data = {.fd = number}};
    require(::epoll_ctl(epoll, EPOLL_CTL_ADD, number, &event) == 0, "epoll_ctl");
}

void accept_all(int epoll, int listener) {
    for (;;) {
        const int peer = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (peer < 0) return;
        const int on = 1;
        ::setsockopt(peer, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        watch(epoll, peer);
    }
}

// False: it has ended.
bool echo(int peer) {
    char buffer[4096];
    const ssize_t size = ::recv(peer, buffer, sizeof buffer, 0);
    if (size <= 0) return false;
    require(::send(peer, buffer, static_cast<std::size_t>(size), MSG_NOSIGNAL) == size, "send");
    return true;
}

void serve(unsigned count, const std::function<void(std::uint16_t)>& start) {
    std::uint16_t port = 0;
    const int listener = listen_on_loopback(port);
    const int epoll = ::epoll_create1(EPOLL_CLOEXEC);
    watch(epoll, listener);
    start(port);
    std::array<epoll_event, 256> events;
    while (count != 0) {
        const int found = ::epoll_wait(epoll, events.data(), events.size(), -1);
        for (int i = 0; i < found; ++i) {
            const int number = events[static_cast<std::size_t>(i)].data.fd;
            if (number == listener) {
                accept_all(epoll, listener);
            } else if (!echo(number)) {
                ::close(number);
                --count;
            }
        }
    }
    ::close(epoll);
    ::close(listener);
}

}  // namespace

int main(int argc, char** argv) {
    bench::echo::measure(bench::read_arguments(argc, argv), "raw epoll", serve);
}
