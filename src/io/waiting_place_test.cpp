// waiting_place_test.cpp - where I/O is waited for: idle and busy pools, loops, loops in fibers.
//
// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include <weft/exec/loop.hpp>
#include <weft/exec/pool.hpp>
#include <weft/io/descriptor.hpp>

#include "io_support.hpp"
#include "loops.hpp"
#include "passing_on.hpp"
#include "pools.hpp"

using namespace weft;
using namespace std::chrono_literals;
using weft_test::is_readable;

namespace {

std::byte buffer[64];  // of the tests on one thread

}  // namespace

POOL_TEST("descriptor: bytes go from fiber to fiber") {
    io::pipe ends = io::pipe::make().value();
    std::vector<std::byte> much(1 << 20);
    for (std::size_t i = 0; i < much.size(); ++i) much[i] = weft_test::byte_at(i);
    std::vector<std::byte> got(much.size());
    spawn([&] { CHECK(ends.writer.write_all(much)); });
    spawn([&] { CHECK(ends.reader.read_exactly(got)); });
    p.drain();
    CHECK(got == much);
}

POOL_TEST("descriptor: an idle pool with I/O is woken by a post from outside") {
    io::pipe ends = io::pipe::make().value();
    std::vector<std::byte> read(8);
    spawn([&] { static_cast<void>(ends.reader.read_some(read)); });
    for (int i = 0; i < 100; ++i) {
        fiber f(p, options(), [] { yield(); });
        f.join();
    }
    ends.reader.close();
    p.drain();
}

POOL_TEST("descriptor: a pool that ends cancels who reads") {
    auto ends = std::make_shared<io::pipe>(io::pipe::make().value());
    spawn([ends] {
        auto read = std::make_unique<std::byte[]>(8);
        CHECK(ends->reader.read_some(std::span(read.get(), 8)).error() ==
              std::errc::operation_canceled);
    });
    CHECK(!p.shutdown(10s));
}

WEFT_TEST("descriptor: fibers that only yield do not keep a pool from its I/O") {
    for (unsigned workers : {1U, 2U}) {
        std::atomic<bool> stop = false;  // seen by fibers that end with the pool
        pool p({.workers = workers});
        io::pipe ends = io::pipe::make().value();
        for (int i = 0; i < 8; ++i)
            go(p, [&] {
                while (!stop) yield();
            });
        std::atomic<int> reads = 0;
        fiber reader(p, [&] {
            while (ends.reader.read_some(buffer).value_or(0) == 1) {
                ++reads;
                reads.notify_all();
            }
            stop = true;
        });
        for (int i = 0; i < 20; ++i) {  // each when the one before was read, so it has to wait
            CHECK(ends.writer.write_all("x"));
            reads.wait(i);
        }
        ends.writer.close();
        reader.join();
    }
}

// By the clock of the test, from the first wait on, and again after the pool had nothing to do.
WEFT_TEST("descriptor: on a busy worker a read ends within 61 dispatches and a millisecond") {
    manual_clock clock;
    pool p({.workers = 1, .clock = &clock});
    io::pipe ends = io::pipe::make().value();
    long turns = 0;
    long written_turn = 0;
    time_point written{};
    long most_turns = 0;
    std::chrono::nanoseconds most_time{};
    for (int times = 0; times < 3; ++times) {
        int reads = 0;
        fiber reader(p, [&] {
            for (; reads < 20; ++reads) {
                CHECK(ends.reader.read_some(buffer));
                most_turns = std::max(most_turns, turns - written_turn);
                most_time = std::max(most_time, clock.now() - written);
            }
        });
        for (int i = 0; i < 8; ++i)
            go(p, [&, i] {
                int wrote = 0;
                while (reads < 20) {
                    yield();
                    ++turns;
                    clock.advance(50us);
                    if (i != 0 || wrote > reads) continue;
                    ++wrote;
                    written_turn = turns;
                    written = clock.now();
                    CHECK(::write(ends.writer.native_handle(), "x", 1) == 1);
                }
            });
        reader.join();
        p.drain();
    }
    CHECK(most_turns <= 61);
    CHECK(most_time <= 1ms);
}

