// many_connections_test.cpp - as many connections as the system allows, in one process and in
// several; and what comes in masses: deadlines, and connections that nobody accepts.
//
// The clients are processes of their own (tests/programs/io_crowd.cpp). Counts are those of
// stress_count(), at least a few hundred, and at most what the limit of descriptors allows.
//
// SPDX-License-Identifier: Apache-2.0
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <weft/fiber/fiber.hpp>
#include <weft/io/process.hpp>
#include <weft/io/tcp.hpp>
#include <weft/scope/deadline.hpp>
#include <weft/sync/wait_group.hpp>

#include "io_support.hpp"
#include "loops.hpp"
#include "pools.hpp"
#include "subprocess.hpp"
#include "test_points.hpp"

using namespace weft;
using namespace std::chrono_literals;
using weft_test::stress_count;

namespace {

// How many a process may have, of those that are wanted; says so if these are fewer.
std::size_t allowed(long wanted) {
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &limit);
    const auto most = static_cast<long>(std::min<rlim_t>(limit.rlim_max, 1'000'000)) - 200;
    if (wanted <= most) return static_cast<std::size_t>(wanted);
    std::printf("%ld connections were wanted, %ld is what the limit allows\n", wanted, most);
    return static_cast<std::size_t>(most);
}

io::process crowd(std::vector<std::string> arguments) {
    std::vector<std::string> command = weft_test::program_command("io_crowd");
    command.insert(command.end(), arguments.begin(), arguments.end());
    return io::process::spawn(command,
                              {.input = io::standard::piped, .output = io::standard::piped})
        .value();
}

std::string line_of(io::process& from) {
    std::string line;
    std::byte one[1];
    while (from.output().read_some(one).value_or(0) != 0 && one[0] != std::byte{'\n'})
        line += static_cast<char>(one[0]);
    return line;
}

// The server's side, and how many are there.
struct server {
    io::tcp_listener listener = io::tcp_listener::bind(io::address::loopback_ipv4(0)).value();
    std::atomic<std::size_t> open = 0;
    std::atomic<std::size_t> most = 0;
    std::atomic<std::size_t> echoed = 0;

    void echo(io::tcp_stream& stream) {
        std::size_t now = ++open;
        for (std::size_t before = most; before < now;)
            if (most.compare_exchange_weak(before, now)) break;
        while (stream.wait_readable()) {
            const auto one = std::make_unique<std::byte[]>(1);
            const std::span byte(one.get(), 1);
            const auto got = stream.read_some(byte);
            if (!got || *got == 0 || !stream.write_all(byte)) break;
            ++echoed;
        }
        --open;
    }

    void run(std::size_t count, stack_kind kind) {
        for (std::size_t i = 0; i < count; ++i)
            go({.kind = kind}, [this, stream = std::make_unique<io::tcp_stream>(
                                          listener.accept().value())] { echo(*stream); });
    }
};

// On an executor that goes on until all have ended.
void serve_many(executor& on, stack_kind kind, std::size_t count,
                const std::function<void()>& until_ended) {
    const auto mine = std::make_unique<server>();
    const auto port = std::to_string(mine->listener.local_address().value().port());
    go(on, [&, s = mine.get()] {
        io::process clients = crowd({"connect", port, std::to_string(count)});
        s->run(count, kind);
        CHECK(line_of(clients) == "all");
        CHECK(s->open == count);
        clients.input().close();
        CHECK(clients.wait().value().exited_with(0));
    });
    until_ended();
    CHECK(mine->most == count);
    CHECK(mine->open == 0U);
    CHECK(mine->echoed == 2 * count);
}

}  // namespace

