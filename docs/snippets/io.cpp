// io.cpp - the snippets of docs/io.md.
//
// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <string>
#include <utility>
#include <vector>

#include <weft/weft.hpp>

#include "check.hpp"

using namespace weft;
using namespace std::chrono_literals;

namespace {

// [echo]
void serve(io::tcp_listener& listener) {
    while (auto peer = listener.accept())
        go([s = std::move(*peer)]() mutable {
            std::array<std::byte, 4096> buffer;
            while (auto n = s.read_some(buffer)) {
                if (*n == 0 || !s.write_all(std::span(buffer).first(*n))) break;
            }
        });
}
// [/echo]

std::vector<std::string> read_lines(io::memory_stream& stream) {
    std::vector<std::string> all;
    const auto handle = [&](std::string_view line) { all.emplace_back(line); };
    // [lines]
    io::buffered_reader lines(stream, 8192);  // a line of more than 8 KiB is an error
    while (auto line = lines.read_until("\r\n")) handle(*line);
    // [/lines]
    return all;
}

io::result<std::string> read_reply(io::tcp_stream& stream) {
    std::string reply(5, ' ');
    const auto got = stream.read_exactly(std::as_writable_bytes(std::span(reply)));
    if (!got) return std::unexpected(got.error());
    return reply;
}

io::result<std::string> ask(io::tcp_stream& stream, std::string_view request) {
    // [deadline]
    auto reply = with_timeout(2s, [&]() -> io::result<std::string> {
        if (auto sent = stream.write_all(request); !sent) return std::unexpected(sent.error());
        return read_reply(stream);
    });
    // [/deadline]
    return reply;
}

void echo_answers() {
    // [bind]
    io::tcp_listener listener = io::tcp_listener::bind(io::address("127.0.0.1", 0)).value();
    // [/bind]
    fiber server([&] { serve(listener); });
    // [connect]
    io::address there = listener.local_address().value();  // with the port that it got
    io::tcp_stream stream = io::tcp_stream::connect(there).value();
    // [/connect]
    check(ask(stream, "hello").value() == "hello", "what comes back");
    stream.close();
    listener.close();
    server.join();
}

void lines_come() {
    auto [here, there] = io::memory_stream::pair();
    check(here.write_all("one\r\ntwo\r\n").has_value(), "a write");
    check(here.shutdown_write().has_value(), "its end");
    check(read_lines(there) == std::vector<std::string>{"one\r\n", "two\r\n"}, "two lines");
}

}  // namespace

int main() {
    weft::run([] {
        echo_answers();
        lines_come();
    });
}
