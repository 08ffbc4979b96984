// reactor_close_test.cpp - closing what a reactor watches, at the moment at which it is reported.
//
// Run with each reactor: a poll that the kernel still has keeps its file open, and then the other
// side never sees the end.
//
// SPDX-License-Identifier: Apache-2.0
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <thread>

#include <weft/exec/loop.hpp>
#include <weft/exec/pool.hpp>
#include <weft/io/descriptor.hpp>
#include <weft/io/reactor.hpp>
#include <weft/sync/wait_group.hpp>

#include "io_support.hpp"
#include "io_uring_support.hpp"
#include "pools.hpp"
#include "test_points.hpp"

using namespace weft;
using io::reactor_kind;

namespace {

// Whether what the other side of this one has written, and then its end, come within ten seconds.
bool sees_the_end(int number) {
    for (;;) {
        pollfd one{.fd = number, .events = POLLIN, .revents = 0};
        if (::poll(&one, 1, 10'000) != 1) return false;
        char some[64];
        if (::read(number, some, sizeof some) <= 0) return true;
    }
}

// Whether no poll was left for one that was closed: it would hold the next of the same number.
bool next_one_ends(loop& s) {
    auto [here, there] = io::unix_stream::pair().value();
    static_cast<void>(s.step());  // submits what was written down
    here.close();
    return sees_the_end(there.native_handle());
}

// Fibers of a pool that read from one end, in turn. The other ends are the test's own.
class readers {
public:
    explicit readers(pool& p, stack_kind kind) : pool_(p), kind_(kind) {}

    /// Somebody reads there so often, or until it is closed.
    void read(io::unix_stream& from, int times) {
        done_.add();
        begun_ = false;
        go(pool_, {.kind = kind_}, [this, &from, times] {
            const auto done = done_.guard();
            const auto buffer = std::make_unique<std::byte[]>(8);
            begun_ = true;
            begun_.notify_all();
            for (int i = 0; i < times && from.read_some(std::span(buffer.get(), 8)); ++i) {}
        });
        begun_.wait(false);
    }
    void join() { done_.wait(); }

private:
    pool& pool_;
    const stack_kind kind_;
    wait_group done_;
    std::atomic<bool> begun_ = false;
};

void write_one(io::unix_stream& to) { CHECK(::write(to.native_handle(), "x", 1) == 1); }

void close_while_reported(pool& p, stack_kind kind, reactor_kind which) {
    io::choose_reactor(p, which);
    readers all(p, kind);
    const long rounds = weft_test::stress_count(50'000);
    for (long i = 0; i < rounds; ++i) {
        auto [here, there] = io::unix_stream::pair().value();
        const bool waits = i % 2 == 0;  // else nobody is inside, and this thread cancels
        all.read(here, waits ? 1000 : 1);
        if (!waits) {
            write_one(there);
            all.join();
        }
        for (long written = 0; written < i / 2 % 4; ++written) write_one(there);
        here.close();
        REQUIRE(sees_the_end(there.native_handle()));
        all.join();
    }
}

}  // namespace

POOL_TEST("reactor: stress, what is closed while epoll reports it is seen to end") {
    const weft_test::with_test_points points;
    close_while_reported(p, kind, reactor_kind::epoll);
}

POOL_TEST("reactor: stress, what is closed while io_uring reports it is seen to end") {
    NEEDS_IO_URING();
    const weft_test::with_test_points points;
    close_while_reported(p, kind, reactor_kind::io_uring);
}

// The kernel ends a poll whose thread is gone when it has something to report: it is submitted
// again, while the descriptor is closed.
WEFT_TEST("reactor: stress, closed while it is submitted again") {
    NEEDS_IO_URING();
    const weft_test::with_test_points points;
    const long rounds = weft_test::stress_count(1'000);
    for (long i = 0; i < rounds; ++i) {
        loop s;
        io::choose_reactor(s, reactor_kind::io_uring);
        auto [here, there] = io::unix_stream::pair().value();
        std::atomic<bool> read = false;
        go(s, [&here, &read] {
            std::byte some[8];
            while (here.read_some(some)) {
                read = true;
                read.notify_all();
            }
        });
        std::thread([&s] { s.run_until_blocked(); }).join();
        CHECK(::write(there.native_handle(), "x", 1) == 1);
        std::thread second([&s] { s.run(); });
        if (i % 2 == 0) read.wait(false);
        here.close();
        REQUIRE(sees_the_end(there.native_handle()));
        second.join();
        REQUIRE(next_one_ends(s));
    }
}

// Registered and taken back between two looks at the kernel.
WEFT_TEST("reactor: closed before the kernel has heard of it") {
    for (const reactor_kind which : {reactor_kind::epoll, reactor_kind::io_uring}) {
        loop s;
        io::choose_reactor(s, which);
        auto [here, there] = io::unix_stream::pair().value();
        bool closed = false;
        go(s, [&] {
            std::byte some[8];
            closed = here.read_some(some).error() == errc::closed;
        });
        go(s, [&here] { here.close(); });
        s.run();
        CHECK(closed);
        CHECK(sees_the_end(there.native_handle()));
        CHECK(next_one_ends(s));
    }
}

WEFT_TEST("reactor: what was at home in a loop that nobody runs any more can be closed") {
    for (const reactor_kind which : {reactor_kind::epoll, reactor_kind::io_uring}) {
        auto [here, there] = io::unix_stream::pair().value();
        loop s;
        io::choose_reactor(s, which);
        go(s, [&here] {
            std::byte some[8];
            static_cast<void>(here.read_some(some));
        });
        s.run_until_blocked();
        CHECK(there.write_all("x"));
        s.run();
        here.close();
        CHECK(sees_the_end(there.native_handle()));
    }
}

// More edges than its queue has places: the kernel keeps the rest, or ends the poll.
WEFT_TEST("reactor: more is reported at once than its queue holds, and then once more") {
    for (const reactor_kind which : {reactor_kind::epoll, reactor_kind::io_uring}) {
        loop s;
        io::choose_reactor(s, which);
        const int number = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        io::descriptor counter = io::descriptor::adopt_prepared(number).value();
        const std::uint64_t one = 1;
        const std::uint64_t many = 6000;
        std::atomic<std::uint64_t> sum = 0;
        go(s, [&] {
            std::uint64_t some = 0;
            while (sum <= many && counter.read_some(std::as_writable_bytes(std::span(&some, 1)))) {
                sum += some;
                sum.notify_all();
            }
        });
        s.run_until_blocked();
        for (std::uint64_t i = 0; i < many; ++i) CHECK(::write(number, &one, sizeof one) == 8);
        std::thread last([&] {
            for (std::uint64_t seen = 0; (seen = sum) < many;) sum.wait(seen);
            CHECK(::write(number, &one, sizeof one) == 8);
        });
        s.run();
        last.join();
        CHECK(sum == many + 1);
    }
}