WEFT_TEST("io: stress, 15,000 connections in one process, on a pool") {
    const std::size_t count = allowed(std::max(600L, stress_count(15'000)));
    for (const unsigned workers : {1U, 2U, 8U}) {
        const weft_test::no_descriptor_left left;
        pool p({.workers = workers});
        serve_many(p, stack_kind::own, count, [&] { p.drain(); });
    }
}

WEFT_TEST("io: stress, 15,000 connections in one process, on a loop") {
    const std::size_t count = allowed(std::max(600L, stress_count(15'000)));
    for (const stack_kind kind : {stack_kind::own, stack_kind::ucontext, stack_kind::swapped}) {
        const weft_test::no_descriptor_left left;
        loop s;
        serve_many(s, kind, count, [&] { s.run(); });
    }
}

WEFT_TEST("io: stress, 50,000 connections over several processes") {
    constexpr long pairs = 3;
    const std::size_t each = allowed(std::max(300L, stress_count(50'000) / pairs + 1));
    const weft_test::no_descriptor_left left;
    pool p({.workers = 2});
    fiber whole(p, [&] {
        std::vector<io::process> servers(pairs);
        std::vector<io::process> clients(pairs);
        for (long i = 0; i < pairs; ++i) {
            const auto at = static_cast<std::size_t>(i);
            servers[at] = crowd({"serve", std::to_string(each)});
            clients[at] = crowd({"connect", line_of(servers[at]), std::to_string(each)});
        }
        for (io::process& one : clients) CHECK(line_of(one) == "all");
        for (io::process& one : servers) CHECK(line_of(one) == "all");  // all at once
        for (io::process& one : clients) one.input().close();
        for (io::process& one : clients) CHECK(one.wait().value().exited_with(0));
        for (io::process& one : servers) CHECK(one.wait().value().exited_with(0));
    });
    whole.join();
}

MATRIX_TEST("io: deadlines that pass all at once lose no reader and no byte") {
    constexpr std::size_t count = 200;
    std::vector<io::pipe> pipes(count);
    for (io::pipe& one : pipes) one = io::pipe::make().value();
    std::size_t late = 0;
    std::size_t right = 0;
    for (io::pipe& one : pipes)
        spawn([&] {
            const auto byte = std::make_unique<std::byte[]>(1);
            const std::span buffer(byte.get(), 1);
            const auto first = with_timeout(5ms, [&] { return one.reader.read_some(buffer); });
            late += !first && first.error() == std::errc::timed_out;
            right += one.reader.read_some(buffer).value_or(0) == 1 && byte[0] == std::byte{'x'};
        });
    run_until_blocked();
    CHECK(late == 0);
    advance(5ms);
    run_until_blocked();
    CHECK(late == count);
    for (io::pipe& one : pipes) CHECK(one.writer.write_all("x"));
    run();
    CHECK(right == count);
}

POOL_TEST("io: stress, a storm of deadlines while bytes come, and each byte is read once") {
    const weft_test::with_test_points points;
    const std::size_t lanes = kind == stack_kind::thread ? 8 : 50;
    const long rounds = std::max(1L, stress_count(kind == stack_kind::thread ? 2'500 : 10'000));
    std::vector<io::pipe> pipes(lanes);
    for (io::pipe& one : pipes) one = io::pipe::make().value();
    std::atomic<long> read = 0;
    std::atomic<long> wrong = 0;
    for (io::pipe& one : pipes) {
        spawn([&, rounds] {
            const auto byte = std::make_unique<std::byte[]>(1);
            for (long next = 0; next < rounds;) {
                const auto got = with_timeout(
                    100us, [&] { return one.reader.read_some(std::span(byte.get(), 1)); });
                if (got) {
                    wrong += byte[0] != weft_test::byte_at(static_cast<std::size_t>(next++));
                    ++read;
                } else {
                    wrong += got.error() != std::errc::timed_out;
                }
            }
        });
        spawn([&, rounds] {
            for (long i = 0; i < rounds; ++i) {
                const std::byte next = weft_test::byte_at(static_cast<std::size_t>(i));
                wrong += !one.writer.write_all(std::span(&next, 1));
                if (i % 4 == 3) sleep_for(100us);
            }
        });
    }
    p.drain();
    CHECK(read == static_cast<long>(lanes) * rounds);
    CHECK(wrong == 0);
}

MATRIX_TEST("tcp: who finds the backlog full waits until its deadline, and leaves nothing behind") {
    auto listener = io::tcp_listener::bind(io::address::loopback_ipv4(0), {.backlog = 1}).value();
    const io::address where = listener.local_address().value();
    constexpr std::size_t count = 20;
    std::vector<io::tcp_stream> connected;
    std::size_t late = 0;
    for (std::size_t i = 0; i < count; ++i)
        spawn([&] {
            auto made = with_timeout(50ms, [&] { return io::tcp_stream::connect(where); });
            if (made)
                connected.push_back(std::move(*made));
            else
                late += made.error() == std::errc::timed_out;
        });
    run_until_blocked();
    // With the loop's own, which it has from now on.
    const std::size_t descriptors = weft_test::open_descriptors();
    CHECK(late == 0);
    CHECK(!connected.empty());
    CHECK(connected.size() < count);
    advance(50ms);
    run_until_blocked();
    CHECK(connected.size() + late == count);
    std::size_t accepted = 0;  // those that were let in are there, and work
    spawn([&] {
        for (std::size_t i = 0; i < connected.size(); ++i) {
            auto peer = listener.accept().value();
            accepted += peer.write_all("x").has_value();
        }
    });
    std::size_t read = 0;
    spawn([&] {
        for (io::tcp_stream& one : connected) {
            const auto byte = std::make_unique<std::byte[]>(1);
            read += one.read_some(std::span(byte.get(), 1)).value_or(0);
        }
    });
    run();
    CHECK(accepted == connected.size());
    CHECK(read == connected.size());
    connected.clear();
    listener.close();
    CHECK(weft_test::open_descriptors() == descriptors - count - 1);
}
