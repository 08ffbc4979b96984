// weft.cpp - the case `http` on a weft loop: a fiber a connection. See workload.hpp.
//
// SPDX-License-Identifier: Apache-2.0
#include <array>

#include <weft/exec/loop.hpp>
#include <weft/fiber/go.hpp>
#include <weft/io/tcp.hpp>

#include "cases/http/workload.hpp"

namespace {

using namespace bench;

void answer_all(weft::io::tcp_stream& stream) {
    std::array<std::byte, 4096> buffer;
    http::request_counter requests;
    while (const auto got = stream.read_some(buffer)) {
        if (*got == 0) return;
        const unsigned count = requests.feed(reinterpret_cast<const char*>(buffer.data()), *got);
        if (!stream.write_all(http::answers(count))) return;
    }
}

void serve(const auto& tell) {
    using namespace weft;
    loop s;
    auto listener = io::tcp_listener::bind(io::address::loopback_ipv4(0)).value();
    tell(listener.local_address().value().port());
    go(s, [&] {
        while (auto peer = listener.accept())
            go([stream = std::move(*peer)]() mutable { answer_all(stream); });
    });
    s.run();
}

}  // namespace

int main(int argc, char** argv) {
    http::measure(read_arguments(argc, argv), "weft",
                  [] { return server([](auto tell) { serve(tell); }); });
}
