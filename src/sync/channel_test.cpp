// channel_test.cpp - sending and receiving, in exact order, on every kind of stack.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/sync/channel.hpp>

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <weft/fiber/cancel.hpp>

#include "loops.hpp"

using namespace weft;
using namespace std::chrono_literals;

static_assert(!std::is_copy_constructible_v<channel<int>>);
static_assert(!std::is_move_constructible_v<channel<int>>);

MATRIX_TEST("channel: with capacity 0 a send ends when a receiver has the item") {
    channel<int> c;
    std::string log;
    spawn([&] {
        log += 'a';
        CHECK(c.send(7));
        log += 'c';
    });
    run_until_blocked();
    CHECK(log == "a");
    spawn([&] {
        log += 'b';
        CHECK(c.receive() == 7);
        CHECK(c.receive() == 8);
        log += 'd';
    });
    run_until_blocked();
    CHECK(log == "abc");
    spawn([&] { CHECK(c.send(8)); });
    run();
    CHECK(log == "abcd");
}

MATRIX_TEST("channel: receivers that wait are served in the order they came") {
    channel<std::string> c;
    std::string log;
    for (const char name : {'a', 'b', 'c'}) spawn([&, name] { log += name + c.receive().value(); });
    run_until_blocked();
    spawn([&] {
        for (const char* text : {"1", "2", "3"}) CHECK(c.send(text));
    });
    run();
    CHECK(log == "a1b2c3");
}

MATRIX_TEST("channel: senders that wait are served in the order they came") {
    for (const std::size_t capacity : {0U, 1U, 2U}) {
        channel<std::string> c(capacity);
        std::string log;
        for (const char* text : {"a", "b", "c", "d"}) spawn([&, text] { CHECK(c.send(text)); });
        run_until_blocked();
        spawn([&] {
            for (int i = 0; i < 4; ++i) log += c.receive().value();
        });
        run();
        CHECK(log == "abcd");
    }
}

