// signal_storm_test.cpp - calls and waits that are interrupted all the time: nobody sees EINTR.
//
// Signals with a handler, and without SA_RESTART, are aimed at each of the threads by turns.
//
// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <weft/exec/loop.hpp>
#include <weft/exec/pool.hpp>
#include <weft/exec/post.hpp>
#include <weft/fiber/fiber.hpp>
#include <weft/io/blocking.hpp>
#include <weft/io/pipe.hpp>
#include <weft/io/process.hpp>
#include <weft/io/tcp.hpp>
#include <weft/io/udp.hpp>
#include <weft/io/unix.hpp>
#include <weft/sync/event.hpp>

#include "io_support.hpp"
#include "pools.hpp"

using namespace weft;
using namespace std::chrono_literals;
using io::address;
using io::tcp_listener;
using io::tcp_stream;

namespace {

std::atomic<long> interruptions = 0;

/// Aims signals at some threads while it lives, at most that many to each; the first has come when
/// it is made.
class storm {
public:
    storm(std::vector<pthread_t> at, long most)
        : thread_([this, at = std::move(at), most] {
              for (long i = 0; i < most && !over_; ++i) {
                  for (const pthread_t one : at) ::pthread_kill(one, SIGUSR1);
                  ::sched_yield();
              }
          }) {
        const long before = interruptions;
        while (interruptions == before) std::this_thread::yield();
    }
    storm(const storm&) = delete;
    storm& operator=(const storm&) = delete;
    ~storm() {
        over_ = true;
        thread_.join();
    }

private:
    std::atomic<bool> over_ = false;
    std::thread thread_;
};

// SIGUSR1 interrupts, and does nothing else. It stays so: one may be on its way when all is over.
void handle_quietly() {
    struct sigaction counts {};
    counts.sa_handler = [](int) { ++interruptions; };  // and no SA_RESTART
    ::sigaction(SIGUSR1, &counts, nullptr);
}

/// A plain thread that says who it is, and ends when nobody sends it signals any more.
class target {
public:
    template <class Function>
    explicit target(Function function)
        : thread_([this, function = std::move(function)] {
              id_ = ::pthread_self();
              known_ = true;
              begin_.wait(false);
              function();
              done_ = true;
              end_.wait(false);
          }) {
        while (!known_) std::this_thread::yield();
    }
    target(const target&) = delete;
    target& operator=(const target&) = delete;
    ~target() { thread_.join(); }

    [[nodiscard]] pthread_t id() const { return id_; }
    void begin() { set(begin_); }
    void wait_until_done() const {
        while (!done_) std::this_thread::yield();
    }
    void end() { set(end_); }

private:
    static void set(std::atomic<bool>& flag) {
        flag = true;
        flag.notify_all();
    }
    pthread_t id_{};
    std::atomic<bool> known_ = false;
    std::atomic<bool> begin_ = false;
    std::atomic<bool> done_ = false;
    std::atomic<bool> end_ = false;
    std::thread thread_;
};

// More than the buffers of a connection hold, so that both sides wait.
constexpr std::size_t much = 300'000;

void talk(tcp_stream& with, bool first) {
    std::vector<std::byte> block(much);
    for (int i = 0; i < 2; ++i) {
        if ((i == 0) == first)
            CHECK(with.write_all(block));
        else
            CHECK(with.read_exactly(block));
    }
}

void serve(tcp_listener& listener, long rounds) {
    for (long i = 0; i < rounds; ++i) {
        auto peer = listener.accept();
        REQUIRE(peer.has_value());
        talk(*peer, false);
    }
}

void visit(const address& where, long rounds) {
    for (long i = 0; i < rounds; ++i) {
        auto stream = tcp_stream::connect(where);
        REQUIRE(stream.has_value());
        talk(*stream, true);
    }
}

}  // namespace

