// signal_set_test.cpp - signals as something that fibers wait for.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/io/signal_set.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <weft/exec/loop.hpp>
#include <weft/scope/deadline.hpp>

#include "pools.hpp"
#include "test_points.hpp"

using namespace weft;
using namespace std::chrono_literals;
using io::signal_set;

namespace {

// To this thread: TSan holds a signal back from one that sleeps in a system call of ours.
void send(int signal) { ::pthread_kill(::pthread_self(), signal); }

// What it does now: other tests of this program may have left a handler of their own.
auto handler_of(int signal) {
    struct sigaction now {};
    ::sigaction(signal, nullptr, &now);
    return now.sa_handler;
}

}  // namespace

POOL_TEST("signal_set: a signal arrives, with who sent it") {
    const auto set = std::make_unique<signal_set>(signal_set::make({SIGUSR1, SIGUSR2}).value());
    std::vector<int> got;
    int sender = 0;
    fiber f(p, options(), [&] {
        for (int i = 0; i < 3; ++i) {
            const io::signal_info info = set->next().value();
            got.push_back(info.number);
            sender = info.sender;
            if (i == 0) send(SIGUSR2);
            if (i == 1) send(SIGUSR1);
        }
    });
    send(SIGUSR1);
    f.join();
    CHECK((got == std::vector{SIGUSR1, SIGUSR2, SIGUSR1}));
    CHECK(sender == ::getpid());
}

WEFT_TEST("signal_set: two sets with the same signal both get it") {
    auto one = signal_set::make({SIGUSR1}).value();
    auto other = signal_set::make({SIGUSR1, SIGHUP}).value();
    send(SIGUSR1);
    CHECK(one.next().value().number == SIGUSR1);
    CHECK(other.next().value().number == SIGUSR1);
    one = signal_set();
    send(SIGUSR1);
    CHECK(other.next().value().number == SIGUSR1);
}

WEFT_TEST("signal_set: signals do what they did before when the last set is gone") {
    const auto before = handler_of(SIGUSR1);
    {
        const auto one = signal_set::make({SIGUSR1}).value();
        { const auto other = signal_set::make({SIGUSR1}).value(); }
        CHECK(handler_of(SIGUSR1) != before);
        send(SIGUSR1);
    }
    CHECK(handler_of(SIGUSR1) == before);
}

WEFT_TEST("signal_set: those that cannot be waited for are refused") {
    using std::errc;
    const auto first = handler_of(SIGUSR1);
    const auto second = handler_of(SIGUSR2);
    for (const int wrong : {0, -1, 65, SIGKILL, SIGSTOP, SIGSEGV, SIGBUS, SIGILL, SIGFPE, 33})
        CHECK(signal_set::make({SIGUSR1, wrong}).error() == errc::invalid_argument);
    CHECK(signal_set::make({}).error() == errc::invalid_argument);
    CHECK(handler_of(SIGUSR1) == first);
    std::vector<signal_set> many;
    for (int i = 0; i < 32; ++i) many.push_back(signal_set::make({SIGUSR1}).value());
    CHECK(signal_set::make({SIGUSR2}).error() == errc::too_many_files_open);
    CHECK(handler_of(SIGUSR2) == second);
}

POOL_TEST("signal_set: a wait is cancelled, a close is told, and no signal is lost") {
    const auto set = std::make_unique<signal_set>(signal_set::make({SIGUSR1}).value());
    std::string log;
    fiber f(p, options(), [&] {
        const auto late = with_timeout(1ms, [&] { return set->next(); });
        log += late.error() == std::errc::timed_out ? 't' : '?';
        send(SIGUSR1);
        log += set->next() ? 's' : '?';
        set->close();
        log += set->next().error() == errc::closed ? 'c' : '?';
    });
    f.join();
    CHECK(log == "tsc");
}

