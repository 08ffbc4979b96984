// raw.cpp - the case `http` by hand: one epoll, level-triggered, one read and one write a round.
//
// SPDX-License-Identifier: Apache-2.0
#include "cases/http/workload.hpp"
#include "support/epoll_server.hpp"

namespace {

using namespace bench;

struct connection {
    int number;
    http::request_counter requests = {};
};

// False: it has ended.
bool answer(connection& peer) {
    char buffer[4096];
    const ssize_t size = ::recv(peer.number, buffer, sizeof buffer, 0);
    if (size <= 0) return false;
    const unsigned count = peer.requests.feed(buffer, static_cast<std::size_t>(size));
    const std::string_view text = http::answers(count);
    if (text.empty()) return true;
    const auto whole = static_cast<ssize_t>(text.size());
    require(::send(peer.number, text.data(), text.size(), MSG_NOSIGNAL) == whole, "send");
    return true;
}

}  // namespace

int main(int argc, char** argv) {
    http::measure(read_arguments(argc, argv), "raw epoll", [] {
        return server([](auto tell) { serve_by_epoll<connection>(tell, answer); });
    });
}
