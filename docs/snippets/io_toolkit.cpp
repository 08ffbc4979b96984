// io_toolkit.cpp - the snippets of docs/io_toolkit.md.
//
// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <string>

#include <weft/weft.hpp>

#include "check.hpp"

using namespace weft;
using namespace std::chrono_literals;

namespace {

std::string read_with_some_old_library(const std::string& path) {
    std::FILE* const file = std::fopen(path.c_str(), "r");
    check(file != nullptr, "a file that is always there");
    char line[64] = "";
    check(std::fgets(line, sizeof line, file) != nullptr, "its first line");
    std::fclose(file);
    return line;
}

void blocking_calls() {
    const std::string path = "/proc/self/comm";
    // [blocking]
    std::string text = io::blocking([path] { return read_with_some_old_library(path); });
    // [/blocking]
    check(text == read_with_some_old_library(path), "what the call returned");
}

void files() {
    // [file]
    std::string text = io::read_file("/proc/self/comm").value();
    // [/file]
    check(!text.empty(), "a file's text");
}

void programs() {
    // [program]
    io::process sort =
        io::process::spawn({"sort"}, {.input = io::standard::piped, .output = io::standard::piped})
            .value();
    sort.input().write_all("2\n1\n").value();
    sort.input().close();
    io::buffered_reader lines(sort.output(), 1024);
    std::string first(lines.read_until("\n").value());  // "1\n"
    bool good = sort.wait().value().exited_with(0);
    // [/program]
    check(first == "1\n" && good, "what sort says");
}

// [answer]
std::string answer(std::string_view line) { return "you said " + std::string(line) + "\n"; }
// [/answer]

void servers() {
    auto listener = io::tcp_listener::bind(io::address("127.0.0.1", 0)).value();
    fiber server([&] {
        // [serve]
        io::serve(listener,
                  [](io::connection<io::tcp_stream>& peer) {
                      while (auto line = peer.read_line())
                          if (!peer.write_all(answer(*line))) return;
                  },
                  {.connections = 1000, .idle = 30s, .total = 1h, .grace = 10s});
        // [/serve]
    });
    auto stream = io::tcp_stream::connect(listener.local_address().value()).value();
    check(stream.write_all("hello\n").has_value(), "a request");
    io::buffered_reader lines(stream, 1024);
    check(lines.read_until("\n").value() == "you said hello\n", "an answer");
    server.request_stop();  // the connection sees its end, and then the server
    server.join();
}

}  // namespace

int main() {
    weft::run([] {
        blocking_calls();
        files();
        programs();
        servers();
    });
}
