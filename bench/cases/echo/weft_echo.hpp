// weft_echo.hpp - the case `echo` on a weft loop.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <functional>

#include <weft/exec/loop.hpp>
#include <weft/fiber/go.hpp>
#include <weft/io/tcp.hpp>

#include "cases/echo/workload.hpp"

namespace bench::echo {

inline void run(const settings& how, const char* row) {
    using namespace weft;
    measure(how, row, [&](unsigned count, const std::function<void(std::uint16_t)>& start) {
        loop s;
        auto listener = io::tcp_listener::bind(io::address::loopback_ipv4(0)).value();
        start(listener.local_address().value().port());
        go(s, [&] {
            for (unsigned i = 0; i < count; ++i)
                go([stream = listener.accept().value()]() mutable {
                    std::array<std::byte, 4096> buffer;
                    while (auto got = stream.read_some(buffer)) {
                        if (*got == 0 || !stream.write_all(std::span(buffer).first(*got))) break;
                    }
                });
        });
        s.run();
    });
}

}  // namespace bench::echo
