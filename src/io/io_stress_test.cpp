// io_stress_test.cpp - descriptors under cancellation, closing and reuse, on several threads.
//
// Long, for all of it is done to the same few kinds of streams, by the same fibers and threads.
//
// SPDX-License-Identifier: Apache-2.0
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>

#include <weft/io/pipe.hpp>
#include <weft/io/tcp.hpp>
#include <weft/io/unix.hpp>
#include <weft/scope/deadline.hpp>
#include <weft/sync/wait_group.hpp>

#include "crowd.hpp"
#include "io_support.hpp"

using namespace weft;
using namespace std::chrono_literals;
using weft_test::byte_at;
using weft_test::stress_count;

namespace {

bool was_cancelled(std::error_code error) { return error == std::errc::operation_canceled; }

// Writes, or reads and checks, `count` bytes in pieces of changing size; goes on over
// cancellations. Says how many were wrong.
template <class Ends>
class transfer {
public:
    transfer(Ends& ends, std::size_t count) : ends_(ends), count_(count), buffer_(300) {}

    std::size_t run(bool writes, const std::function<void(const std::function<void()>&)>& scoped) {
        while (at_ < count_ && wrong_ == 0) scoped([&] { writes ? write() : read(); });
        return wrong_;
    }

private:
    [[nodiscard]] std::span<std::byte> piece() {
        const std::size_t size = std::min(1 + (at_ * 7) % buffer_.size(), count_ - at_);
        return std::span(buffer_).first(size);
    }
    void write() {
        const auto bytes = piece();
        for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = byte_at(at_ + i);
        note(ends_.writer.write_some(bytes));
    }
    void read() {
        const auto bytes = piece();
        const auto got = ends_.reader.read_some(bytes);
        for (std::size_t i = 0; got && i < *got; ++i) wrong_ += bytes[i] != byte_at(at_ + i);
        note(got);
    }
    void note(const io::result<std::size_t>& moved) {
        if (moved && *moved != 0)
            at_ += *moved;
        else if (moved || !was_cancelled(moved.error()))
            ++wrong_;
    }

    Ends& ends_;
    const std::size_t count_;
    std::vector<std::byte> buffer_;
    std::size_t at_ = 0;
    std::size_t wrong_ = 0;
};

// Calls cancel_one() from a thread of its own while it lives.
class cancelling {
public:
    explicit cancelling(weft_test::scope_slots& slots)
        : thread_([this, &slots] {
              while (!stop_) {
                  slots.cancel_one();
                  std::this_thread::yield();
              }
          }) {}
    cancelling(const cancelling&) = delete;
    cancelling& operator=(const cancelling&) = delete;
    ~cancelling() {
        stop_ = true;
        thread_.join();
    }

private:
    std::atomic<bool> stop_ = false;
    std::thread thread_;
};

struct tcp_ends {
    static io::result<tcp_ends> make() {
        auto [writer, reader] = weft_test::tcp_pair();
        return tcp_ends{std::move(writer), std::move(reader)};
    }
    io::tcp_stream writer;
    io::tcp_stream reader;
};

// Fibers on loops and pools, and plain threads: 0 to 1, 2 to 3, 4 to 5; 2 and 5 are threads.
template <class Ends>
void cancel_at_every_point(const weft_test::gathering& crowd, std::size_t count) {
    const weft_test::with_test_points points;
    const weft_test::no_descriptor_left left;
    std::vector<Ends> ends;
    std::vector<std::unique_ptr<transfer<Ends>>> all;
    for (int i = 0; i < 3; ++i) ends.push_back(Ends::make().value());
    for (std::size_t i = 0; i < 6; ++i)
        all.push_back(std::make_unique<transfer<Ends>>(ends[i / 2], count));
    std::atomic<std::size_t> wrong = 0;
    weft_test::scope_slots slots(6);
    const cancelling beside(slots);
    crowd(6, [&](int i) {
        const auto scoped = [&, i](const std::function<void()>& call) {
            if (i % 3 == 2) return call();
            const auto scope = slots.enter(i);
            call();
        };
        wrong += all[static_cast<std::size_t>(i)]->run(i % 2 == 0, scoped);
    });
    CHECK(wrong == 0);
}

}  // namespace

CROWD_TEST("io: stress, calls are cancelled at every point, and no byte is lost or doubled") {
    cancel_at_every_point<io::pipe>(gather(), static_cast<std::size_t>(rounds(20'000'000)));
}

// Reads that give less than there is room for are not tried before they wait, and on a loop the
// reactor makes them.
CROWD_TEST("tcp: stress, calls are cancelled at every point, and no byte is lost or doubled") {
    cancel_at_every_point<tcp_ends>(gather(), static_cast<std::size_t>(rounds(10'000'000)));
}

