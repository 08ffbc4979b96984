// resolver_test.cpp - names asked of a server of our own, and how long answers are kept.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/io/resolver.hpp>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include <weft/base/test_point.hpp>
#include <weft/exec/loop.hpp>
#include <weft/io/blocking.hpp>
#include <weft/io/resolve.hpp>
#include <weft/io/tcp.hpp>
#include <weft/scope/deadline.hpp>
#include <weft/sync/wait_group.hpp>

#include "dead_address.hpp"
#include "io_support.hpp"
#include "name_server.hpp"
#include "pools.hpp"

using namespace weft;
using namespace std::chrono_literals;
using io::address;
using io::resolve_errc;

namespace {

bool has_cares() { return io::resolver().asks_servers(); }

// With a server of its own, and answers on a clock that the test moves.
class asked_by_hand {
public:
    explicit asked_by_hand(std::size_t cache = 1024)
        : names({.servers = {server.where()}, .cache = cache}) {}

    io::result<std::vector<address>> resolve(std::string_view host) {
        io::result<std::vector<address>> found;
        go(s, [&] { found = names.resolve(host, "80"); });
        s.run();
        return found;
    }
    /// Whether the server was asked for it.
    bool asks(std::string_view host) {
        const unsigned before = server.questions;
        CHECK(resolve(host));
        return server.questions != before;
    }

    manual_clock clock;
    weft_test::name_server server;
    loop s{{.clock = &clock}};
    io::resolver names;
};

}  // namespace

#define NEEDS_CARES() \
    if (!has_cares()) GTEST_SKIP() << "built without c-ares, or nsswitch.conf names more"

WEFT_TEST("resolver: what is read from files before a question is read on a side thread") {
    NEEDS_CARES();
    asked_by_hand it;
    const auto before = io::file_side_pool().counters().finished;
    CHECK(it.asks("one.test."));
    CHECK(io::file_side_pool().counters().finished == before + 1);
}

POOL_TEST("resolver: asks its server, and says what it said") {
    NEEDS_CARES();
    weft_test::name_server server;
    io::resolver names({.servers = {server.where()}, .cache = 0});
    fiber f(p, options(), [&] {
        CHECK(names.resolve("one.test.", "80").value() == std::vector{address("192.0.2.1", 80)});
        const auto both = names.resolve("both.test.", "http").value();
        CHECK(both.size() == 2);
        CHECK(std::ranges::count(both, address("192.0.2.1", 80)) == 1);
        CHECK(std::ranges::count(both, address("2001:db8::1", 80)) == 1);
        CHECK(names.resolve("four.test.", "1").value().size() == 4);
        CHECK(names.resolve("alias.test.", "1").value() == std::vector{address("192.0.2.1", 1)});
        CHECK(names.resolve("none.test.", "80").error() == resolve_errc::host_not_found);
        CHECK(names.resolve("empty.test.", "80").error() == resolve_errc::no_address);
        const auto wrong = names.resolve("wrong.test.", "80").error();
        CHECK(wrong == resolve_errc::failed || wrong == resolve_errc::try_again);  // by version
        CHECK(names.resolve("one.test.", "no such service").error() ==
              resolve_errc::unknown_service);
    });
    f.join();
}

POOL_TEST("resolver: a server that does not answer is asked again, and then given up") {
    NEEDS_CARES();
    const weft_test::no_descriptor_left descriptors;
    weft_test::name_server server;
    io::resolver names({.servers = {server.where()}, .timeout = 20ms, .tries = 4});
    io::resolver hasty({.servers = {server.where()}, .timeout = 20ms, .tries = 1});
    pool other({.workers = 1});  // so that no descriptor of the fixture's pool is counted
    fiber f(other, options(), [&] {
        CHECK(names.resolve("late.test.", "80").value() == std::vector{address("192.0.2.1", 80)});
        CHECK(hasty.resolve("mute.test.", "80").error() == resolve_errc::try_again);
    });
    f.join();
}

POOL_TEST("resolver: a fiber that is cancelled asks no more, and leaves nothing open") {
    NEEDS_CARES();
    const weft_test::no_descriptor_left descriptors;
    pool other({.workers = p.workers()});
    weft_test::name_server server;
    io::resolver names({.servers = {server.where()}});
    std::atomic<int> said = 0;
    fiber late(other, options(), [&] {
        const auto found = with_timeout(1ms, [&] { return names.resolve("mute.test.", "80"); });
        if (!found && found.error() == std::errc::timed_out) ++said;
    });
    late.join();
    fiber stopped(other, options(), [&] {
        const auto found = names.resolve("mute.test.", "80");
        if (!found && found.error() == std::errc::operation_canceled) ++said;
    });
    stopped.request_stop();
    stopped.join();
    CHECK(said == 2);
}

