// fork_test.cpp - fork(2) and exec(3) in a process where fibers and threads wait for I/O.
//
// Between the two the child does nothing but what POSIX allows there. It gets no descriptor of
// ours, and here everything goes on.
//
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include <weft/exec/pool.hpp>
#include <weft/fiber/dump.hpp>
#include <weft/fiber/fiber.hpp>
#include <weft/io/blocking.hpp>
#include <weft/io/file.hpp>
#include <weft/io/pipe.hpp>
#include <weft/io/reactor.hpp>
#include <weft/io/signal_set.hpp>
#include <weft/io/tcp.hpp>
#include <weft/io/udp.hpp>

#include "io_support.hpp"
#include "io_uring_support.hpp"
#include "pools.hpp"

using namespace weft;
using io::address;
using io::reactor_kind;

namespace {

// The numbers that are open in a program that was started by fork and exec, and the one by which it
// looks.
std::string open_in_a_child() {
    int ends[2];
    CHECK(::pipe2(ends, O_CLOEXEC) == 0);
    const pid_t child = ::fork();
    if (child == 0) {
        if (::dup2(ends[1], STDOUT_FILENO) == STDOUT_FILENO)
            ::execlp("ls", "ls", "/proc/self/fd", nullptr);
        ::_exit(1);
    }
    ::close(ends[1]);
    std::string said;
    char buffer[512];
    ssize_t got = 0;
    while ((got = ::read(ends[0], buffer, sizeof buffer)) > 0)
        said.append(buffer, static_cast<std::size_t>(got));
    ::close(ends[0]);
    int status = -1;
    CHECK(::waitpid(child, &status, 0) == child);
    CHECK(status == 0);
    return said;
}

// How many fibers of the process wait to read.
int waiting_to_read() {
    int count = 0;
    dump([&](std::string_view line) { count += line.find("waits to read") != line.npos; });
    return count;
}

// Whether this process has a reactor of that kind.
bool has_reactor(reactor_kind which) {
    const std::string wanted =
        which == reactor_kind::epoll ? "anon_inode:[eventpoll]" : "anon_inode:[io_uring]";
    std::error_code gone;  // what was open a moment ago
    for (const auto& one : std::filesystem::directory_iterator("/proc/self/fd"))
        if (std::filesystem::read_symlink(one, gone) == wanted) return true;
    return false;
}

bool one_byte_comes(io::tcp_stream& from) {
    std::byte one[1];
    return from.read_some(one).value_or(0) == 1;
}

// Fibers that wait for all kinds of I/O, two that never stop to play, and a plain thread that
// waits. `begin` says how a child is started.
template <class Begin>
void fork_beside(const weft_test::pool_variant& variant, reactor_kind which, Begin begin) {
    const weft_test::no_descriptor_left descriptors;
    const std::string before = open_in_a_child();
    pool p({.workers = variant.workers, .force_migrate = variant.moved});
    io::choose_reactor(p, which);
    const fiber_options options{.kind = variant.kind};
    auto [here, there] = weft_test::tcp_pair();
    auto [by_thread, to_thread] = weft_test::tcp_pair();
    auto [ball, back] = weft_test::tcp_pair();
    auto listener = io::tcp_listener::bind(address::loopback_ipv4(0)).value();
    auto datagrams = io::udp_socket::bind(address::loopback_ipv4(0)).value();
    auto signals = io::signal_set::make({SIGUSR2}).value();
    const auto source = io::file::open("/proc/self/status").value();  // open, too
    std::atomic<int> good = 0;
    std::atomic<bool> begun = false;
    std::atomic<long> rounds = 0;
    std::atomic<bool> end = false;
    std::byte packet[8];
    go(p, options, [&, stream = &here] { good += one_byte_comes(*stream); });
    go(p, options, [&] { good += listener.accept().has_value(); });
    go(p, options, [&] { good += datagrams.receive(packet).has_value(); });
    go(p, options, [&] { good += signals.next().has_value(); });
    go(p, options, [&, stream = &ball] {
        while (!end) {
            CHECK(stream->write_all("x"));
            CHECK(one_byte_comes(*stream));
            io::blocking([] {});
            ++rounds;
        }
        CHECK(stream->shutdown_write());
    });
    go(p, options, [stream = &back] {
        while (one_byte_comes(*stream)) CHECK(stream->write_all("y"));
    });
    std::thread waits([&, stream = &by_thread] {
        begun = true;
        good += one_byte_comes(*stream);
    });
    while (!begun || rounds == 0 || waiting_to_read() < 4) std::this_thread::yield();
    CHECK(has_reactor(which));
    for (int i = 0; i < 2; ++i) {
        const long seen = rounds;
        CHECK(begin(p, options) == before);
        while (rounds < seen + 3) std::this_thread::yield();  // all goes on
    }
    CHECK(good == 0);
    end = true;
    CHECK(there.write_all("x"));
    CHECK(to_thread.write_all("x"));
    const auto client = io::tcp_stream::connect(listener.local_address().value()).value();
    CHECK(io::udp_socket::connect(datagrams.local_address().value())
              .value()
              .send(weft_test::bytes("x")));
    ::kill(::getpid(), SIGUSR2);
    p.drain();
    waits.join();
    CHECK(good == 5);
}

template <class Begin>
void fork_beside_every_pool(Begin begin) {
    for (const reactor_kind which : {reactor_kind::epoll, reactor_kind::io_uring}) {
        if (which == reactor_kind::io_uring) { NEEDS_IO_URING(); }
        for (const weft_test::pool_variant& one : weft_test::pool_variants) {
            SCOPED_TRACE(std::string(io::to_string(which)) + ", " + one.name);
            fork_beside(one, which, begin);
        }
    }
}

}  // namespace

WEFT_TEST("fork: a program is started beside fibers that wait for I/O, and gets none of it") {
    fork_beside_every_pool([](pool&, const fiber_options&) { return open_in_a_child(); });
}

WEFT_TEST("fork: a fiber starts a program beside others that wait for I/O") {
    fork_beside_every_pool([](pool& p, const fiber_options& options) {
        std::string said;
        fiber starts(p, options, [&] { said = open_in_a_child(); });
        starts.join();
        return said;
    });
}
