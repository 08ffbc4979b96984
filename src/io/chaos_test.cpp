// chaos_test.cpp - client and server with a proxy between them that treats their bytes badly.
//
// Bounded by the count of messages. Nothing is lost, nothing comes twice, no descriptor and no
// fiber is left.
//
// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <weft/fiber/fiber.hpp>
#include <weft/io/serve.hpp>
#include <weft/io/tcp.hpp>
#include <weft/sync/latch.hpp>
#include <weft/sync/wait_group.hpp>

#include "chaos_proxy.hpp"
#include "io_support.hpp"
#include "pools.hpp"

using namespace weft;
using weft_test::chaos_proxy;
using weft_test::stress_count;

namespace {

using peer = io::connection<io::tcp_stream>;

// Messages of many lengths, each of which tells its number.
std::string message(long number) {
    std::string text = std::to_string(number) + " ";
    text.append(static_cast<std::size_t>(number * 37 % 900), static_cast<char>('a' + number % 26));
    return text + "\n";
}

// Counts how often each message came, and sends it back.
struct echo_counter {
    std::vector<std::atomic<int>> came;
    explicit echo_counter(long count) : came(static_cast<std::size_t>(count)) {}

    void operator()(peer& c) {
        while (const auto line = c.read_line()) {
            const long number = std::stol(std::string(*line));
            if (std::string(*line) + "\n" != message(number)) ADD_FAILURE() << "message " << number;
            ++came[static_cast<std::size_t>(number)];
            if (!c.write_all(std::string(*line) + "\n")) return;
        }
    }
};

struct totals {
    std::atomic<long> next = 0;
    std::atomic<long> answered = 0;
    std::atomic<long> broken = 0;
};

enum class unanswered : bool { given_up, sent_again };

// One message at a time. One whose answer does not come is counted as broken.
void client(const io::address& to, long count, totals& all, unanswered then) {
    long number = all.next++;
    while (number < count) {
        auto stream = io::tcp_stream::connect(to);
        if (!stream) continue;
        io::buffered_reader lines(*stream);
        while (number < count) {
            const std::string text = message(number);
            const bool sent = stream->write_all(text).has_value();
            const auto back =
                sent ? lines.read_until("\n") : io::result<std::string_view>(std::unexpect);
            if (!back) {
                ++all.broken;
                if (then == unanswered::given_up) number = all.next++;
                break;
            }
            if (*back != text) ADD_FAILURE() << "not what was sent: " << number;
            ++all.answered;
            number = all.next++;
        }
    }
}

// Everything is on the pool of the test; what is shared is not on its fibers' stacks.
void soak(pool& p, stack_kind kind, long count, int drop_one_in,
          unanswered then = unanswered::given_up) {
    auto listener = io::tcp_listener::bind(io::address::loopback_ipv4(0)).value();
    const auto counter = std::make_shared<echo_counter>(count);
    fiber server(p, [&] { io::serve(listener, [counter](peer& c) { (*counter)(c); }); });
    chaos_proxy proxy({listener.local_address().value(), 20, drop_one_in});
    fiber between(p, [&] { proxy.run(); });
    totals all;
    wait_group clients;
    for (int i = 0; i < 8; ++i) {
        clients.add();
        go(p, {.kind = kind}, [&] {
            const auto done = clients.guard();
            client(proxy.where(), count, all, then);
        });
    }
    clients.wait();
    between.request_stop();
    between.join();
    server.request_stop();
    server.join();
    CHECK((all.broken == 0) == (drop_one_in == 0));
    CHECK(proxy.pieces() > count);
    const long broken = all.broken;
    const bool again = then == unanswered::sent_again;
    CHECK(all.answered == (again ? count : count - broken));
    long served = 0;
    for (const std::atomic<int>& times : counter->came) {
        if (!again && times > 1) ADD_FAILURE() << "a message came twice";
        if (again && times == 0) ADD_FAILURE() << "a message never came";
        served += times;
    }
    CHECK(served >= all.answered);
    CHECK(served <= all.answered + broken);  // none more often than it was sent
}

// All clients have got an answer before any goes on, and then each writes while it reads.
void soak_at_once(pool& p, stack_kind kind, long clients, long each) {
    auto listener = io::tcp_listener::bind(io::address::loopback_ipv4(0)).value();
    const auto counter = std::make_shared<echo_counter>(clients * each);
    fiber server(p, [&] { io::serve(listener, [counter](peer& c) { (*counter)(c); }); });
    chaos_proxy proxy({listener.local_address().value(), 30, 0});
    fiber between(p, [&] { proxy.run(); });
    std::vector<io::tcp_stream> streams(static_cast<std::size_t>(clients));
    latch answered_once(clients);
    wait_group all;
    std::atomic<long> answered = 0;
    const auto writes = [&](long i) {
        const auto done = all.guard();
        io::tcp_stream& mine = streams[static_cast<std::size_t>(i)];
        for (long k = 1; k < each; ++k) CHECK(mine.write_all(message(k * clients + i)));
        CHECK(mine.shutdown_write());
    };
    const auto reads = [&](long i) {
        const auto done = all.guard();
        io::tcp_stream& mine = streams[static_cast<std::size_t>(i)];
        mine = io::tcp_stream::connect(proxy.where()).value();
        CHECK(mine.set_send_buffer(1024));  // so that who writes has to wait
        CHECK(mine.write_all(message(i)));
        io::buffered_reader lines(mine);
        for (long k = 0; k < each; ++k) {
            const auto back = lines.read_until("\n");
            if (!back || *back != message(k * clients + i))
                ADD_FAILURE() << "not what was sent: " << k * clients + i;
            else
                ++answered;
            if (k != 0) continue;
            answered_once.count_down();
            answered_once.wait();
            go(p, {.kind = kind}, [&writes, i] { writes(i); });
        }
        if (lines.read_until("\n").error() != errc::end_of_stream)
            ADD_FAILURE() << "more than was sent, or no end";
    };
    all.add(static_cast<std::size_t>(2 * clients));
    for (long i = 0; i < clients; ++i) go(p, {.kind = kind}, [&reads, i] { reads(i); });
    all.wait();
    between.request_stop();
    between.join();
    server.request_stop();
    server.join();
    CHECK(answered == clients * each);
    CHECK(proxy.most_at_once() == clients);
    for (const std::atomic<int>& times : counter->came) CHECK(times == 1);
}

template <class Soak>
void on_every_pool(Soak soak_on) {
    for (const weft_test::pool_variant& one : weft_test::pool_variants) {
        SCOPED_TRACE(one.name);
        const weft_test::no_descriptor_left descriptors;
        pool p({.workers = one.workers, .force_migrate = one.moved});
        soak_on(p, one.kind);
        p.drain();
    }
}

}  // namespace

WEFT_TEST("chaos: stress, every message comes once through a proxy that splits and stalls") {
    on_every_pool([](pool& p, stack_kind kind) { soak(p, kind, stress_count(20'000), 0); });
}

WEFT_TEST("chaos: stress, no message comes twice when connections are dropped in the middle") {
    on_every_pool([](pool& p, stack_kind kind) { soak(p, kind, stress_count(20'000), 50); });
}

// Whoever counts the first of its kind alone has had each once.
WEFT_TEST("chaos: stress, what is sent again until it is answered comes at least once") {
    on_every_pool([](pool& p, stack_kind kind) {
        soak(p, kind, stress_count(20'000), 50, unanswered::sent_again);
    });
}

WEFT_TEST("chaos: stress, sixteen connections under way at once, both ways at once") {
    on_every_pool([](pool& p, stack_kind kind) { soak_at_once(p, kind, 16, stress_count(1'500)); });
}
