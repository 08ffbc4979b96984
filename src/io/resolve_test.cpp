// resolve_test.cpp - names, and what is none. Nothing here leaves the machine.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/io/resolve.hpp>

#include <algorithm>
#include <semaphore>
#include <string>

#include <weft/exec/loop.hpp>
#include <weft/io/blocking.hpp>
#include <weft/io/resolver.hpp>
#include <weft/scope/deadline.hpp>

#include "pools.hpp"

using namespace weft;
using namespace std::chrono_literals;

namespace {

// Too long a label: no name server is asked.
const std::string no_name = std::string(70, 'x') + ".invalid";

}  // namespace

POOL_TEST("resolve: localhost is an address of this machine") {
    fiber f(p, options(), [&] {
        const auto found = io::resolve("localhost", "80").value();
        CHECK(!found.empty());
        for (const io::address& one : found) {
            CHECK(one == io::address("127.0.0.1", 80) || one == io::address("::1", 80));
        }
    });
    f.join();
}

POOL_TEST("resolve: a number is itself, without any look-up") {
    const std::size_t before = io::shared_side_pool().counters().finished;
    fiber f(p, options(), [&] {
        CHECK(io::resolve("127.0.0.1", "8080").value() ==
              std::vector{io::address("127.0.0.1", 8080)});
        CHECK(io::resolve("::1", "1").value() == std::vector{io::address("::1", 1)});
    });
    f.join();
    CHECK(io::shared_side_pool().counters().finished == before);
}

POOL_TEST("resolve: what does not resolve has a name") {
    fiber f(p, options(), [&] {
        const auto error = io::resolve(no_name, "80").error();
        CHECK(error == io::resolve_errc::host_not_found || error == io::resolve_errc::failed);
        CHECK(io::resolve("", "80").error() == std::errc::invalid_argument);
        CHECK(io::resolve("localhost", "").error() == std::errc::invalid_argument);
        CHECK(io::resolve(std::string_view("a\0b", 3), "80").error() ==
              std::errc::invalid_argument);
        CHECK(io::resolve("localhost", "no such service").error() ==
              io::resolve_errc::unknown_service);
        CHECK(io::resolve("localhost", "65536").error() == io::resolve_errc::unknown_service);
        CHECK(!io::connect(no_name, "80"));
    });
    f.join();
}

WEFT_TEST("resolve: errors say what they are") {
    const std::error_code error = io::resolve_errc::host_not_found;
    CHECK(error.message() == "no such host is known");
    CHECK(std::string(error.category().name()) == "weft.resolve");
}

WEFT_TEST("resolve: works in a plain thread") {
    CHECK(!io::resolve("localhost", "80").value().empty());
    CHECK(!io::resolver({.system = true}).resolve("localhost", "http").value().empty());
}

POOL_TEST("resolve: a fiber that is cancelled does not wait for the system's look-up") {
    io::resolver names({.system = true});
    io::side_pool& side = io::shared_side_pool();
    const unsigned limit = side.limit();
    side.set_limit(1);
    std::binary_semaphore begun{0};
    std::binary_semaphore open{0};
    fiber holds(p, options(), [&] {
        io::blocking([&] {
            begun.release();
            open.acquire();
        });
    });
    begun.acquire();
    std::atomic<int> said = 0;
    fiber late(p, options(), [&] {
        const auto result = with_timeout(1ms, [&] { return names.resolve("localhost", "80"); });
        if (!result && result.error() == std::errc::timed_out) ++said;
    });
    late.join();
    fiber stopped(p, options(), [&] {
        const auto result = names.resolve("localhost", "80");
        if (!result && result.error() == std::errc::operation_canceled) ++said;
    });
    stopped.request_stop();
    stopped.join();
    CHECK(said == 2);
    open.release();
    holds.join();
    side.set_limit(limit);
}
