// resolve_test.cpp - names, and what is none. Nothing here leaves the machine.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/io/resolve.hpp>

#include <algorithm>
#include <semaphore>
#include <string>
#include <thread>
#include <vector>

#include <weft/exec/loop.hpp>
#include <weft/io/blocking.hpp>
#include <weft/io/file.hpp>
#include <weft/io/resolver.hpp>
#include <weft/scope/deadline.hpp>

#include "io/side_pool.hpp"
#include "pools.hpp"
#include "scarce_descriptors.hpp"

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
    const std::size_t before = detail::side_access::for_names().counters().finished;
    fiber f(p, options(), [&] {
        CHECK(io::resolve("127.0.0.1", "8080").value() ==
              std::vector{io::address("127.0.0.1", 8080)});
        CHECK(io::resolve("::1", "1").value() == std::vector{io::address("::1", 1)});
    });
    f.join();
    CHECK(detail::side_access::for_names().counters().finished == before);
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

WEFT_TEST("resolve: what is no number in whole is no port") {
    io::resolver by_system({.system = true});
    for (const char* wrong : {"-1", "+80", " 80", "80 ", "80x", "0x50", "1e3", "-"}) {
        SCOPED_TRACE(wrong);
        for (io::resolver* one : {&io::shared_resolver(), &by_system})
            CHECK(one->resolve("localhost", wrong).error() == io::resolve_errc::unknown_service);
    }
    CHECK(io::resolve("localhost", "0").value().front().port() == 0);
    CHECK(io::resolve("localhost", "65535").value().front().port() == 65535);
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

WEFT_TEST("resolve: with no descriptor left the system does not say that nobody knows the name") {
    NEEDS_NO_DESCRIPTOR_OF_UBSAN();
    io::resolver names({.system = true});
    const weft_test::all_descriptors_taken now;
    CHECK(names.resolve("localhost", "80").error() == std::errc::too_many_files_open);
}

POOL_TEST("resolve: a fiber that is cancelled does not wait for the system's look-up") {
    io::resolver names({.system = true});
    io::side_pool& side = detail::side_access::for_names();
    const unsigned limit = side.limit();
    side.set_limit(1);
    std::binary_semaphore begun{0};
    std::binary_semaphore open{0};
    fiber holds(p, options(), [&] {
        io::blocking(side, [&] {
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

// As if eight names that never come were asked for.
POOL_TEST("resolve: a look-up that nobody wants any more waits for no thread") {
    io::side_pool& side = detail::side_access::for_names();
    std::counting_semaphore<16> open{0};
    for (unsigned i = 0; i < side.limit(); ++i)
        go(p, [&] { io::blocking(side, [&] { open.acquire(); }); });
    while (side.counters().running < side.limit()) std::this_thread::yield();
    const std::size_t before = side.counters().finished;
    io::resolver names({.system = true});
    std::atomic<int> late = 0;
    {
        std::vector<fiber> all;
        for (int i = 0; i < 100; ++i)
            all.emplace_back(p, options(), [&] {
                late += !with_timeout(1ms, [&] { return names.resolve("localhost", "80"); });
            });
        for (fiber& one : all) one.join();
    }
    CHECK(late == 100);
    CHECK(side.counters().queued == 0);
    open.release(static_cast<std::ptrdiff_t>(side.limit()));
    p.drain();
    CHECK(side.counters().finished == before + side.limit());
}

// As if eight names that never come were asked for, and one more.
WEFT_TEST("resolve: look-ups that take long keep no file waiting") {
    pool p({.workers = 2});
    io::side_pool& side = detail::side_access::for_names();
    std::counting_semaphore<16> open{0};
    for (unsigned i = 0; i < side.limit(); ++i)
        go(p, [&] { io::blocking(side, [&] { open.acquire(); }); });
    while (side.counters().running < side.limit()) std::this_thread::yield();
    io::resolver names({.system = true});
    fiber asks(p, [&] { CHECK(names.resolve("localhost", "80").has_value()); });
    while (side.counters().queued == 0) std::this_thread::yield();
    fiber reads(p, [] { CHECK(io::file::open("/proc/self/status").has_value()); });
    reads.join();
    open.release(static_cast<std::ptrdiff_t>(side.limit()));
    asks.join();
    p.drain();
}
