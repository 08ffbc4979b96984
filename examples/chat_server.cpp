// chat_server.cpp - whatever one says, all the others hear.
//
//     chat_server 8080          until SIGINT or SIGTERM
//     chat_server               on a free port, with two guests of its own
//
// A guest is a fiber with two sources: lines from its connection, and what others said. One fiber
// reads lines into a channel, the other selects between that and the guest's own channel. The room
// is a fiber that has the list of guests, so nobody needs a lock; a guest who does not listen
// misses what does not fit into its channel, and holds up nobody.
//
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <weft/weft.hpp>

using namespace weft;

namespace {

using peer = io::connection<io::tcp_stream>;
using mailbox = std::shared_ptr<channel<std::string>>;

struct news {
    enum { comes, says, goes } what;
    mailbox guest;
    std::string text;
};

void room(channel<news>& door) {
    std::vector<mailbox> guests;
    for (news& one : door) {
        if (one.what == news::comes) guests.push_back(one.guest);
        if (one.what == news::goes) std::erase(guests, one.guest);
        for (const mailbox& to : guests)
            if (to != one.guest || one.what == news::comes)
                static_cast<void>(to->try_send(one.text));
    }
}

void guest(peer& connection, channel<news>& door) {
    const auto name = connection.read_line();
    if (!name) return;
    const std::string me(*name);
    const auto heard = std::make_shared<channel<std::string>>(64);
    channel<std::string> said;
    if (!door.send({news::comes, heard, me + " is here\n"})) return;

    fiber reads([&] {
        while (const auto line = connection.read_line())
            if (!said.send(std::string(*line))) return;
        said.close();
    });
    for (bool here = true; here;) {
        const auto chosen = select(  //
            on_receive(said,
                       [&](auto line) {
                           here = line && door.send({news::says, heard, me + ": " + *line + "\n"});
                       }),
            on_receive(*heard, [&](auto text) { here = text && connection.write_all(*text); }));
        if (!chosen) break;
    }
    said.close();
    static_cast<void>(door.send({news::goes, heard, me + " has left\n"}));
}

bool try_it(const io::address& where) {
    auto ann = io::tcp_stream::connect(where).value();
    auto bob = io::tcp_stream::connect(where).value();
    io::buffered_reader ann_hears(ann);
    io::buffered_reader bob_hears(bob);
    ann.write_all("ann\n").value();
    while (ann_hears.read_until("\n").value() != "ann is here\n") {}
    bob.write_all("bob\n").value();
    while (ann_hears.read_until("\n").value() != "bob is here\n") {}
    ann.write_all("hello bob\n").value();
    while (bob_hears.read_until("\n").value() != "ann: hello bob\n") {}
    bob.close();
    return ann_hears.read_until("\n").value() == "bob has left\n";
}

}  // namespace

int main(int argc, char** argv) {
    return run([&] {
        std::uint16_t port = 0;
        const std::string_view said = argc > 1 ? argv[1] : "0";
        const char* const end = said.data() + said.size();
        const auto [read, error] = std::from_chars(said.data(), end, port);
        auto bound = io::tcp_listener::bind(io::address::loopback_ipv4(port));
        if (read != end || error != std::errc() || !bound) {
            std::fprintf(stderr, "chat_server: port %s: %s\n", said.data(),
                         bound ? "no number of a port" : bound.error().message().c_str());
            return 1;
        }
        io::tcp_listener& listener = *bound;
        auto signals = io::signal_set::make({SIGINT, SIGTERM}).value();
        std::printf("port %d\n", listener.local_address().value().port());
        std::fflush(stdout);

        channel<news> door(16);
        fiber hall([&] { room(door); });
        fiber server([&] { io::serve(listener, [&](peer& one) { guest(one, door); }); });
        const bool good = argc > 1 || try_it(listener.local_address().value());
        if (argc > 1) static_cast<void>(signals.next());
        server.request_stop();
        server.join();
        door.close();
        hall.join();
        return good ? 0 : 1;
    });
}