namespace {

// Who came, by their numbers, which each says first.
class roll {
public:
    explicit roll(std::size_t count) : came_(count) {}

    /// One that leaves without a word was cancelled while it connected.
    void take(io::tcp_stream& from) {
        const auto number = std::make_unique<std::uint32_t>();
        const auto bytes = std::as_writable_bytes(std::span(number.get(), 1));
        if (!from.read_exactly(bytes)) return;
        ++came_[*number];
        CHECK(from.write_all(bytes));
    }
    [[nodiscard]] bool each_came_once() const {
        return std::ranges::all_of(came_, [](const std::atomic<int>& times) { return times == 1; });
    }

private:
    std::vector<std::atomic<int>> came_;
};

io::tcp_stream connect_at_last(const io::address& where, unsigned seed) {
    for (;; ++seed)
        if (auto made =
                with_timeout((5 + seed % 60) * 1us, [&] { return io::tcp_stream::connect(where); }))
            return std::move(*made);
}

void say_number(const io::address& where, std::uint32_t number) {
    auto stream = connect_at_last(where, number);
    const auto back = std::make_unique<std::uint32_t>(number);
    CHECK(stream.write_all(std::as_bytes(std::span(back.get(), 1))));
    CHECK(stream.read_exactly(std::as_writable_bytes(std::span(back.get(), 1))));
    CHECK(*back == number);
}

void cancel_all_the_time(pool& p, stack_kind kind, std::uint32_t count) {
    auto listener = io::tcp_listener::bind(io::address::loopback_ipv4(0)).value();
    const io::address where = listener.local_address().value();
    roll all(count);
    std::atomic<std::uint32_t> next = 0;
    wait_group clients;
    fiber server(p, {.kind = kind}, [&] {
        for (unsigned i = 0;; ++i) {
            auto peer = with_timeout((10 + i % 50) * 1us, [&] { return listener.accept(); });
            if (peer)
                go(p, {.kind = kind},
                   [&all, stream = std::move(*peer)]() mutable { all.take(stream); });
            else if (peer.error() != std::errc::timed_out)
                return;
        }
    });
    for (int lane = 0; lane < 4; ++lane) {
        clients.add();
        go(p, {.kind = kind}, [&] {
            const auto done = clients.guard();
            for (std::uint32_t mine = 0; (mine = next++) < count;) say_number(where, mine);
        });
    }
    clients.wait();
    listener.close();
    server.join();
    p.drain();
    CHECK(all.each_came_once());
}

}  // namespace

WEFT_TEST("tcp: stress, accept and connect are cancelled all the time, and each comes once") {
    const weft_test::with_test_points points;
    for (const weft_test::pool_variant& one : weft_test::pool_variants) {
        SCOPED_TRACE(one.name);
        const weft_test::no_descriptor_left left;
        pool p({.workers = one.workers, .force_migrate = one.moved});
        const long count = stress_count(one.kind == stack_kind::thread ? 2'000 : 10'000);
        cancel_all_the_time(p, one.kind, static_cast<std::uint32_t>(count));
    }
}