MATRIX_TEST("channel: a bounded one takes as many as it was told, and then makes senders wait") {
    channel<int> c(3);
    CHECK(c.capacity() == 3);
    int sent = 0;
    std::vector<int> got;
    spawn([&] {
        for (; sent < 10; ++sent) CHECK(c.send(sent));
    });
    run_until_blocked();
    CHECK(sent == 3);
    CHECK(c.size() == 3);
    spawn([&] {
        for (int i = 0; i < 10; ++i) got.push_back(c.receive().value());
    });
    run();
    CHECK((got == std::vector{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
    CHECK(c.size() == 0);
}

MATRIX_TEST("channel: an unbounded one never makes a sender wait") {
    channel<std::unique_ptr<int>> c(unbounded);
    int sum = 0;
    spawn([&] {
        for (int i = 1; i <= 5000; ++i) CHECK(c.send(std::make_unique<int>(i)));
    });
    CHECK(run_until_blocked() == 1);
    CHECK(c.size() == 5000);
    spawn([&] {
        for (int i = 1; i <= 5000; ++i) {
            const auto one = c.receive();
            CHECK(**one == i);
            sum += **one;
        }
    });
    run();
    CHECK(sum == 5000 * 5001 / 2);
}

MATRIX_TEST("channel: the try forms never wait, and a value that was not sent is still there") {
    channel<std::unique_ptr<int>> none;
    channel<std::unique_ptr<int>> one(1);
    auto value = std::make_unique<int>(5);
    CHECK(none.try_send(std::move(value)).error() == std::errc::operation_would_block);
    CHECK(value != nullptr);
    CHECK(none.try_receive().error() == std::errc::operation_would_block);
    CHECK(one.try_send(std::move(value)));
    CHECK(value == nullptr);
    value = std::make_unique<int>(6);
    CHECK(one.try_send(std::move(value)).error() == std::errc::operation_would_block);
    CHECK(value != nullptr);
    CHECK(**one.try_receive() == 5);
    bool received = false;
    spawn([&] { received = **none.receive() == 6; });
    run_until_blocked();
    CHECK(none.try_send(std::move(value)));
    run();
    CHECK(received);
    spawn([&] { CHECK(none.send(std::make_unique<int>(7))); });
    run_until_blocked();
    CHECK(**none.try_receive() == 7);
    run();
}

MATRIX_TEST("channel: the timed forms end at their deadline, with the value in its place") {
    channel<std::unique_ptr<int>> c;
    std::string log;
    spawn([&] {
        auto value = std::make_unique<int>(1);
        CHECK(c.send_for(std::move(value), 5ms).error() == std::errc::timed_out);
        CHECK(value != nullptr && *value == 1);
        log += 's';
        CHECK(c.receive_until(clock.now() + 5ms).error() == std::errc::timed_out);
        log += 'r';
        CHECK(c.receive_for(-1s).error() == std::errc::timed_out);
    });
    run_until_blocked();
    advance(5ms - 1ns);
    CHECK(log.empty());
    advance(1ns);
    CHECK(log == "s");
    advance(5ms);
    CHECK(log == "sr");
    run_until_blocked();
}

MATRIX_TEST("channel: a wait is cancelled, and what needs no wait is done all the same") {
    channel<std::string> c(1);
    std::string log;
    fiber f(s, options(), [&] {
        CHECK(c.receive().error() == std::errc::operation_canceled);
        CHECK(c.send("kept"));
        std::string second = "second";
        CHECK(c.send(std::move(second)).error() == std::errc::operation_canceled);
        CHECK(second == "second");
        CHECK(c.receive() == "kept");
        log += 'd';
    });
    run_until_blocked();
    f.request_stop();
    run();
    CHECK(log == "d");
    f.detach();
}

MATRIX_TEST("channel: close lets what is in it be received, and then says closed") {
    channel<std::string> c(2);
    std::string log;
    CHECK(c.try_send("a"));
    CHECK(c.try_send("b"));
    spawn([&] {
        std::string late = "late";
        CHECK(c.send(std::move(late)).error() == errc::closed);
        CHECK(late == "late");
        log += 's';
    });
    run_until_blocked();
    c.close();
    c.close();
    CHECK(c.is_closed());
    spawn([&] {
        log += c.receive().value();
        log += c.receive().value();
        CHECK(c.receive().error() == errc::closed);
        CHECK(c.try_receive().error() == errc::closed);
        CHECK(c.send("z").error() == errc::closed);
        CHECK(c.try_send("z").error() == errc::closed);
        log += 'r';
    });
    run();
    CHECK(log == "sabr");
}

MATRIX_TEST("channel: close wakes receivers and senders that wait, in the order they came") {
    channel<int> empty;
    channel<std::unique_ptr<int>> full;
    std::string told;
    for (const char name : {'a', 'b', 'c'}) {
        spawn([&, name] {
            CHECK(empty.receive().error() == errc::closed);
            told += name;
        });
        spawn([&, name] {
            auto mine = std::make_unique<int>(name);
            CHECK(full.send(std::move(mine)).error() == errc::closed);
            CHECK(*mine == name);
            told += name;
        });
    }
    run_until_blocked();
    CHECK(told.empty());
    empty.close();
    full.close();
    run();
    CHECK(told == "abcabc");
}

MATRIX_TEST("channel: range-for receives until it is closed or cancelled, and tells which") {
    channel<int> c(4);
    std::string log;
    spawn([&] {
        for (const int n : c) log += static_cast<char>('0' + n);
        log += c.last_error() == errc::closed ? 'c' : '?';
    });
    for (int i = 1; i <= 3; ++i) CHECK(c.try_send(i));
    c.close();
    run();
    CHECK(log == "123c");
    channel<std::unique_ptr<int>> other;
    fiber f(s, options(), [&] {
        for (auto& n : other) log += static_cast<char>('0' + *n);
        log += other.last_error() == std::errc::operation_canceled ? 'x' : '?';
    });
    spawn([&] { CHECK(other.send(std::make_unique<int>(4))); });
    run_until_blocked();
    f.request_stop();
    run();
    CHECK(log == "123c4x");
    f.detach();
}

MATRIX_TEST("channel: why an iteration ended is the same for whoever asks, and later") {
    channel<int> c;
    fiber f(s, options(), [&] {
        {
            const auto late = std::make_unique<cancel_scope>();
            late->cancel(cancel_reason::timed_out);
            for (const int n : c) CHECK(n == 0);
        }
        CHECK(c.last_error() == std::errc::timed_out);
        const auto asked = std::make_unique<cancel_scope>();
        asked->cancel();
        for (const int n : c) CHECK(n == 0);
        const auto late = std::make_unique<cancel_scope>(cancel_scope::shield::yes);
        late->cancel(cancel_reason::timed_out);
        CHECK(c.last_error() == std::errc::operation_canceled);
    });
    run();
    f.detach();
    CHECK(c.last_error() == std::errc::operation_canceled);
}

WEFT_TEST("channel: plain threads on both sides") {
    channel<std::string> c(1);
    std::thread sender([&] {
        for (int i = 0; i < 100; ++i) CHECK(c.send(std::to_string(i)));
        c.close();
    });
    int expected = 0;
    for (const std::string& text : c) CHECK(text == std::to_string(expected++));
    sender.join();
    CHECK(expected == 100);
    channel<int> silent;
    CHECK(silent.receive_for(100us).error() == std::errc::timed_out);
    CHECK(silent.send_for(1, 100us).error() == std::errc::timed_out);
}

WEFT_TEST("channel: items that are left are destroyed with it") {
    const auto item = std::make_shared<int>(1);
    {
        channel<std::shared_ptr<int>> c(unbounded);
        for (int i = 0; i < 100; ++i) CHECK(c.send(item));
        CHECK(c.receive());
        CHECK(item.use_count() == 100);
    }
    CHECK(item.use_count() == 1);
}

WEFT_TEST("channel: items that want to be aligned are, and large plain ones come through") {
    struct alignas(128) aligned {
        int value;
        char more[200];
    };
    channel<aligned> c(2);
    CHECK(c.try_send(aligned{.value = 1, .more = {}}));
    CHECK(c.try_send(aligned{.value = 2, .more = {}}));
    CHECK(c.try_receive()->value == 1);
    CHECK(c.try_receive()->value == 2);
}

WEFT_TEST("channel misuse: aborts by name") {
    weft_test::allow_threads_in_death_tests();
    const auto destroy_while_waiting = [] {
        loop s({.external_wakes = false});
        std::optional<channel<int>> c(std::in_place);
        go(s, [&] { static_cast<void>(c->receive()); });
        s.run_until_blocked();
        c.reset();
    };
    EXPECT_DEATH(destroy_while_waiting(), "channel: destroyed while somebody waits");
    const auto on_a_swapped_stack = [] {
        loop s({.external_wakes = false});
        go(s, {.kind = stack_kind::swapped}, [] {
            channel<int> c;
            static_cast<void>(c.receive());
        });
        s.run();
    };
    EXPECT_DEATH(on_a_swapped_stack(), "channel: waited on where it lies on a swapped");
}

LOOP_TEST("channel: a send that need not wait happens in a cancelled fiber, too") {
    channel<int> c(unbounded);
    fiber f(s, [&] {
        this_fiber::throw_if_cancelled();
        static_cast<void>(park());
        for (int i = 0; i < 300; ++i) CHECK(c.send(i).has_value());
    });
    run_until_blocked();
    f.request_stop();
    run_until_blocked();
    f.detach();
    for (int i = 0; i < 300; ++i) CHECK(c.try_receive() == i);
}
