// echo_server.cpp - sends back what it gets, to any number of clients, until it is asked to stop.
//
//     echo_server 8080          until SIGINT or SIGTERM; what is under way is finished
//     echo_server               on a free port, with one client of its own
//
// SPDX-License-Identifier: Apache-2.0
#include <charconv>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <system_error>

#include <weft/weft.hpp>

using namespace weft;
using namespace std::chrono_literals;

namespace {

void echo(io::connection<io::tcp_stream>& peer) {
    while (peer.wait_for_request()) {  // no buffer is held while nothing comes
        std::array<std::byte, 4096> buffer;
        const auto got = peer.read_some(buffer);
        if (!got || *got == 0 || !peer.write_all(std::span(buffer).first(*got))) return;
    }
}

bool try_it(const io::address& where) {
    auto stream = io::tcp_stream::connect(where).value();
    std::array<std::byte, 5> back;
    stream.write_all("hello").value();
    stream.read_exactly(back).value();
    return std::ranges::equal(back, io::bytes_of("hello"));
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
            std::fprintf(stderr, "echo_server: port %s: %s\n", said.data(),
                         bound ? "no number of a port" : bound.error().message().c_str());
            return 1;
        }
        io::tcp_listener& listener = *bound;
        auto signals = io::signal_set::make({SIGINT, SIGTERM}).value();
        std::printf("port %d\n", listener.local_address().value().port());
        std::fflush(stdout);

        fiber server([&] {
            const auto report = io::serve(listener, &echo, {.connections = 10'000, .idle = 60s});
            std::printf("served %d connections\n", static_cast<int>(report.accepted));
        });
        const bool good = argc > 1 || try_it(listener.local_address().value());
        if (argc > 1) static_cast<void>(signals.next());
        server.request_stop();
        server.join();
        return good ? 0 : 1;
    });
}
