// port_forwarder.cpp - whoever connects here is connected with somebody else.
//
//     port_forwarder 8080 example.org 80      until SIGINT or SIGTERM
//     port_forwarder                          to a server of its own, once
//
// Two fibers a connection, one for each direction. When one side ends its sending, so does the
// other; when one fails, both are closed. Asked to stop, it takes no more from those who connected,
// as if they had ended, and gives the others a second to say the rest.
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

using peer = io::connection<io::tcp_stream>;

template <class From, class To>
bool pump(From& from, To& to) {
    std::array<std::byte, 16 * 1024> buffer;
    for (;;) {
        if constexpr (requires { from.wait_for_request(); })
            if (!from.wait_for_request()) return to.shutdown_write().has_value();
        const auto got = from.read_some(buffer);
        if (!got) return false;
        if (*got == 0) return to.shutdown_write().has_value();
        if (!io::write_all(to, std::span(buffer).first(*got))) return false;
    }
}

void forward(peer& here, const std::string& host, const std::string& service) {
    auto there = io::connect(host, service);
    if (!there) {
        std::fprintf(stderr, "%s: %s\n", host.c_str(), there.error().message().c_str());
        return;
    }
    fiber back([&] {
        if (!pump(*there, here)) here.close();
    });
    if (!pump(here, *there)) there->close();
    back.join();
}

bool try_it(const io::address& where) {
    auto stream = io::tcp_stream::connect(where).value();
    stream.write_all("to and fro").value();
    stream.shutdown_write().value();
    std::array<std::byte, 10> back;
    stream.read_exactly(back).value();
    return std::ranges::equal(back, io::bytes_of("to and fro")) &&
           stream.read_some(back).value() == 0;
}

}  // namespace

int main(int argc, char** argv) {
    return run([&] {
        if (argc != 1 && argc != 4) {
            std::fputs("port_forwarder: wants a port, a host and a service; see --help\n", stderr);
            return 2;
        }
        const bool alone = argc == 1;
        auto echo = io::tcp_listener::bind(io::address::loopback_ipv4(0)).value();
        const std::string host = alone ? "localhost" : argv[2];
        const std::string service =
            alone ? std::to_string(echo.local_address().value().port()) : argv[3];
        std::uint16_t port = 0;
        const std::string_view said = !alone ? argv[1] : "0";
        const char* const end = said.data() + said.size();
        const auto [read, error] = std::from_chars(said.data(), end, port);
        auto bound = io::tcp_listener::bind(io::address::loopback_ipv4(port));
        if (read != end || error != std::errc() || !bound) {
            std::fprintf(stderr, "port_forwarder: port %s: %s\n", said.data(),
                         bound ? "no number of a port" : bound.error().message().c_str());
            return 1;
        }
        io::tcp_listener& listener = *bound;
        auto signals = io::signal_set::make({SIGINT, SIGTERM}).value();
        std::printf("port %d\n", listener.local_address().value().port());
        std::fflush(stdout);

        fiber server([&] {
            io::serve(listener, [&](peer& one) { forward(one, host, service); }, {.grace = 1s});
        });
        fiber echoes([&] { io::serve(echo, [](peer& one) { pump(one, one); }); });
        const bool good = !alone || try_it(listener.local_address().value());
        if (!alone) static_cast<void>(signals.next());
        server.request_stop();
        echoes.request_stop();
        server.join();
        echoes.join();
        return good ? 0 : 1;
    });
}
