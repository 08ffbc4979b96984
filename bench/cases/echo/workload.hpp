// workload.hpp - what the case `echo` plays: a server that sends back messages of 64 bytes, and one
// client for all.
//
// The server has one CPU; the client, a process of its own (client.cpp), runs on the others. Three
// measurements: the server's CPU time per message, when each connection sends its next message as
// soon as the last one has come back; how long 99 of 100 messages take at most when half as many
// are sent as could be; and the memory that a connection keeps which has had one message and waits.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>

#include "support/server.hpp"

namespace bench::echo {

inline constexpr std::size_t message = 64;
inline constexpr unsigned sizes[] = {50, 1000};

inline std::string connections(unsigned count) {
    return count < 1000 ? std::to_string(count) + " connections" : "1,000 connections";
}

/// What came of a number of messages.
struct outcome {
    double per_second = 0;
    double slow_microseconds = 0;  // 99 of 100 took at most so long
    double cpu_microseconds = 0;   // of the server
};

/// Runs the client; rate 0: as fast as may be. Counted is what comes after the connections have
/// been made.
inline outcome ask(const server& asked, unsigned count, std::uint64_t messages, double rate) {
    neighbour client({beside("client"), std::to_string(asked.port()), std::to_string(count),
                      std::to_string(messages), std::to_string(rate)});
    require(client.line() == "ready\n", "the client's word");
    const double before = asked.cpu_microseconds();
    client.end_input();
    const std::string said = client.line();
    outcome came;
    came.cpu_microseconds = asked.cpu_microseconds() - before;
    client.finish();
    char* rest = nullptr;
    came.per_second = std::strtod(said.c_str(), &rest);
    came.slow_microseconds = std::strtod(rest, nullptr);
    return came;
}

/// make() gives a server. Reports CPU time per message, and the 99th percentile, for each size.
template <class Make>
void measure(const settings& how, const std::string& row, Make make) {
    for (const unsigned count : sizes) {
        const server asked = make();
        const std::uint64_t messages = how.quick ? 2 * count : 200'000;
        const outcome fast = ask(asked, count, messages, 0);
        report({row, "us", connections(count)},
               fast.cpu_microseconds / static_cast<double>(messages));
        const outcome half = ask(asked, count, messages / 4, fast.per_second / 2);
        report({row + ", p99", "us", connections(count)}, half.slow_microseconds);
    }
}

/// The memory of the server per connection that waits.
template <class Make>
void measure_idle(const settings& how, const std::string& row, Make make) {
    const unsigned count = how.quick ? 100 : 10'000;
    const server asked = make();
    static_cast<void>(ask(asked, 10, 100, 0));  // what every server needs
    const double before = asked.resident_bytes();
    neighbour client(
        {beside("client"), std::to_string(asked.port()), std::to_string(count), "hold"});
    require(client.line() == "ready\n", "the client's word");
    report({row + ", idle", "B"}, (asked.resident_bytes() - before) / count);
    client.finish();
}

}  // namespace bench::echo
