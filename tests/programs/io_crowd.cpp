// io_crowd.cpp - one end of very many connections; tests start several of it.
//
//   io_crowd serve COUNT           says its port; `all` once so many are open at once, each of
//   which
//                                  has had its bytes sent back; ends when they have ended
//   io_crowd connect PORT COUNT    opens so many, gets a byte back on each, and says `all`; goes on
//                                  when its input ends: a byte on each once more, and the end
//
// SPDX-License-Identifier: Apache-2.0
#include <sys/resource.h>

#include <atomic>
#include <string>
#include <string_view>
#include <vector>

#include <weft/weft.hpp>

#include "program_support.hpp"

using namespace weft;
using weft_test::require;

namespace {

void say(std::string_view text) { require(io::standard_output().write_all(text).has_value()); }

// A byte comes back as it was sent.
void exchange(io::tcp_stream& stream, std::size_t number) {
    const auto sent = static_cast<std::byte>(number % 251);
    std::byte back[1]{};
    require(stream.write_all(std::span(&sent, 1)).has_value());
    require(stream.read_exactly(back).has_value() && back[0] == sent);
}

int serve(std::size_t count) {
    auto listener = io::tcp_listener::bind(io::address::loopback_ipv4(0)).value();
    say(std::to_string(listener.local_address().value().port()) + "\n");
    std::atomic<std::size_t> echoed = 0;
    wait_group open;
    for (std::size_t i = 0; i < count; ++i) {
        open.add();
        go([&, stream = listener.accept().value()]() mutable {
            const auto done = open.guard();
            while (stream.wait_readable()) {  // holds no buffer meanwhile
                std::byte one[1];
                if (stream.read_some(one).value_or(0) == 0) return;
                require(stream.write_all(one).has_value());
                if (++echoed == count) say("all\n");
            }
        });
    }
    open.wait();
    require(echoed == 2 * count);
    return 0;
}

int connect(std::uint16_t port, std::size_t count) {
    std::vector<io::tcp_stream> all(count);
    for (std::size_t i = 0; i < count; ++i) {
        all[i] = io::tcp_stream::connect(io::address::loopback_ipv4(port)).value();
        exchange(all[i], i);
    }
    say("all\n");
    std::byte end[1];
    while (io::standard_input().read_some(end).value_or(0) != 0) {}
    for (std::size_t i = 0; i < count; ++i) exchange(all[i], i + 1);
    for (io::tcp_stream& one : all) require(one.set_reset_on_close(true).has_value());
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &limit);
    const std::vector<std::string> words(argv + 1, argv + argc);
    return weft::run([&] {
        if (words.size() == 2 && words[0] == "serve") return serve(std::stoul(words[1]));
        require(words.size() == 3 && words[0] == "connect");
        return connect(static_cast<std::uint16_t>(std::stoul(words[1])), std::stoul(words[2]));
    });
}
