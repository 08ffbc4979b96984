// channel_stress_test.cpp - channels between fibers of two loops and plain threads: nothing is
// lost, nothing comes twice.
//
// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include <weft/exec/pool.hpp>
#include <weft/fiber/cancel.hpp>
#include <weft/fiber/go.hpp>
#include <weft/sync/channel.hpp>

#include "crowd.hpp"

using namespace weft;
using namespace std::chrono_literals;
using weft_test::gathering;
using weft_test::with_test_points;
using weft_test::yield_or_pass;

namespace {

// An item that is not plain, and knows its number.
using boxed = std::unique_ptr<long>;
long number(const boxed& item) { return *item; }
long number(long item) { return item; }
void make(boxed& item, long n) { item = std::make_unique<long>(n); }
void make(long& item, long n) { item = n; }

long rounds_for(stack_kind kind, long full) {
    return weft_test::stress_count(kind == stack_kind::thread ? full / 10 : full);
}

// Half of the crowd sends 0 to count - 1, in whatever way, the other half receives until closed.
template <class T>
void conserve(const gathering& gather, channel<T>& c, long count) {
    std::atomic<long> next = 0;
    std::atomic<int> senders = 3;
    std::vector<std::atomic<int>> seen(static_cast<std::size_t>(count));
    gather(6, [&](int who) {
        if (who % 2 == 0) {
            for (long n; (n = next.fetch_add(1)) < count;) {
                T item;
                make(item, n);
                for (long tries = n;; ++tries) {
                    if (tries % 3 == 0 ? c.send(std::move(item)).has_value()
                        : tries % 3 == 1
                            ? c.try_send(std::move(item)).has_value()
                            : c.send_for(std::move(item), std::chrono::microseconds(n % 3))
                                  .has_value())
                        break;
                    ASSERT_EQ(number(item), n) << "a value that was not sent is gone";
                }
            }
            if (senders.fetch_sub(1) == 1) c.close();
        } else {
            for (long tries = who;; ++tries) {
                auto item = tries % 3 == 0   ? c.receive()
                            : tries % 3 == 1 ? c.try_receive()
                                             : c.receive_for(std::chrono::microseconds(tries % 3));
                if (item)
                    ++seen[static_cast<std::size_t>(number(*item))];
                else if (item.error() == errc::closed)
                    break;
            }
        }
    });
    for (const auto& times : seen) ASSERT_EQ(times, 1);
}

template <class T>
void conserve_all(const gathering& gather, long count) {
    const with_test_points points;
    for (const std::size_t capacity : {0U, 1U, 7U}) {
        channel<T> c(capacity);
        conserve(gather, c, count);
    }
    channel<T> c(unbounded);
    conserve(gather, c, count);
}

void close_meanwhile(const gathering& gather, long rounds) {
    const with_test_points points;
    for (long round = 0; round < rounds; ++round) {
        channel<boxed> c(static_cast<std::size_t>(round % 3));
        std::atomic<long> sent = 0;
        std::atomic<long> received = 0;
        gather(5, [&](int who) {
            if (who == 4) {
                for (long i = 0; i < round % 7; ++i) yield_or_pass();
                c.close();
            } else if (who % 2 == 0) {
                for (long i = 1;; ++i) {
                    auto item = std::make_unique<long>(i);
                    if (!c.send(std::move(item))) {
                        CHECK(item != nullptr);
                        break;
                    }
                    sent += i;
                    if (i == 20) break;
                }
            } else {
                for (auto& item : c) received += *item;
                CHECK(c.last_error() == errc::closed);
            }
        });
        ASSERT_EQ(sent, received);
        ASSERT_EQ(c.size(), 0U);
    }
}

void send_and_close(const gathering& gather, long rounds) {
    const with_test_points points;
    for (long round = 0; round < rounds; ++round) {
        channel<boxed> c(8);
        std::atomic<int> senders = 4;
        std::atomic<int> received = 0;
        gather(6, [&](int who) {
            if (who < 4) {
                CHECK(c.send(std::make_unique<long>(who)));
                if (senders.fetch_sub(1) == 1) c.close();
            } else {
                for (auto& item : c) received += item != nullptr ? 1 : 0;
            }
        });
        ASSERT_EQ(received, 4);
    }
}

void destroy_at_once(const gathering& gather, long rounds) {
    const with_test_points points;
    std::atomic<channel<boxed>*> now = nullptr;
    std::atomic<bool> end = false;
    std::atomic<long> done = 0;
    gather(2, [&](int who) {
        if (who == 0) {
            for (long round = 0; round < rounds; ++round) {
                auto mine = std::make_unique<channel<boxed>>(static_cast<std::size_t>(round % 2));
                now = mine.get();
                CHECK(**mine->receive() == round);
                mine.reset();
                while (done.load() <= round) yield_or_pass();
            }
            end = true;
        } else {
            for (long round = 0; !end;)
                if (channel<boxed>* const one = now.exchange(nullptr)) {
                    CHECK(one->send(std::make_unique<long>(round++)));
                    done = round;
                } else {
                    yield_or_pass();
                }
        }
    });
}

void time_out_meanwhile(const gathering& gather, long rounds) {
    const with_test_points points;
    channel<long> first;
    channel<long> second;
    long received = 0;
    long sent = 0;
    gather(2, [&](int who) {
        if (who == 0) {
            for (long i = 0; i < rounds; ++i) {
                if (first.receive_for(std::chrono::microseconds(1 + i % 3))) ++received;
                ASSERT_EQ(second.receive(), i) << "woken by the first one's item";
            }
        } else {
            for (long i = 0; i < rounds; ++i) {
                if (first.send_for(i, std::chrono::microseconds(1 + i % 2))) ++sent;
                ASSERT_TRUE(second.send(i));
            }
        }
    });
    CHECK(received == sent);
}

}  // namespace