POOL_TEST("io: stress, closed by a third while one reads and one writes") {
    const weft_test::with_test_points points;
    std::atomic<int> wrong = 0;
    const long rounds = stress_count(kind == stack_kind::thread ? 5'000 : 25'000);
    for (long round = 0; round < rounds; ++round) {
        auto pair = std::make_shared<std::pair<io::unix_stream, io::unix_stream>>(
            io::unix_stream::pair().value());
        const auto much = std::make_shared<std::vector<std::byte>>(300'000);
        const auto fits = [](std::error_code error) { return error == errc::closed; };
        spawn([=, &wrong] {
            wrong += !fits(pair->first.read_some(std::span(*much).first(1)).error());
        });
        spawn([=, &wrong] { wrong += !fits(pair->first.write_all(*much).error()); });
        spawn([=] {
            for (long i = 0; i < round % 5; ++i) yield();
            pair->first.close();
        });
        if (round % 16 == 0) p.drain();
    }
    p.drain();
    CHECK(wrong == 0);
}

// Numbers are used again at once: each reader must see the byte of its own pipe, or that it was
// closed.
POOL_TEST("io: stress, a number that is used again wakes nobody else") {
    const weft_test::with_test_points points;
    std::atomic<int> wrong = 0;
    const long rounds = stress_count(kind == stack_kind::thread ? 5'000 : 50'000);
    for (int lane = 0; lane < 4; ++lane)
        spawn([=, this, &wrong] {
            for (long round = 0; round < rounds; ++round) {
                const auto mine = static_cast<std::byte>(lane * 64 + round % 64);
                auto ends = std::make_shared<io::pipe>(io::pipe::make().value());
                const auto done = std::make_shared<wait_group>();
                done->add();
                spawn([=, &wrong] {
                    const auto guard = done->guard();
                    const auto byte = std::make_unique<std::byte>();
                    const auto got = ends->reader.read_some(std::span(byte.get(), 1));
                    if (got ? *byte != mine : got.error() != errc::closed) ++wrong;
                });
                if (round % 3 != 0) yield();
                if (round % 2 == 0)
                    ends->reader.close();
                else if (!ends->writer.write_all(std::span(&mine, 1)))
                    ++wrong;
                done->wait();
            }
        });
    p.drain();
    CHECK(wrong == 0);
}

POOL_TEST("io: stress, deadlines and bytes that come at the same moment") {
    const weft_test::with_test_points points;
    io::pipe ends = io::pipe::make().value();
    const long count = stress_count(kind == stack_kind::thread ? 5'000 : 50'000);
    std::atomic<long> read = 0;
    spawn([&] {
        while (read < count) {
            const auto byte = std::make_unique<std::byte[]>(1);
            const auto got =
                with_timeout(20us, [&] { return ends.reader.read_some(std::span(byte.get(), 1)); });
            if (got) {
                CHECK(byte[0] == byte_at(static_cast<std::size_t>(read)));
                ++read;
            } else {
                CHECK(got.error() == std::errc::timed_out);
            }
        }
    });
    spawn([&] {
        for (long i = 0; i < count; ++i) {
            const std::byte one = byte_at(static_cast<std::size_t>(i));
            CHECK(ends.writer.write_all(std::span(&one, 1)));
            if (i % 3 == 0) sleep_for(15us);
        }
    });
    p.drain();
    CHECK(read == count);
}

WEFT_TEST("io: stress, connections come and go, some by a reset, and none is left") {
    for (unsigned workers : {1U, 2U, 8U}) {
        const weft_test::no_descriptor_left left;
        pool p({.workers = workers});
        auto listener = io::tcp_listener::bind(io::address::loopback_ipv4(0)).value();
        const io::address where = listener.local_address().value();
        const long count = stress_count(50'000);
        fiber server(p, [&] {
            while (auto peer = listener.accept())
                go([stream = std::move(*peer)]() mutable {
                    std::byte buffer[256];
                    while (auto got = stream.read_some(buffer)) {
                        if (*got == 0 || !stream.write_all(std::span(buffer).first(*got))) break;
                    }
                });
        });
        std::atomic<long> right = 0;
        wait_group clients;
        for (int lane = 0; lane < 4; ++lane) {
            clients.add();
            go(p, [&, lane] {
                const auto done = clients.guard();
                for (long i = 0; i < count / 4; ++i) {
                    auto stream = io::tcp_stream::connect(where).value();
                    const std::string text = "message " + std::to_string(i);
                    CHECK(stream.write_all(text));
                    std::string back(text.size(), ' ');
                    CHECK(stream.read_exactly(std::as_writable_bytes(std::span(back))));
                    right += back == text;
                    CHECK(stream.set_reset_on_close((i + lane) % 2 == 0));
                }
            });
        }
        clients.wait();
        CHECK(right == count / 4 * 4);
        listener.close();
        server.join();
        p.drain();
    }
}

WEFT_TEST("io: stress, thousands of connections that mostly wait") {
    const weft_test::no_descriptor_left left;
    pool p({.workers = 2});
    auto listener = io::tcp_listener::bind(io::address::loopback_ipv4(0)).value();
    // Both ends are here: twice as many descriptors.
    const auto count = static_cast<std::size_t>(std::min(stress_count(100'000), 8'000L));
    std::vector<io::tcp_stream> clients(count);
    std::atomic<std::size_t> echoed = 0;
    fiber server(p, [&] {
        while (auto peer = listener.accept())
            go([&echoed, stream = std::move(*peer)]() mutable {
                while (stream.wait_readable()) {  // holds no buffer meanwhile
                    std::byte one[1];
                    const auto got = stream.read_some(one);
                    if (!got || *got == 0) return;
                    ++echoed;  // before the client can know
                    if (!stream.write_all(one)) return;
                }
            });
    });
    fiber client(p, [&] {
        const io::address where = listener.local_address().value();
        for (io::tcp_stream& one : clients) one = io::tcp_stream::connect(where).value();
        for (std::size_t i = 0; i < count; ++i) {
            io::tcp_stream& one = clients[(i * 7919) % count];
            CHECK(one.write_all("x"));
            std::byte back[1];
            CHECK(one.read_exactly(back));
        }
    });
    client.join();
    CHECK(echoed == count);
    clients.clear();
    listener.close();
    server.join();
    p.drain();
}

namespace {

// One who always has something to read must not keep the others waiting: the other fiber's turns
// come while it reads.
void read_what_is_always_ready(executor& where, const std::function<void()>& run) {
    io::pipe busy = io::pipe::make().value();
    io::pipe rare = io::pipe::make().value();
    const long count = stress_count(5'000'000);
    std::atomic<bool> stop = false;
    std::atomic<long> reads = 0;
    std::atomic<long> turns = 0;
    go(where, [&] {  // writes and reads without ever having to wait
        std::byte one[1]{};
        while (!stop) {
            CHECK(busy.writer.write_all(one));
            CHECK(busy.reader.read_some(one));
            ++reads;
        }
    });
    go(where, [&] {
        std::byte one[1];
        while (rare.reader.read_some(one).value_or(0) != 0) ++turns;
    });
    go(where, [&] {
        while (reads < count || turns < 10) {
            CHECK(rare.writer.write_all("x"));
            yield();
        }
        stop = true;
        rare.writer.close();
    });
    run();
    CHECK(turns >= 10);
}

}  // namespace

WEFT_TEST("io: stress, a descriptor that is always ready starves nobody on a loop") {
    loop s;
    read_what_is_always_ready(s, [&] { s.run(); });
}

WEFT_TEST("io: stress, a descriptor that is always ready starves nobody on a pool") {
    for (unsigned workers : {1U, 2U}) {
        pool p({.workers = workers});
        read_what_is_always_ready(p, [&] { p.drain(); });
    }
}

namespace {

// How much memory this process has written to, in bytes: not what it runs or maps of files.
std::size_t resident() {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);)
        if (line.starts_with("RssAnon:")) return std::stoul(line.substr(8)) * 1024;
    return 0;
}

bool one_waits_to_write(const pool& where) {
    bool found = false;
    where.describe(
        [&](std::string_view line) { found = found || line.contains("waits to write"); });
    return found;
}

}  // namespace

// The reader begins when the writer stands still, or has written everything, which is more than
// what may be under way.
WEFT_TEST("io: stress, a slow reader holds the writer back, and nothing is kept in between") {
    pool p({.workers = 2});
    auto [here, there] = weft_test::tcp_pair();
    CHECK(here.set_send_buffer(32768));
    CHECK(there.set_receive_buffer(32768));
    const auto count =
        static_cast<std::size_t>(std::max(stress_count(10'000'000), 200'000L)) / 64 * 64;
    constexpr std::size_t most_ahead = (512 << 10) / sizeof(std::uint64_t);
    std::atomic<std::size_t> written = 0;
    std::size_t most = 0;
    const std::size_t memory_before = resident();
    std::size_t memory = 0;
    fiber writer(p, [&, stream = &here] {
        for (std::size_t i = 0; i < count; ++i) {
            const std::uint64_t number = i;
            CHECK(stream->write_all(std::as_bytes(std::span(&number, 1))));
            written = i;
        }
        CHECK(stream->shutdown_write());
    });
    fiber reader(p, [&, stream = &there] {
        while (written < count - 1 && !one_waits_to_write(p)) yield();
        memory = resident();
        std::array<std::uint64_t, 64> numbers;
        for (std::size_t i = 0; stream->read_exactly(std::as_writable_bytes(std::span(numbers)));) {
            if (written > i) most = std::max(most, written - i);
            for (const std::uint64_t number : numbers) REQUIRE(number == i++);
            if (i % (1 << 17) == 0) memory = std::max(memory, resident());
            if (i % 1024 == 0) yield();
        }
    });
    writer.join();
    reader.join();
    CHECK(written == count - 1);
    CHECK(most < most_ahead);
    if (!WEFT_TSAN && !WEFT_ASAN) CHECK(memory < memory_before + (1 << 20));
}

WEFT_TEST("io: stress, signals all the time, and nobody sees EINTR") {
    struct sigaction quiet {};
    quiet.sa_handler = [](int) {};  // and no SA_RESTART
    struct sigaction before;
    ::sigaction(SIGALRM, &quiet, &before);
    const itimerval often{.it_interval = {0, 1000}, .it_value = {0, 1000}};
    ::setitimer(ITIMER_REAL, &often, nullptr);
    {
        pool p({.workers = 2});
        auto [here, there] = weft_test::tcp_pair();
        const long count = stress_count(1'000'000);
        const auto play = [count](io::tcp_stream& stream, bool first) {
            std::byte one[1]{};
            for (long i = 0; i < count; ++i) {
                if (first) { CHECK(stream.write_all(one)); }
                CHECK(stream.read_exactly(one));
                if (!first) { CHECK(stream.write_all(one)); }
            }
        };
        fiber a(p, [&, stream = &here] { play(*stream, true); });
        std::thread b([&, stream = &there] { play(*stream, false); });
        a.join();
        b.join();
    }
    const itimerval never{};
    ::setitimer(ITIMER_REAL, &never, nullptr);
    ::sigaction(SIGALRM, &before, nullptr);
}