POOL_TEST("io: stress, workers are interrupted all the time, and nobody sees EINTR") {
    handle_quietly();
    const long rounds = weft_test::stress_count(1'000);
    auto listener = tcp_listener::bind(address::loopback_ipv4(0)).value();
    const address where = listener.local_address().value();
    const std::string name = std::string("\0weft-storm-", 12) + std::to_string(::getpid());
    auto local = io::unix_listener::bind(address::local(name).value(), {.backlog = 0}).value();
    const io::pipe quiet_end = io::pipe::make().value();
    std::vector<pthread_t> workers;
    std::mutex lock;
    for (int i = 0; i < 200; ++i) {
        std::atomic<bool> known = false;
        post(p, [&] {
            const std::lock_guard guard(lock);
            const pthread_t me = ::pthread_self();
            if (std::ranges::find(workers, me) == workers.end()) workers.push_back(me);
            known = true;
        });
        while (!known) std::this_thread::yield();
    }
    workers.push_back(::pthread_self());
    {
        const storm signals(workers, 1'000'000);
        std::vector<fiber> all;
        all.emplace_back(p, options(), [&] { serve(listener, rounds); });
        all.emplace_back(p, options(), [&] { visit(where, rounds); });
        all.emplace_back(p, options(), [&] {
            for (long i = 0; i < rounds; ++i) CHECK(local.accept());
        });
        all.emplace_back(p, options(), [&] {
            for (long i = 0; i < rounds; ++i)
                CHECK(io::unix_stream::connect(address::local(name).value()));
        });
        all.emplace_back(p, options(), [&] {
            for (long i = 0; i < rounds; ++i) {
                CHECK(io::blocking([] { return 7; }) == 7);
                const auto ready = io::wait_readable(quiet_end.reader.native_handle(),
                                                     steady_clock_source().now() + 100us);
                CHECK(ready.error() == std::errc::timed_out);
            }
        });
        for (fiber& one : all) one.join();
    }
}

WEFT_TEST("io: stress, plain threads are interrupted all the time, and nobody sees EINTR") {
    handle_quietly();
    const long rounds = weft_test::stress_count(2'000);
    auto listener = tcp_listener::bind(address::loopback_ipv4(0)).value();
    const address where = listener.local_address().value();
    auto here = io::udp_socket::bind(address::loopback_ipv4(0)).value();
    auto there = io::udp_socket::connect(here.local_address().value()).value();
    std::atomic<long> received = 0;
    event told;
    target serves([&] { serve(listener, rounds); });
    target visits([&] { visit(where, rounds); });
    target receives([&] {
        std::byte packet[8];
        for (long i = 0; i < rounds; ++i, ++received) CHECK(here.receive(packet).value().size == 1);
        told.set();
    });
    target waits([&] {
        told.wait();
        const time_point deadline = steady_clock_source().now() + 2ms;
        CHECK(here.get_descriptor().wait_readable(deadline).error() == std::errc::timed_out);
        CHECK(steady_clock_source().now() >= deadline);
        CHECK(sleep_for(2ms));
        CHECK(steady_clock_source().now() >= deadline + 2ms);
    });
    target starts([&] {
        io::process child = io::process::spawn({"true"}).value();
        CHECK(child.wait().value().exited_with(0));
    });
    target runs([&] {  // a loop, that sleeps in its reactor
        loop s;
        auto [one, other] = weft_test::tcp_pair();
        go(s, [stream = &one, rounds] {
            std::byte some[1];
            for (long i = 0; i < rounds; ++i) CHECK(stream->read_exactly(some));
        });
        go(s, [stream = &other, rounds] {
            for (long i = 0; i < rounds; ++i) {
                CHECK(sleep_for(20us));
                CHECK(stream->write_all("x"));
            }
        });
        s.run();
    });
    target* const all[] = {&serves, &visits, &receives, &waits, &starts, &runs};
    {
        std::vector<pthread_t> threads;
        for (const target* one : all) threads.push_back(one->id());
        const storm signals(threads, 1'000'000);
        for (target* one : all) one->begin();
        for (long i = 0; i < rounds; ++i) {
            while (received < i - 50) std::this_thread::yield();  // so that none is dropped
            CHECK(there.send(weft_test::bytes("x")));
        }
        for (const target* one : all) one->wait_until_done();
    }
    for (target* one : all) one->end();
}