CROWD_TEST("channel stress: everything sent is received once, plain items") {
    conserve_all<long>(gather(), rounds_for(kind, 100'000));
}

CROWD_TEST("channel stress: everything sent is received once, items that are moved") {
    conserve_all<boxed>(gather(), rounds_for(kind, 100'000));
}

CROWD_TEST("channel stress: close while others send and receive conserves every item") {
    close_meanwhile(gather(), rounds_for(kind, 50'000));
}

CROWD_TEST("channel stress: four that send and then close lose nothing") {
    send_and_close(gather(), rounds_for(kind, 50'000));
}

CROWD_TEST("channel stress: whoever receives destroys the channel at once") {
    destroy_at_once(gather(), rounds_for(kind, 200'000));
}

CROWD_TEST("channel stress: a timeout close to a send, then another channel: one outcome each") {
    time_out_meanwhile(gather(), rounds_for(kind, 100'000));
}

MATRIX_TEST("channel stress: an item handed to somebody who is cancelled is not lost") {
    const with_test_points points;
    const long rounds = rounds_for(kind, 100'000);
    loop home;
    home.add_work(1);
    std::thread runs([&] { home.run(); });
    for (long round = 0; round < rounds; ++round) {
        channel<boxed> c(static_cast<std::size_t>(round % 2));
        std::atomic<int> taken = 0;
        fiber receiver(home, {.kind = kind}, [&] {
            if (const auto item = c.receive()) ++taken;
        });
        fiber sender(home, {.kind = kind}, [&] {
            auto item = std::make_unique<long>(1);
            CHECK(c.send(std::move(item)).has_value() == (item == nullptr));
            if (item != nullptr) taken += 10;
        });
        if (round % 3 != 0) receiver.request_stop();
        if (round % 5 == 0) sender.request_stop();
        for (; taken == 0; std::this_thread::yield())
            if (c.try_receive()) taken += 10;
        receiver.request_stop();
        sender.request_stop();
        receiver.join();
        sender.join();
        if (c.try_receive()) taken += 10;
        ASSERT_TRUE(taken == 1 || taken == 10) << taken;
    }
    home.add_work(-1);
    runs.join();
}

WEFT_TEST("channel stress: from hand to hand on one worker, while another thread cancels") {
    const with_test_points points;
    const long count = weft_test::stress_count(100'000);
    weft_test::scope_slots scopes(2);
    channel<long> c;
    std::atomic<bool> over = false;
    long expected = 0;
    pool p({.workers = 1});
    go(p, [&] {
        for (long n = 0; n < count; ++n)
            for (bool sent = false; !sent;) {
                const auto scope = scopes.enter(0);
                sent = c.send(n).has_value();
            }
        c.close();
    });
    go(p, [&] {
        for (;;) {
            const auto scope = scopes.enter(1);
            const auto item = c.receive();
            if (item)
                EXPECT_EQ(*item, expected++);
            else if (item.error() == errc::closed)
                break;
        }
        over = true;
    });
    for (; !over; std::this_thread::yield()) scopes.cancel_one();
    p.drain();
    CHECK(expected == count);
}