POOL_TEST("resolver: stress, many fibers and threads ask at once") {
    NEEDS_CARES();
    weft_test::name_server server;
    io::resolver names({.servers = {server.where()}, .timeout = 1s, .tries = 5, .cache = 2});
    const long rounds = weft_test::stress_count(1'000);
    std::atomic<long> right = 0;
    const auto ask = [&] {
        for (long i = 0; i < rounds; ++i) {
            const std::string name = "one." + std::to_string(i % 4) + ".test.";
            const auto found = names.resolve(name, "80");
            if (found && *found == std::vector{address("192.0.2.1", 80)}) ++right;
        }
    };
    for (int i = 0; i < 6; ++i) spawn([&ask] { ask(); });
    std::thread other(ask);
    other.join();
    p.drain();
    CHECK(right == 7 * rounds);
}

WEFT_TEST("resolver: works in a plain thread") {
    NEEDS_CARES();
    weft_test::name_server server;
    io::resolver names({.servers = {server.where()}, .timeout = 20ms, .tries = 1});
    CHECK(names.resolve("one.test.", "80").value() == std::vector{address("192.0.2.1", 80)});
    CHECK(names.resolve("one.test.", "80").value() == std::vector{address("192.0.2.1", 80)});
    CHECK(names.counters().kept == 1);
    CHECK(names.resolve("mute.test.", "80").error() == resolve_errc::try_again);
}

WEFT_TEST("resolver: an answer is kept as long as it holds, and not a moment longer") {
    NEEDS_CARES();
    asked_by_hand by;
    by.server.ttl = 60;
    CHECK(by.asks("one.test."));
    CHECK(!by.asks("one.test."));
    by.clock.advance(60s - 1ns);
    CHECK(!by.asks("one.test."));
    CHECK(by.names.counters().kept == 2);
    by.clock.advance(1ns);
    CHECK(by.asks("one.test."));
    by.names.forget();
    CHECK(by.asks("one.test."));
    CHECK(by.names.counters().looked_up == 3);
}

WEFT_TEST("resolver: an alias that holds for a shorter time than its addresses counts") {
    NEEDS_CARES();
    asked_by_hand by;
    by.server.ttl = 60;
    CHECK(by.asks("alias.test."));
    by.clock.advance(5s - 1ns);
    CHECK(!by.asks("alias.test."));
    by.clock.advance(1ns);
    CHECK(by.asks("alias.test."));
}

WEFT_TEST("resolver: an answer that holds for no time, and what is none, is not kept") {
    NEEDS_CARES();
    asked_by_hand by;
    by.server.ttl = 0;
    CHECK(by.asks("one.test."));
    CHECK(by.asks("one.test."));
    const unsigned before = by.server.questions;
    CHECK(by.resolve("none.test.").error() == resolve_errc::host_not_found);
    CHECK(by.resolve("none.test.").error() == resolve_errc::host_not_found);
    CHECK(by.server.questions >= before + 2);
}

WEFT_TEST("resolver: keeps no more names than it may, and lets go what ends first") {
    NEEDS_CARES();
    asked_by_hand by(2);
    by.server.ttl = 100;
    CHECK(by.asks("one.a.test."));
    by.server.ttl = 50;
    CHECK(by.asks("one.b.test."));
    by.server.ttl = 100;
    CHECK(by.asks("one.c.test."));
    CHECK(!by.asks("one.a.test."));
    CHECK(!by.asks("one.c.test."));
    CHECK(by.asks("one.b.test."));
    asked_by_hand none(0);
    CHECK(none.asks("one.test."));
    CHECK(none.asks("one.test."));
}

WEFT_TEST("resolver: what was looked up by one clock is not kept for another") {
    NEEDS_CARES();
    asked_by_hand by;
    CHECK(by.asks("one.test."));
    const unsigned before = by.server.questions;
    CHECK(by.names.resolve("one.test.", "80"));  // here, in a plain thread
    CHECK(by.server.questions > before);
}

WEFT_TEST("resolver: numbers, and hosts of this machine, go to no server") {
    NEEDS_CARES();
    asked_by_hand by;
    CHECK(by.resolve("192.0.2.7").value() == std::vector{address("192.0.2.7", 80)});
    const auto found = by.resolve("localhost").value();
    for (const address& one : found) {
        CHECK(one == address("127.0.0.1", 80) || one == address("::1", 80));
    }
    CHECK(by.server.questions == 0);
}

WEFT_TEST("resolver: the system's answers are not kept") {
    io::resolver names({.system = true});
    CHECK(!names.asks_servers());
    CHECK(names.resolve("localhost", "80"));
    CHECK(names.resolve("localhost", "80"));
    CHECK(names.counters().kept == 0);
    CHECK(names.counters().looked_up == 2);
}

WEFT_TEST("resolver: options that make no sense have a name") {
    const auto refused = [](const io::resolver_options& options) {
        try {
            io::resolver names(options);
        } catch (const std::system_error& error) { return error.code(); }
        return std::error_code();
    };
    CHECK(refused({.servers = {address()}}) == std::errc::invalid_argument);
    CHECK(refused({.servers = {address("127.0.0.1", 0)}}) == std::errc::invalid_argument);
    CHECK(refused({.timeout = -1ms}) == std::errc::invalid_argument);
    CHECK(refused({.tries = -1}) == std::errc::invalid_argument);
    CHECK(refused({.servers = {address("127.0.0.1", 53)}, .system = true}) ==
          std::errc::operation_not_supported);
}

namespace {

// Somebody listens at one of these addresses of a name, and nobody at the others; whether who
// connects comes out there.
bool comes_out_at(const address& live, const std::vector<address>& found) {
    const auto stream = io::tcp_stream::connect(found, 10s);
    return stream && stream->peer_address().value() == live;
}

}  // namespace

POOL_TEST("resolver: of a name's addresses that which answers is connected to, whichever it is") {
    NEEDS_CARES();
    weft_test::name_server server;
    io::resolver names({.servers = {server.where()}, .cache = 0});
    const std::vector<std::string> all = {"127.0.0.1", "127.0.0.2", "::1"};
    for (const std::string& where : all) {
        const auto hosts = weft_test::take_port(all, where);
        if (hosts.missing)
            GTEST_SKIP() << "127.0.0.2 or ::1 is not there: " << hosts.missing.message();
        const address live = hosts.listener->local_address().value();
        bool right = false;
        std::size_t addresses = 0;
        fiber f(p, options(), [&] {
            const auto found = names.resolve("local.test.", std::to_string(live.port())).value();
            addresses = found.size();
            right = comes_out_at(live, found);
        });
        f.join();
        CHECK(addresses == 3);
        CHECK(right);
    }
}

#if defined(WEFT_CHECKS) && WEFT_CHECKS
namespace {

std::atomic<int> steps = 0;
std::atomic<int> hung_up = 0;

// After its first step it has been told to come by TCP, and connects: until its server is gone.
void let_the_server_hang_up(const char* name) noexcept {
    if (std::string_view(name) != "resolver: about to go on" || ++steps == 1) return;
    while (hung_up == 0) std::this_thread::yield();
}

}  // namespace

// The first write to such a connection raises SIGPIPE.
WEFT_TEST("resolver: a server that ends a connection and resets it kills nobody") {
    NEEDS_CARES();
    std::unique_ptr<weft_test::name_server> server;
    io::result<io::tcp_listener> listener = std::unexpected(std::error_code());
    while (!listener) {  // until the number is free for TCP, too
        server = std::make_unique<weft_test::name_server>();
        listener = io::tcp_listener::bind(server->where());
    }
    std::thread by_tcp([&] {
        while (auto peer = listener->accept()) {
            CHECK(peer->shutdown_write());
            CHECK(peer->set_reset_on_close(true));
            peer->close();
            ++hung_up;
        }
    });
    steps = hung_up = 0;
    detail::at_test_points = &let_the_server_hang_up;
    io::resolver names({.servers = {server->where()}, .timeout = 10s, .tries = 1});
    loop s;
    go(s, [&] { CHECK(!names.resolve("cut.test.", "80")); });
    s.run();
    detail::at_test_points = nullptr;
    CHECK(hung_up > 0);
    listener->close();
    by_tcp.join();
}
#endif
