// epoll_server.hpp - a TCP server as one would write it by hand: one epoll, level-triggered, no
// layer in between. What weft and others are measured against.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdint>

#include "support/row.hpp"

namespace bench {

namespace detail {

inline int listen_on_loopback(std::uint16_t& port) {
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

inline void watch(int epoll, int number, void* key) {
    epoll_event event{.events = EPOLLIN, .data = {.ptr = key}};
    require(::epoll_ctl(epoll, EPOLL_CTL_ADD, number, &event) == 0, "epoll_ctl");
}

template <class Connection>
void accept_all(int epoll, int listener) {
    for (;;) {
        const int peer = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (peer < 0) return;
        const int on = 1;
        ::setsockopt(peer, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        watch(epoll, peer, new Connection{.number = peer});
    }
}

}  // namespace detail

/// Each time that something has come: handle(connection), which says whether it goes on. A
/// Connection begins with its number. Does not return.
template <class Connection, class Handle>
void serve_by_epoll(const auto& tell, Handle handle) {
    std::uint16_t port = 0;
    const int listener = detail::listen_on_loopback(port);
    const int epoll = ::epoll_create1(EPOLL_CLOEXEC);
    detail::watch(epoll, listener, nullptr);
    tell(port);
    std::array<epoll_event, 256> events;
    for (;;) {
        const int found = ::epoll_wait(epoll, events.data(), events.size(), -1);
        for (int i = 0; i < found; ++i) {
            auto* const one =
                static_cast<Connection*>(events[static_cast<std::size_t>(i)].data.ptr);
            if (one == nullptr) {
                detail::accept_all<Connection>(epoll, listener);
            } else if (!handle(*one)) {
                ::close(one->number);
                delete one;
            }
        }
    }
}

}  // namespace bench