WEFT_TEST("signal_set: a signal that comes after a close raises no SIGPIPE") {
    const auto before = handler_of(SIGUSR1);
    auto closed = signal_set::make({SIGUSR1}).value();
    auto open = signal_set::make({SIGUSR1}).value();
    closed.close();
    send(SIGUSR1);
    CHECK(open.next().value().number == SIGUSR1);
    CHECK(closed.next().error() == errc::closed);
    open.close();
    CHECK(handler_of(SIGUSR1) != before);
    send(SIGUSR1);  // goes nowhere
}

WEFT_TEST("signal_set: what a forked child gets in a set of its own its parent does not get") {
    auto ours = signal_set::make({SIGUSR1}).value();
    const pid_t child = ::fork();
    if (child == 0) {
        auto its = signal_set::make({SIGUSR1});
        if (its) send(SIGUSR1);
        ::_exit(its && its->next() ? 7 : 1);
    }
    int status = 0;
    CHECK(::waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 7);
    send(SIGUSR1);
    CHECK(ours.next().value().sender == ::getpid());
}

WEFT_TEST("signal_set: many of one kind do not crowd out another") {
    auto set = signal_set::make({SIGUSR1, SIGUSR2}).value();
    constexpr int many = 10'000;  // more than a pipe holds
    for (int i = 0; i < many; ++i) send(SIGUSR1);
    send(SIGUSR2);
    loop s;
    go(s, [&] {
        int before = 0;
        for (;;) {
            const auto info = with_timeout(10s, [&] { return set.next(); });
            CHECK(info);
            if (!info || info->number == SIGUSR2) break;
            ++before;
        }
        CHECK(before > 1);
        CHECK(before <= many);
        send(SIGUSR1);
        const io::signal_info after = set.next().value();
        CHECK(after.number == SIGUSR1);
        CHECK(after.sender == ::getpid());
    });
    s.run();
}

WEFT_TEST("signal_set: stress of one who reads a full pipe") {
    auto set = signal_set::make({SIGUSR1, SIGUSR2}).value();
    const long rounds = weft_test::stress_count(200) / 10;
    loop s;
    for (long i = 0; i < rounds; ++i) {
        std::thread sends([&] {
            for (int j = 0; j < 6'000; ++j) send(SIGUSR1);
            send(SIGUSR2);
        });
        go(s, [&] {
            for (;;) {
                const auto info = with_timeout(60s, [&] { return set.next(); });
                CHECK(info);
                if (!info || info->number == SIGUSR2) break;
            }
        });
        s.run();
        sends.join();
    }
}

WEFT_TEST("signal_set: stress of sets that come and go while signals arrive") {
    const weft_test::with_test_points points;
    auto stays = signal_set::make({SIGUSR1}).value();
    std::atomic<bool> end = false;
    std::thread sends([&] {
        while (!end) {
            send(SIGUSR1);
            std::this_thread::yield();
        }
    });
    const long count = weft_test::stress_count(100'000);
    for (long i = 0; i < count; ++i) {
        auto one = signal_set::make({SIGUSR1}).value();
        if (i % 8 == 0) { CHECK(one.next().value().number == SIGUSR1); }
    }
    end = true;
    sends.join();
    CHECK(stays.next().value().number == SIGUSR1);
}

#if defined(WEFT_CHECKS) && WEFT_CHECKS
WEFT_TEST("signal_set: a signal that comes as soon as it is handled is not lost") {
    detail::at_test_points = [](const char* name) noexcept {
        if (std::string_view(name) == "signal_set: handled") send(SIGUSR1);
    };
    auto set = signal_set::make({SIGUSR1}).value();
    detail::at_test_points = nullptr;
    send(SIGUSR1);  // so that there is one in any case, which may be of another kind
    CHECK(set.next().value().number == SIGUSR1);
    loop s;
    bool second = false;
    go(s, [&] { second = with_timeout(10s, [&] { return set.next(); }).has_value(); });
    s.run();
    CHECK(second);
}
#endif
