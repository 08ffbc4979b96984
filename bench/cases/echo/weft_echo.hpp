// weft_echo.hpp - the case `echo` on a weft loop, whichever reactor and kind of fiber.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include <weft/exec/loop.hpp>
#include <weft/fiber/go.hpp>
#include <weft/io/reactor.hpp>
#include <weft/io/tcp.hpp>

#include "cases/echo/workload.hpp"

namespace bench::echo {

/// handle(stream) is what a connection's fiber does.
template <class Handle>
void serve(weft::io::reactor_kind reactor, const weft::fiber_options& options, Handle handle,
           const auto& tell) {
    using namespace weft;
    loop s;
    io::choose_reactor(s, reactor);
    auto listener = io::tcp_listener::bind(io::address::loopback_ipv4(0)).value();
    tell(listener.local_address().value().port());
    go(s, [&] {
        while (auto peer = listener.accept())
            go(options, [handle, stream = std::move(*peer)]() mutable { handle(stream); });
    });
    s.run();
}

inline void echo_all(weft::io::tcp_stream& stream) {
    std::array<std::byte, 4096> buffer;
    while (const auto got = stream.read_some(buffer))
        if (*got == 0 || !stream.write_all(std::span(buffer).first(*got))) return;
}

// A frame of its own: its buffer is there only while there is something to put into it.
[[gnu::noinline]] inline bool echo_once(weft::io::tcp_stream& stream) {
    std::array<std::byte, 512> buffer;
    const auto got = stream.read_some(buffer);
    return got && *got != 0 && stream.write_all(std::span(buffer).first(*got));
}

inline void echo_thriftily(weft::io::tcp_stream& stream) {
    while (stream.wait_readable() && echo_once(stream)) {}
}

inline void run(const settings& how, const char* row, weft::io::reactor_kind reactor) {
    measure(how, row, [reactor] {
        return server([reactor](auto tell) { serve(reactor, {}, echo_all, tell); });
    });
}

inline void run_idle(const settings& how, const char* row, weft::stack_kind kind) {
    measure_idle(how, row, [kind] {
        return server([kind](auto tell) {
            serve(weft::io::reactor_kind::epoll, {.kind = kind}, echo_thriftily, tell);
        });
    });
}

}  // namespace bench::echo
