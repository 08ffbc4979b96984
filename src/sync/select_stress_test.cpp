// select_stress_test.cpp - selects that face each other, from fibers of two loops and plain
// threads.
//
// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <atomic>
#include <memory>
#include <thread>

#include <weft/fiber/cancel.hpp>
#include <weft/sync/select.hpp>

#include "crowd.hpp"

using namespace weft;
using namespace std::chrono_literals;
using weft_test::gathering;
using weft_test::with_test_points;

namespace {

long rounds_for(stack_kind kind, long full) {
    return weft_test::stress_count(kind == stack_kind::thread ? full / 10 : full);
}

struct tally {
    std::atomic<long> sent = 0;
    std::atomic<long> received = 0;
    std::atomic<long> sum = 0;
};

// Each case sends or receives; half of the crowd names the channels in the opposite order.
template <class T, class Make>
void face_each_other(const gathering& gather, std::size_t capacity, long rounds, Make make_item) {
    channel<T> a(capacity);
    channel<T> b(capacity);
    tally all;
    std::atomic<int> busy = 6;
    const auto on_sent = [&](long n) {
        return [&all, n](auto result) {
            if (!result) return;
            ++all.sent;
            all.sum += n;
        };
    };
    const auto on_got = [&](auto&& result) {
        if (!result) return;
        ++all.received;
        if constexpr (std::is_same_v<T, long>)
            all.sum -= *result;
        else
            all.sum -= **result;
    };
    gather(6, [&](int who) {
        for (long i = 0; i < rounds; ++i) {
            T item = make_item(i + 1);
            channel<T>& mine = who % 2 == 0 ? a : b;
            channel<T>& other = who % 2 == 0 ? b : a;
            const auto taken = who < 4 ? select(on_send(mine, std::move(item), on_sent(i + 1)),
                                                on_receive(other, on_got))
                                       : select(on_receive(mine, on_got), on_timeout(1us),
                                                on_receive(other, on_got),
                                                on_send(mine, std::move(item), on_sent(i + 1)));
            ASSERT_TRUE(taken);
        }
        if (busy.fetch_sub(1) == 1) {
            a.close();
            b.close();
        }
        bool open = true;  // somebody may still wait for a partner
        const auto drain = [&](auto&& result) {
            open = open && result.has_value();
            on_got(result);
        };
        while (open) ASSERT_TRUE(select(on_receive(a, drain), on_receive(b, drain)));
    });
    for (channel<T>* one : {&a, &b})
        for (auto left = one->try_receive(); left; left = one->try_receive()) on_got(left);
    CHECK(all.sent == all.received);
    CHECK(all.sum == 0);
}

void make_pairs(const gathering& gather, long rounds) {
    const with_test_points points;
    channel<long> there;
    channel<std::unique_ptr<long>> back;
    std::array<std::atomic<long>, 2> sent{};
    std::array<std::atomic<long>, 2> received{};
    gather(3, [&](int who) {  // 0 is a fiber, 2 a plain thread
        if (who == 1) return;
        for (long i = 0; i < rounds; ++i) {
            auto item = std::make_unique<long>(i);
            if (who == 0)
                ASSERT_TRUE(select(on_send(there, i, [&](auto) { ++sent[0]; }),
                                   on_receive(back, [&, i](auto&& n) {
                                       ASSERT_EQ(**n, i);
                                       ++received[0];
                                   })));
            else
                ASSERT_TRUE(select(on_receive(there,
                                              [&, i](auto n) {
                                                  ASSERT_EQ(*n, i);
                                                  ++received[1];
                                              }),
                                   on_send(back, std::move(item), [&](auto) { ++sent[1]; })));
        }
    });
    CHECK(sent[0] == received[1]);
    CHECK(sent[1] == received[0]);
    CHECK(sent[0] + sent[1] == rounds);
}

void face_with_each_capacity(const gathering& gather, long rounds) {
    const with_test_points points;
    for (const std::size_t capacity : {0U, 1U}) {
        face_each_other<long>(gather, capacity, rounds, [](long n) { return n; });
        face_each_other<std::unique_ptr<long>>(gather, capacity, rounds,
                                               [](long n) { return std::make_unique<long>(n); });
    }
}

}  // namespace

CROWD_TEST("select stress: facing each other, every send has its receive") {
    face_with_each_capacity(gather(), rounds_for(kind, 100'000));
}

CROWD_TEST("select stress: two that face each other over and over make one pair each time") {
    make_pairs(gather(), rounds_for(kind, 300'000));
}

MATRIX_TEST("select stress: cancelled while an item is handed over, it is not lost") {
    const with_test_points points;
    const long rounds = rounds_for(kind, 100'000);
    loop home;
    home.add_work(1);
    std::thread runs([&] { home.run(); });
    for (long round = 0; round < rounds; ++round) {
        channel<std::unique_ptr<long>> a(static_cast<std::size_t>(round % 2));
        channel<long> b;
        std::atomic<int> taken = 0;
        fiber selects(home, {.kind = kind}, [&] {
            static_cast<void>(select(on_receive(b, [](auto) {}),
                                     on_receive(a, [&](auto&& item) { taken += item ? 1 : 0; })));
        });
        std::thread stops([&] { selects.request_stop(); });
        auto item = std::make_unique<long>(1);
        const bool sent = a.try_send(std::move(item)).has_value();
        stops.join();
        selects.join();
        if (a.try_receive()) ++taken;
        ASSERT_EQ(taken, sent ? 1 : 0);
        ASSERT_EQ(item == nullptr, sent);
    }
    home.add_work(-1);
    runs.join();
}
