// workload.hpp - what the case `http` plays: a server that answers every request with the same few
// bytes, and one client for all.
//
// The server has one CPU, the client the others. Connections are kept alive. With one request at a
// time the client is wrk, or, where that is missing, the one of the case `echo`; with 16 requests
// in one piece it is always the latter, and for the time that 99 of 100 requests take at most when
// half as many are sent as could be. What counts is the server's CPU time per request.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "support/server.hpp"

namespace bench::http {

inline constexpr unsigned connections = 50;
inline constexpr unsigned depth = 16;

inline constexpr std::string_view answer =
    "HTTP/1.1 200 OK\r\n"
    "Content-Type: text/plain\r\n"
    "Content-Length: 13\r\n"
    "\r\n"
    "Hello, world!";

/// Counts the requests in what comes, in whatever pieces: each ends with an empty line, for none
/// has a body. It looks at nothing else.
class request_counter {
public:
    unsigned feed(const char* bytes, std::size_t size) {
        unsigned ended = 0;
        const char* const end = bytes + size;
        const char* line = bytes;
        while (const void* const found =
                   std::memchr(line, '\n', static_cast<std::size_t>(end - line))) {
            const char* const feed = static_cast<const char*>(found);
            ended += length_ + static_cast<std::size_t>(feed - line) <= 1;  // "\r", or nothing
            length_ = 0;
            line = feed + 1;
        }
        length_ += static_cast<std::size_t>(end - line);
        return ended;
    }

private:
    std::size_t length_ = 0;  // of the line that is not yet at its end
};

/// So many answers, at most 256 of them.
inline std::string_view answers(unsigned count) {
    static const std::string all = [] {
        std::string text;
        for (int i = 0; i < 256; ++i) text += answer;
        return text;
    }();
    require(count <= 256, "not so many requests at once");
    return std::string_view(all).substr(0, count * answer.size());
}

/// What came of a number of requests.
struct outcome {
    double per_second = 0;
    double slow_microseconds = 0;  // 99 of 100 took at most so long
    double cpu_microseconds = 0;   // of the server, per request
};

/// By the client of the case `echo`, so many requests in one piece; rate 0: as fast as may be.
inline outcome ask_by_client(const server& asked, std::uint64_t requests, unsigned at_once,
                             double rate = 0) {
    requests -= requests % at_once;
    neighbour client({beside("../echo/client"), std::to_string(asked.port()),
                      std::to_string(connections), std::to_string(requests), std::to_string(rate),
                      std::to_string(at_once)});
    require(client.line() == "ready\n", "the client's word");
    const double before = asked.cpu_microseconds();
    client.end_input();
    const std::string said = client.line();
    require(!said.empty(), "what the client says");
    outcome came;
    came.cpu_microseconds = (asked.cpu_microseconds() - before) / static_cast<double>(requests);
    client.finish();
    char* rest = nullptr;
    came.per_second = std::strtod(said.c_str(), &rest);
    came.slow_microseconds = std::strtod(rest, nullptr);
    return came;
}

/// CPU time of the server per request, by wrk, in two seconds; nothing: it is not there.
inline std::optional<double> ask_by_wrk(const server& asked) {
    if (std::system("command -v wrk >/dev/null 2>&1") != 0) return std::nullopt;
    const double before = asked.cpu_microseconds();
    neighbour client({"wrk", "-t", "1", "-c", std::to_string(connections), "-d", "2s",
                      "http://127.0.0.1:" + std::to_string(asked.port()) + "/"});
    double answered = 0;
    for (std::string line = client.line(); !line.empty(); line = client.line()) {
        require(line.find("Socket errors") == line.npos, line);
        require(line.find("Non-2xx") == line.npos, line);
        if (line.find(" requests in ") != line.npos) answered = std::stod(line);
    }
    const double spent = asked.cpu_microseconds() - before;
    client.finish();
    require(answered != 0, "what wrk says");
    return spent / answered;
}

/// make() gives a server. Reports its CPU time per request, and the 99th percentile.
template <class Make>
void measure(const settings& how, const std::string& row, Make make) {
    const server asked = make();
    const std::optional<double> by_wrk = how.quick ? std::nullopt : ask_by_wrk(asked);
    const std::uint64_t requests = how.quick ? 1000 : 200'000;
    const outcome fast = ask_by_client(asked, requests, 1);
    report({row, "us", "one at a time"}, by_wrk ? *by_wrk : fast.cpu_microseconds);
    const outcome half = ask_by_client(asked, requests / 4, 1, fast.per_second / 2);
    report({row + ", p99", "us", "one at a time"}, half.slow_microseconds);
    report({row, "us", "16 at once"},
           ask_by_client(asked, how.quick ? 2000 : 1'000'000, depth).cpu_microseconds);
}

}  // namespace bench::http
