// channel_types_test.cpp - items whose moves throw, wait, or come back to the channel.
//
// SPDX-License-Identifier: Apache-2.0
#include <functional>
#include <string>
#include <vector>

#include <weft/sync/channel.hpp>
#include <weft/sync/select.hpp>

#include "crowd.hpp"

using namespace weft;
using weft_test::yield_or_pass;

namespace {

// Throws at the move whose number is `fuse`; counts how many have not been moved from.
struct fragile {
    explicit fragile(int n) : value(n) { ++alive; }
    fragile(fragile&& other) : value(light(other)) { other.value = 0; }
    fragile& operator=(fragile&&) = delete;
    ~fragile() {
        if (value != 0) --alive;
    }
    static int light(const fragile& other) {
        if (fuse > 0 && --fuse == 0) throw 99;
        return other.value;
    }
    int value;
    static inline int alive = 0;
    static inline int fuse = 0;  // 0: never
};

// What waits in the middle of its move and in its destructor, as long as it holds something.
struct dreamy {
    explicit dreamy(int n) : value(n) {}
    dreamy(dreamy&& other) noexcept : value(other.value) {
        yield_or_pass();
        if (on_move) on_move();
        other.value = 0;
    }
    dreamy& operator=(dreamy&&) = delete;
    ~dreamy() {
        if (value != 0) yield_or_pass();
    }
    int value;
    static inline std::function<void()> on_move;
};

// Sends 1 to 3 and receives them; whoever's move throws tries again.
void send_all(channel<fragile>& c) {
    for (int i = 1; i <= 3; ++i) {
        fragile item(i);
        for (;;) try {
                if (!c.send(std::move(item))) FAIL() << "closed";
                break;
            } catch (int) { EXPECT_EQ(item.value, i) << "the item did not stay"; }
    }
}
void receive_all(channel<fragile>& c, std::vector<int>& got) {
    while (got.size() < 3) try {
            got.push_back(c.receive()->value);
        } catch (int) {}
}

}  // namespace

MATRIX_TEST(
    "channel items: a move that throws, whichever it is, loses nothing and changes no order") {
    for (const bool receiver_first : {false, true})
        for (const std::size_t capacity : {0U, 1U, 2U, 100U})
            for (int i = 1; i <= 12; ++i) {
                channel<fragile> c(capacity);
                std::vector<int> got;
                fragile::fuse = i;
                if (receiver_first) spawn([&] { receive_all(c, got); });
                spawn([&] { send_all(c); });
                if (!receiver_first) spawn([&] { receive_all(c, got); });
                run();
                fragile::fuse = 0;
                CHECK((got == std::vector{1, 2, 3}));
                CHECK(c.size() == 0);
                CHECK(fragile::alive == 0);
            }
}

MATRIX_TEST("channel items: a move that throws inside select loses nothing") {
    for (const bool receiver_first : {false, true})
        for (const std::size_t capacity : {0U, 1U})
            for (int i = 1; i <= 12; ++i) {
                channel<fragile> a(capacity);
                channel<fragile> never;
                std::vector<int> got;
                const auto sends = [&] {
                    for (int n = 1; n <= 3; ++n) {
                        fragile item(n);
                        fragile other(7);
                        while (item.value != 0) try {
                                CHECK(select(on_send(a, std::move(item), [](auto) {}),
                                             on_send(never, std::move(other), [](auto) {})));
                            } catch (int) {}
                        CHECK(other.value == 7);
                    }
                };
                const auto receives = [&] {
                    while (got.size() < 3) try {
                            CHECK(select(on_receive(a, [&](auto&& n) { got.push_back(n->value); }),
                                         on_send(never, fragile(8), [](auto) {})));
                        } catch (int) {}
                };
                fragile::fuse = i;
                if (receiver_first) spawn(receives);
                spawn(sends);
                if (!receiver_first) spawn(receives);
                run();
                fragile::fuse = 0;
                CHECK((got == std::vector{1, 2, 3}));
                CHECK(fragile::alive == 0);
            }
}

MATRIX_TEST("channel items: a put-back item goes to somebody who waits") {
    channel<fragile> c(1);
    std::vector<int> got;
    bool threw = false;
    CHECK(c.try_send(fragile(5)));
    fragile::fuse = 1;
    spawn([&] {
        try {
            static_cast<void>(c.receive());
        } catch (int) { threw = true; }
    });
    spawn([&] { got.push_back(c.receive()->value); });
    run();
    CHECK(threw);
    CHECK((got == std::vector{5}));
}

MATRIX_TEST("channel items: a closed channel waits for an item that may yet come back") {
    channel<dreamy> c(2);
    std::string log;
    spawn([&] {
        CHECK(c.send(dreamy(1)));
        log += 's';
    });
    s.step();  // it waits in the middle of its move
    c.close();
    CHECK(c.try_receive().error() == std::errc::operation_would_block);
    spawn([&] {
        CHECK(c.receive()->value == 1);
        CHECK(c.receive().error() == errc::closed);
        log += 'r';
    });
    run();
    CHECK(log == "sr");
    channel<fragile> empty(1);
    CHECK(empty.try_send(fragile(1)));
    fragile::fuse = 1;
    EXPECT_THROW(static_cast<void>(empty.try_receive()), int);
    empty.close();
    CHECK(empty.try_receive()->value == 1);
    CHECK(empty.try_receive().error() == errc::closed);
}

MATRIX_TEST("channel items: moves that wait, with many senders and receivers") {
    for (const std::size_t capacity : {0U, 1U, 3U}) {
        channel<dreamy> c(capacity);
        channel<dreamy> other;
        int sum = 0;
        for (int i = 1; i <= 20; ++i)
            spawn([&, i] {
                if (i % 2 == 0) {
                    CHECK(c.send(dreamy(i)));
                } else {
                    dreamy item(i);
                    CHECK(select(on_receive(other, [](auto&&) {}),
                                 on_send(c, std::move(item), [](auto) {})));
                }
            });
        for (int i = 1; i <= 20; ++i)
            spawn([&, i] {
                if (i % 3 == 0)
                    sum += c.receive()->value;
                else
                    CHECK(select(on_receive(c, [&](auto&& n) { sum += n->value; }),
                                 on_receive(other, [](auto&&) {})));
            });
        run();
        CHECK(sum == 210);
        CHECK(c.size() == 0);
    }
}

MATRIX_TEST("channel items: a move that uses the channel itself") {
    channel<dreamy> c(4);
    int sum = 0;
    bool inside = false;
    dreamy::on_move = [&] {
        if (std::exchange(inside, true)) return;
        CHECK(!c.is_closed());
        CHECK(c.try_send(dreamy(10)));
        inside = false;
    };
    spawn([&] {
        CHECK(c.send(dreamy(1)));
        dreamy::on_move = nullptr;
        for (int i = 0; i < 2; ++i) sum += c.receive()->value;
    });
    run();
    CHECK(sum == 11);
}
