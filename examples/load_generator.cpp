// load_generator.cpp - asks an echo server as fast as it answers, over many connections.
//
//     load_generator localhost 8080 50 10000     50 connections, 10,000 requests in all
//     load_generator                             against a server of its own
//
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <expected>
#include <string>
#include <system_error>
#include <vector>

#include <weft/weft.hpp>

using namespace weft;
using std::chrono::steady_clock;

namespace {

constexpr std::size_t message_size = 64;
using message = std::array<std::byte, message_size>;

// The time of each request, in microseconds.
std::vector<double> ask(const std::string& host, const std::string& service,
                        std::atomic<long>& left) {
    std::vector<double> times;
    auto stream = io::connect(host, service).value();
    message sent;
    message back;
    sent.fill(std::byte{'x'});
    while (left.fetch_sub(1) > 0) {
        const auto began = steady_clock::now();
        stream.write_all(sent).value();
        stream.read_exactly(back).value();
        const std::chrono::duration<double, std::micro> took = steady_clock::now() - began;
        times.push_back(back == sent ? took.count() : -1);
    }
    return times;
}

bool measure(const std::string& host, const std::string& service, int connections, long requests) {
    std::atomic<long> left = requests;
    std::vector<double> all;
    const auto began = steady_clock::now();
    with_task_group<std::vector<double>>([&](task_group<std::vector<double>>& g) {
        for (int i = 0; i < connections; ++i) g.add([&] { return ask(host, service, left); });
        while (g.size() != 0) {
            const std::vector<double> some = g.next();
            all.insert(all.end(), some.begin(), some.end());
        }
    });
    const std::chrono::duration<double> took = steady_clock::now() - began;
    std::ranges::sort(all);
    const auto at = [&](double share) {
        return all[static_cast<std::size_t>(share * static_cast<double>(all.size() - 1))];
    };
    std::printf("%zu requests over %d connections: %.0f a second\n", all.size(), connections,
                static_cast<double>(all.size()) / took.count());
    std::printf("median %.0f us, 99%% %.0f us, longest %.0f us\n", at(0.5), at(0.99), at(1));
    return all.size() == static_cast<std::size_t>(requests) && all.front() >= 0;
}

}  // namespace

int main(int argc, char** argv) {
    return run([&] {
        if (argc == 5) {
            const int connections = std::atoi(argv[3]);
            const long requests = std::atol(argv[4]);
            if (connections <= 0 || requests <= 0) {
                std::fputs("at least one connection, and one request\n", stderr);
                return 2;
            }
            try {
                return measure(argv[1], argv[2], connections, requests) ? 0 : 1;
            } catch (const std::bad_expected_access<std::error_code>& failed) {
                std::fprintf(stderr, "load_generator: %s %s: %s\n", argv[1], argv[2],
                             failed.error().message().c_str());
                return 1;
            }
        }
        if (argc != 1) {
            std::fputs("load_generator: wants a host, a service and two numbers; see --help\n",
                       stderr);
            return 2;
        }
        auto listener = io::tcp_listener::bind(io::address::loopback_ipv4(0)).value();
        fiber server([&] {
            io::serve(listener, [](io::connection<io::tcp_stream>& peer) {
                message one;
                while (peer.read_exactly(one) && peer.write_all(one)) {}
            });
        });
        const std::string port = std::to_string(listener.local_address().value().port());
        const bool good = measure("127.0.0.1", port, 10, 2000);
        server.request_stop();
        server.join();
        return good ? 0 : 1;
    });
}
