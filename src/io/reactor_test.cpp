// reactor_test.cpp - which reactor serves, and what is done when the kernel refuses one.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/io/reactor.hpp>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <thread>

#include <weft/exec/loop.hpp>
#include <weft/exec/pool.hpp>
#include <weft/fiber/fiber.hpp>
#include <weft/io/pipe.hpp>

#include "backends.hpp"
#include "io_support.hpp"
#include "io_uring_support.hpp"

using namespace weft;
using namespace std::chrono_literals;
using io::reactor_kind;

namespace {

// All tests of this program, when the environment asks for io_uring.
[[maybe_unused]] const bool asked_for =
    (weft_test::before_each = &weft_test::need_what_is_asked_for, true);

// Waits for a byte, and says which reactor served.
reactor_kind wait_for_a_byte(io::pipe& ends) {
    std::byte one[1];
    CHECK(ends.reader.read_some(one).value_or(0) == 1);
    return io::reactor_in_use();
}

reactor_kind in_use_on(loop& s) {
    io::pipe ends = io::pipe::make().value();
    reactor_kind served = reactor_kind::none;
    go(s, [&] {
        CHECK(io::reactor_in_use() == reactor_kind::none);  // none before the first wait
        served = wait_for_a_byte(ends);
    });
    go(s, [&] { CHECK(ends.writer.write_all("x")); });
    s.run();
    return served;
}

// For this thread only: as sandboxes do it, that call is not permitted.
bool refuse(unsigned call) {
    sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const sock_fprog filter{.len = std::size(program), .filter = program};
    return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

}  // namespace

WEFT_TEST("reactor: outside there is none") {
    CHECK(io::reactor_in_use() == reactor_kind::none);
    CHECK(io::is_available(reactor_kind::epoll));
    CHECK(io::to_string(reactor_kind::io_uring) == "io_uring");
}

WEFT_TEST("reactor: the environment says which, and otherwise it is epoll") {
    const char* const set = std::getenv("WEFT_REACTOR");
    const bool ring = set != nullptr && std::string_view(set) == "io_uring" &&
                      io::is_available(reactor_kind::io_uring);
    loop s;
    CHECK(in_use_on(s) == (ring ? reactor_kind::io_uring : reactor_kind::epoll));
}

WEFT_TEST("reactor: a name that is none aborts, whoever set it") {
    weft_test::allow_threads_in_death_tests();
    EXPECT_DEATH(
        {
            ::setenv("WEFT_REACTOR", "kqueue", 1);
            loop s;
            static_cast<void>(in_use_on(s));
        },
        "WEFT_REACTOR is neither epoll nor io_uring");
}

WEFT_TEST("reactor: an executor may be told which, whatever the environment says") {
    loop with_epoll;
    io::choose_reactor(with_epoll, reactor_kind::epoll);
    CHECK(in_use_on(with_epoll) == reactor_kind::epoll);
    loop with_ring;
    io::choose_reactor(with_ring, reactor_kind::io_uring);
    CHECK(in_use_on(with_ring) == (io::is_available(reactor_kind::io_uring) ? reactor_kind::io_uring
                                                                            : reactor_kind::epoll));
}

WEFT_TEST("reactor: where the kernel refuses io_uring, epoll serves") {
    bool refused = false;
    std::thread([&refused] {
        refused = refuse(SYS_io_uring_setup);
        if (!refused) return;
        CHECK(!io::is_available(reactor_kind::io_uring));
        CHECK(weft_test::kernel_refuses_io_uring().find("not permitted") != std::string::npos);
        loop s;
        io::choose_reactor(s, reactor_kind::io_uring);
        CHECK(in_use_on(s) == reactor_kind::epoll);
    }).join();
    if (!refused) GTEST_SKIP() << "seccomp filters are refused here";
}

namespace {

// Counts how often it is asked: so often a loop goes round.
class asked_clock final : public clock_source {
public:
    time_point now() noexcept override {
        ++asked;
        return steady_clock_source().now();
    }
    int asked = 0;
};

}  // namespace

WEFT_TEST("reactor: where the kernel refuses epoll_pwait2, a thread sleeps all the same") {
    bool refused = false;
    std::thread([&refused] {
        refused = refuse(SYS_epoll_pwait2);
        if (!refused) return;
        asked_clock clock;
        loop s({.clock = &clock});
        io::choose_reactor(s, reactor_kind::epoll);
        CHECK(in_use_on(s) == reactor_kind::epoll);
        go(s, [] { CHECK(sleep_for(20ms)); });
        s.run();
        CHECK(clock.asked < 100);
    }).join();
    if (!refused) GTEST_SKIP() << "seccomp filters are refused here";
}

// Otherwise those that want it would be skipped for a reason of our own.
WEFT_TEST("reactor: io_uring is to be had where the kernel gives it to anybody") {
    if (!weft_test::built_with_io_uring) GTEST_SKIP() << "built without liburing";
    const std::string reason = weft_test::kernel_refuses_io_uring();
    if (!reason.empty()) GTEST_SKIP() << "no io_uring here: " << reason;
    CHECK(io::is_available(reactor_kind::io_uring));
    loop s;
    io::choose_reactor(s, reactor_kind::io_uring);
    CHECK(in_use_on(s) == reactor_kind::io_uring);
}

WEFT_TEST("reactor: two loops with different ones pass bytes to each other") {
    io::pipe there = io::pipe::make().value();
    io::pipe back = io::pipe::make().value();
    const auto serve = [](reactor_kind kind, io::pipe_reader& in, io::pipe_writer& out,
                          bool first) {
        loop s;
        io::choose_reactor(s, kind);
        go(s, [&] {
            std::byte one[1]{};
            for (int i = 0; i < 200; ++i) {
                if (first) { CHECK(out.write_all(one)); }
                CHECK(in.read_some(one).value_or(0) == 1);
                if (!first) { CHECK(out.write_all(one)); }
            }
        });
        s.run();
    };
    std::thread other([&] { serve(reactor_kind::io_uring, there.reader, back.writer, false); });
    serve(reactor_kind::epoll, back.reader, there.writer, true);
    other.join();
}

WEFT_TEST("reactor: a descriptor moves from one kind to the other") {
    io::pipe ends = io::pipe::make().value();
    for (int i = 0; i < 4; ++i) {
        loop s;
        io::choose_reactor(s, i % 2 == 0 ? reactor_kind::io_uring : reactor_kind::epoll);
        go(s, [&] { static_cast<void>(wait_for_a_byte(ends)); });
        go(s, [&] { CHECK(ends.writer.write_all("x")); });
        s.run();
    }
}

// The loop goes from thread to thread, and those end: what they submitted must live on.
WEFT_TEST("reactor: a loop that is run by one thread after another keeps its registrations") {
    loop s;
    io::pipe ends = io::pipe::make().value();
    int reads = 0;
    go(s, [&] {
        std::byte one[1];
        while (ends.reader.read_some(one).value_or(0) == 1) ++reads;
    });
    for (int i = 1; i <= 5; ++i) {
        std::thread([&] { s.run_until_blocked(); }).join();
        CHECK(::write(ends.writer.native_handle(), "x", 1) == 1);
        std::thread([&] {
            while (reads < i && s.step()) {}
            while (reads < i) s.step();
        }).join();
        CHECK(reads == i);
    }
    ends.writer.close();
    s.run();
}
