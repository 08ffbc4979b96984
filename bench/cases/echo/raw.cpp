// raw.cpp - the case `echo` by hand: one epoll, level-triggered, one read and one write a message.
//
// SPDX-License-Identifier: Apache-2.0
#include "cases/echo/workload.hpp"
#include "support/epoll_server.hpp"

namespace {

struct connection {
    int number;
};

// False: it has ended.
bool echo(const connection& peer) {
    char buffer[4096];
    const ssize_t size = ::recv(peer.number, buffer, sizeof buffer, 0);
    if (size <= 0) return false;
    bench::require(
        ::send(peer.number, buffer, static_cast<std::size_t>(size), MSG_NOSIGNAL) == size, "send");
    return true;
}

}  // namespace

int main(int argc, char** argv) {
    const bench::settings how = bench::read_arguments(argc, argv);
    const auto make = [] {
        return bench::server([](auto tell) { bench::serve_by_epoll<connection>(tell, echo); });
    };
    bench::echo::measure(how, "raw epoll", make);
    bench::echo::measure_idle(how, "raw epoll", make);
}