namespace {

// By the clock of the test, which stands still in many turns, and then goes on by 100 us in each.
void read_beside_one_who_gets_slow(executor& where, manual_clock& clock,
                                   const std::function<void()>& run) {
    io::pipe ends = io::pipe::make().value();
    std::chrono::nanoseconds late{};
    bool read = false;
    time_point written{};
    go(where, [&] {
        CHECK(ends.reader.read_some(buffer));
        late = clock.now() - written;
        read = true;
    });
    go(where, [&] {
        for (int i = 0; i < 2'000; ++i) yield();
        written = clock.now();
        CHECK(::write(ends.writer.native_handle(), "x", 1) == 1);
        while (!read) {
            clock.advance(100us);
            yield();
        }
    });
    run();
    CHECK(late <= 1ms);
}

}  // namespace

WEFT_TEST(
    "descriptor: after many short turns long ones delay a read by no more than a millisecond") {
    manual_clock clock;
    loop s({.clock = &clock});
    read_beside_one_who_gets_slow(s, clock, [&] { s.run(); });
    pool p({.workers = 1, .clock = &clock});
    read_beside_one_who_gets_slow(p, clock, [&] { p.drain(); });
}

WEFT_TEST("descriptor: one fiber that only yields does not keep a loop from its I/O") {
    loop s;
    io::pipe ends = io::pipe::make().value();
    bool stop = false;
    go(s, [&] {
        CHECK(ends.reader.read_some(buffer));
        stop = true;
    });
    go(s, [&] {
        yield();
        CHECK(::write(ends.writer.native_handle(), "x", 1) == 1);
        while (!stop) yield();
    });
    s.run();
}

WEFT_TEST("loop: its descriptor is readable when I/O has come, whichever was first") {
    for (const bool descriptor_first : {false, true}) {
        loop s;
        io::pipe ends = io::pipe::make().value();
        int reads = 0;
        int watched = descriptor_first ? s.descriptor() : -1;
        go(s, [&] {
            while (ends.reader.read_some(buffer).value_or(0) != 0) ++reads;
        });
        s.poll();
        if (!descriptor_first) watched = s.descriptor();
        s.poll();
        CHECK(!is_readable(watched));
        for (int i = 1; i <= 3; ++i) {
            CHECK(::write(ends.writer.native_handle(), "x", 1) == 1);
            CHECK(is_readable(watched));
            CHECK(s.poll());
            CHECK(reads == i);
            CHECK(!is_readable(watched));
        }
        CHECK(s.descriptor() == watched);
        ends.writer.close();
        CHECK(is_readable(watched));
        s.run();
    }
}

WEFT_TEST("loop: run inside a fiber of a pool, it waits for its I/O as that fiber") {
    pool p({.workers = 1});
    io::pipe ends = io::pipe::make().value();
    io::pipe back = io::pipe::make().value();
    fiber outer(p, [&] {
        loop inner;
        go(inner, [&] {
            CHECK(ends.reader.read_some(buffer));
            CHECK(back.writer.write_all("y"));
        });
        inner.run();
    });
    fiber beside(p, [&] {
        yield();
        CHECK(ends.writer.write_all("x"));
        std::byte mine[1];
        CHECK(back.reader.read_some(mine));
    });
    outer.join();
    beside.join();
}

WEFT_TEST("loop: a closed one that first waits for an open one's I/O waits for its own, too") {
    loop closed({.external_wakes = false});
    io::pipe ends = io::pipe::make().value();
    go(closed, [&] {
        loop inner;
        go(inner, [&] { CHECK(ends.reader.read_some(buffer)); });
        inner.run();
    });
    closed.run_until_blocked();
    CHECK(ends.writer.write_all("x"));
    closed.run_until_blocked();
    CHECK(closed.alive() == 0);
    bool read = false;
    go(closed, [&] {
        CHECK(ends.reader.read_some(buffer));
        read = true;
    });
    loop around;
    go(around, [&] { CHECK(!closed.run()); });
    go(around, [&] {
        CHECK(!read);
        CHECK(ends.writer.write_all("y"));
    });
    around.run();
    CHECK(read);
}

MATRIX_TEST(
    "descriptor: closed by a pool that a closed loop's fiber awaits, others of it hear that") {
    io::pipe ends = io::pipe::make().value();
    io::pipe busy = io::pipe::make().value();
    std::string log;
    std::byte unused[1];
    std::atomic<bool> may_close = false;
    const auto p = std::make_unique<pool>(pool_options{.workers = 1});
    go(*p, [&] {
        while (!may_close) std::this_thread::yield();
        ends.reader.close();
    });
    spawn([&] {
        CHECK(ends.reader.read_some(unused).error() == errc::closed);
        log += 'c';
    });
    spawn([&] {
        p->drain();
        log += 'd';
    });
    spawn([&] {
        while (busy.reader.read_some(buffer).value_or(0) == 1) {}
    });
    spawn([&] {
        may_close = true;
        while (log != "cd") {
            CHECK(busy.writer.write_all("x"));
            yield();
        }
        busy.writer.close();
    });
    run();
    fiber_handle parked;
    spawn([&] {
        parked = this_fiber::handle();
        static_cast<void>(park());
    });
    CHECK(s.run());  // it knows that nobody waits for I/O any more
    unpark(parked);
    run();
}

MATRIX_TEST("loop: with I/O inside a fiber of one whose clock stands still another's time passes") {
    io::pipe ends = io::pipe::make().value();
    loop inner;
    std::string log;
    go(inner, [&] {
        CHECK(ends.reader.read_some(buffer));
        log += 'r';
    });
    go(inner, [&] {
        sleep_for(1ms);
        log += 's';
        CHECK(ends.writer.write_all("x"));
    });
    spawn([&] {
        CHECK(!inner.run());
        log += 'e';
    });
    run();
    CHECK(log == "sre");
}

WEFT_TEST("loop: the same inside a fiber of a user's executor on that loop, open or closed") {
    for (const bool open : {true, false}) {
        manual_clock clock;
        loop outer({.external_wakes = open, .clock = &clock});
        weft_test::passing_on e(outer);
        io::pipe ends = io::pipe::make().value();
        std::string log;
        go(outer, [&] { log += 'o'; });  // so that fibers of its own have run there
        go(e, [&] {
            loop inner;
            go(inner, [&] {
                CHECK(ends.reader.read_some(buffer));
                log += 'r';
            });
            go(inner, [&] {
                sleep_for(1ms);
                log += 's';
                CHECK(ends.writer.write_all("x"));
            });
            CHECK(!inner.run());
            log += 'e';
        });
        CHECK(!outer.run());
        CHECK(log == "osre");
    }
}
