// descriptor_test.cpp - waiting for descriptors: cancelled, closed, moved, reused.
//
// Long, for a descriptor has one protocol, and each way to leave it is tried on every back end.
//
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <csignal>
#include <ctime>
#include <thread>

#include <weft/exec/loop.hpp>
#include <weft/exec/pool.hpp>
#include <weft/fiber/cancel.hpp>
#include <weft/io/descriptor.hpp>
#include <weft/scope/deadline.hpp>
#include <weft/sync/event.hpp>

#include "io_support.hpp"
#include "loops.hpp"
#include "pools.hpp"
#include "test_points.hpp"

using namespace weft;
using namespace std::chrono_literals;
using weft_test::is_readable;

namespace {

std::byte buffer[64];  // of the tests on one thread

}  // namespace

WEFT_TEST("io: without I/O there are no descriptors") {
    const std::size_t before = weft_test::open_descriptors();
    pool p({.workers = 2});
    fiber f(p, [] { sleep_for(1ms); });
    f.join();
    loop s;
    go(s, [] { yield(); });
    s.run();
    CHECK(weft_test::open_descriptors() == before);
}

MATRIX_TEST("descriptor: a read waits until something is written") {
    io::pipe ends = io::pipe::make().value();
    std::string log;
    spawn([&] {
        const auto got = ends.reader.read_some(buffer);
        log += got && *got == 3 ? "read" : "wrong";
    });
    spawn([&] {
        log += "write ";
        CHECK(ends.writer.write_all("abc"));
    });
    run();
    CHECK(log == "write read");
}

MATRIX_TEST("descriptor: a loop with no outside wakes sleeps until its pipe is readable") {
    io::pipe ends = io::pipe::make().value();
    std::size_t read = 0;
    spawn([&] { read = ends.reader.read_some(buffer).value(); });
    run_until_blocked();
    CHECK(read == 0);
    std::thread writer([&] {
        const char text[] = "hello";
        CHECK(::write(ends.writer.native_handle(), text, 5) == 5);
    });
    run();
    writer.join();
    CHECK(read == 5);
}

LOOP_TEST("descriptor: who waits for what can be seen, and others are still found stuck") {
    io::pipe ends = io::pipe::make().value();
    event never;
    cancel_scope* scope = nullptr;
    spawn([&] {
        CHECK(!ends.reader.read_some(buffer));
        cancel_scope here;
        scope = &here;
        try {
            never.wait();
        } catch (const cancelled&) {}
    });
    run_until_blocked();
    std::string all;
    s.describe([&](std::string_view line) { all += line; });
    CHECK(all.find("waits to read") != all.npos);
    ends.reader.close();
    const stuck_report stuck = s.run();
    CHECK(stuck);
    CHECK(stuck.text().find("waits for an event") != std::string::npos);
    scope->cancel();
    run();
}

MATRIX_TEST("descriptor: steps of a loop look for I/O without waiting") {
    io::pipe ends = io::pipe::make().value();
    bool read = false;
    spawn([&] { read = ends.reader.read_some(buffer).has_value(); });
    while (s.step()) {}
    CHECK(!s.step());
    CHECK(::write(ends.writer.native_handle(), "x", 1) == 1);
    CHECK(s.step());
    CHECK(read);
}

MATRIX_TEST("descriptor: a write waits while the pipe is full") {
    io::pipe ends = io::pipe::make().value();
    std::vector<std::byte> much(1 << 20);
    for (std::size_t i = 0; i < much.size(); ++i) much[i] = weft_test::byte_at(i);
    std::vector<std::byte> got(much.size());
    spawn([&] { CHECK(ends.writer.write_all(much)); });
    run_until_blocked();
    CHECK(s.alive() == 1);
    spawn([&] { CHECK(ends.reader.read_exactly(got)); });
    run();
    CHECK(got == much);
}

MATRIX_TEST("descriptor: a cancelled read has read nothing, and the bytes are still there") {
    io::pipe ends = io::pipe::make().value();
    std::error_code error;
    std::size_t read = 0;
    fiber f(s, options(), [&] { error = ends.reader.read_some(buffer).error(); });
    run_until_blocked();
    f.request_stop();
    run();
    CHECK(error == std::errc::operation_canceled);
    CHECK(::write(ends.writer.native_handle(), "abcd", 4) == 4);
    spawn([&] { read = ends.reader.read_some(buffer).value(); });
    run();
    CHECK(read == 4);
}

MATRIX_TEST("descriptor: who was asked to stop before reads nothing, though bytes are there") {
    io::pipe ends = io::pipe::make().value();
    CHECK(::write(ends.writer.native_handle(), "abcd", 4) == 4);
    std::error_code error;
    fiber f(s, options(), [&] { error = ends.reader.read_some(buffer).error(); });
    f.request_stop();
    run();
    CHECK(error == std::errc::operation_canceled);
    CHECK(is_readable(ends.reader.native_handle()));
}

MATRIX_TEST("descriptor: a deadline around it ends a read") {
    io::pipe ends = io::pipe::make().value();
    std::error_code error;
    spawn(
        [&] { error = with_timeout(5ms, [&] { return ends.reader.read_some(buffer); }).error(); });
    run_until_blocked();
    CHECK(!error);
    advance(5ms);
    CHECK(error == std::errc::timed_out);
}

MATRIX_TEST("descriptor: closing it from a third wakes reader and writer with errc::closed") {
    auto [here, there] = io::unix_stream::pair().value();
    std::error_code errors[2];
    std::vector<std::byte> much(1 << 20);
    spawn([&, stream = &here] { errors[0] = stream->read_some(buffer).error(); });
    spawn([&, stream = &here] { errors[1] = stream->write_all(much).error(); });
    run_until_blocked();
    spawn([stream = &here] { stream->close(); });
    run();
    CHECK(errors[0] == errc::closed);
    CHECK(errors[1] == errc::closed);
    CHECK(here.native_handle() == -1);
    CHECK(!here);
    spawn([&, stream = &here] { errors[0] = stream->read_some(buffer).error(); });
    run();
    CHECK(errors[0] == errc::closed);
}

MATRIX_TEST("descriptor: its number is not given back before the last has left") {
    auto [here, there] = io::unix_stream::pair().value();
    const int number = here.native_handle();
    spawn([stream = &here] { CHECK(!stream->read_some(buffer)); });
    run_until_blocked();
    here.close();
    const int meanwhile = ::fcntl(number, F_GETFD);
    CHECK(meanwhile >= 0);
    run();
    const int after = ::fcntl(number, F_GETFD);
    CHECK(after < 0);
}

MATRIX_TEST("descriptor: an end that is destroyed while somebody reads tells him first") {
    auto ends = std::make_unique<io::pipe>(io::pipe::make().value());
    std::error_code error;
    spawn([&, reader = &ends->reader] { error = reader->read_some(buffer).error(); });
    run_until_blocked();
    ends.reset();
    run();
    CHECK(error == errc::closed);
}

WEFT_TEST("descriptor: a reused number never wakes the one who waited for the old") {
    const weft_test::no_descriptor_left left;
    loop s({.external_wakes = false});
    auto first = std::make_unique<io::pipe>(io::pipe::make().value());
    io::pipe second = io::pipe::make().value();
    std::optional<io::pipe> third;
    int third_read = 0;
    // Both become readable; whoever is told first closes the other, and opens one that gets its
    // number, before the report of it is looked at.
    const auto body = [&](io::pipe_reader& mine, io::pipe_reader& other) {
        if (!mine.read_some(buffer)) return;
        const int number = other.native_handle();
        other.close();
        yield();  // the other leaves, and the number is free
        third = io::pipe::make().value();
        CHECK(third->reader.native_handle() == number);
        go(s, [&] { third_read = third->reader.read_some(buffer) ? 1 : 2; });
    };
    go(s, [&] { body(first->reader, second.reader); });
    go(s, [&] { body(second.reader, first->reader); });
    s.run_until_blocked();
    CHECK(::write(first->writer.native_handle(), "x", 1) == 1);
    CHECK(::write(second.writer.native_handle(), "x", 1) == 1);
    s.run_until_blocked();
    CHECK(third_read == 0);
    CHECK(::write(third->writer.native_handle(), "x", 1) == 1);
    CHECK(!s.run());
    CHECK(third_read == 1);
}

LOOP_TEST("descriptor: a copy elsewhere leaves no ghost behind") {
    io::pipe ends = io::pipe::make().value();
    const int copy = ::dup(ends.reader.native_handle());
    spawn([&] { CHECK(!ends.reader.read_some(buffer)); });
    run_until_blocked();
    ends.reader.close();
    run();
    io::pipe other = io::pipe::make().value();
    bool read = false;
    spawn([&] { read = other.reader.read_some(buffer).has_value(); });
    run_until_blocked();
    CHECK(::write(ends.writer.native_handle(), "x", 1) == 1);  // readable through the copy
    run_until_blocked();
    CHECK(!read);
    other.writer.close();
    run();
    ::close(copy);
}

LOOP_TEST("descriptor: a second reader that has to wait aborts") {
    io::pipe ends = io::pipe::make().value();
    EXPECT_DEATH(
        {
            spawn([&] { static_cast<void>(ends.reader.read_some(buffer)); });
            spawn([&] { static_cast<void>(ends.reader.read_some(buffer)); });
            s.run();
        },
        "a second fiber waits to read");
}

LOOP_TEST("descriptor: a second writer that has to wait aborts") {
    io::pipe ends = io::pipe::make().value();
    const std::vector<std::byte> much(1 << 20);
    EXPECT_DEATH(
        {
            spawn([&] { static_cast<void>(ends.writer.write_all(much)); });
            spawn([&] { static_cast<void>(ends.writer.write_all(much)); });
            s.run();
        },
        "a second fiber waits to write");
}

WEFT_TEST("descriptor: a second reader on a pool aborts, whichever worker runs him") {
    weft_test::allow_threads_in_death_tests();
    EXPECT_DEATH(
        {
            ::alarm(30);
            io::pipe ends = io::pipe::make().value();
            pool p({.workers = 2});
            for (unsigned i = 0; i < 2; ++i)
                go(p, {.worker = i}, [&] {
                    std::byte mine[8];
                    static_cast<void>(ends.reader.read_some(mine));
                });
            p.drain();
        },
        "a second fiber waits to read");
}

WEFT_TEST("descriptor: a second thread that has to wait aborts") {
    weft_test::allow_threads_in_death_tests();
    EXPECT_DEATH(
        {
            ::alarm(30);
            io::pipe ends = io::pipe::make().value();
            const auto read = [&] {
                std::byte mine[8];
                static_cast<void>(ends.reader.read_some(mine));
            };
            std::thread other(read);
            read();
        },
        "a second thread waits");
}

WEFT_TEST("descriptor: a thread that has to wait where a fiber reads aborts") {
    weft_test::allow_threads_in_death_tests();
    EXPECT_DEATH(
        {
            ::alarm(30);
            io::pipe ends = io::pipe::make().value();
            loop s;
            go(s, [&] { static_cast<void>(ends.reader.read_some(buffer)); });
            s.run_until_blocked();
            std::byte mine[8];
            static_cast<void>(ends.reader.read_some(mine));
        },
        "a thread waits while a fiber does already");
}

#if defined(WEFT_CHECKS) && WEFT_CHECKS
WEFT_TEST("descriptor: a fiber that has to wait where a thread reads aborts") {
    weft_test::allow_threads_in_death_tests();
    for (const bool was_at_home : {false, true})
        EXPECT_DEATH(
            {
                ::alarm(30);
                io::pipe ends = io::pipe::make().value();
                loop s;
                const auto read = [&] { static_cast<void>(ends.reader.read_some(buffer)); };
                go(s, read);
                if (was_at_home) s.run_until_blocked();
                CHECK(::write(ends.writer.native_handle(), "x", 1) == 1);
                s.run();
                const weft_test::hold_at thread_is_held("watched: a thread waits");
                std::thread other(read);
                weft_test::hold_at::wait_until_held();
                go(s, read);
                s.run();
            },
            "a second fiber waits to read");
}
#endif

LOOP_TEST("descriptor: moving to another executor with somebody waiting aborts") {
    io::pipe ends = io::pipe::make().value();
    EXPECT_DEATH(
        {
            spawn([&] { static_cast<void>(ends.reader.read_some(buffer)); });
            run_until_blocked();
            loop other;
            go(other, [&] { static_cast<void>(ends.reader.read_some(buffer)); });
            other.run();
        },
        "used on another executor while somebody waits");
}

MATRIX_TEST("descriptor: its first wait on another executor moves it there") {
    io::pipe ends = io::pipe::make().value();
    int reads = 0;
    for (int i = 0; i < 3; ++i) {
        loop other;
        go(other, options(), [&] { reads += ends.reader.read_some(buffer) ? 1 : 0; });
        other.run_until_blocked();
        CHECK(::write(ends.writer.native_handle(), "x", 1) == 1);
        other.run();
        spawn([&] { reads += ends.reader.read_some(buffer) ? 1 : 0; });
        run_until_blocked();
        CHECK(::write(ends.writer.native_handle(), "x", 1) == 1);
        run();
    }
    CHECK(reads == 6);
}

MATRIX_TEST("wait_readable: a number of somebody else's, again and again while it is readable") {
    int ends[2];
    REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
    int times = 0;
    spawn([&] {
        for (; times < 3; ++times) CHECK(io::wait_readable(ends[0]));
        CHECK(io::wait_writable(ends[1]));
    });
    run_until_blocked();
    CHECK(times == 0);
    CHECK(::write(ends[1], "x", 1) == 1);
    run();
    CHECK(times == 3);
    ::close(ends[0]);
    ::close(ends[1]);
    spawn([&] { CHECK(io::wait_readable(ends[0]).error() == std::errc::bad_file_descriptor); });
    run();
}

MATRIX_TEST("descriptor: a number that is borrowed twice, beside its owner, is waited for by all") {
    auto [here, there] = io::unix_stream::pair().value();
    auto reads = io::descriptor::borrow(here.native_handle()).value();
    auto writes = io::descriptor::borrow(here.native_handle()).value();
    const std::vector<std::byte> much(1 << 20);
    std::size_t written = 0;
    std::size_t read = 0;
    int over = 0;
    spawn([&] { over += reads.wait_readable().has_value(); });
    spawn([&, stream = &here] { over += stream->wait_readable().has_value(); });
    spawn([&] { over += io::write_all(writes, much, written).has_value(); });
    run_until_blocked();
    CHECK(over == 0);
    CHECK(written != 0);
    spawn([&, stream = &there] {
        CHECK(stream->write_all("x"));
        const auto some = std::make_unique<std::byte[]>(65536);
        while (read < much.size()) read += stream->read_some(std::span(some.get(), 65536)).value();
    });
    run();
    CHECK(over == 3);
    CHECK(read == much.size());
}

MATRIX_TEST("descriptor: one that is borrowed outlives its owner and the next of that number") {
    auto [here, there] = io::unix_stream::pair().value();
    const int number = here.native_handle();
    auto borrowed = io::descriptor::borrow(number).value();
    spawn([&] { CHECK(borrowed.wait_readable()); });
    run_until_blocked();
    here.close();
    auto [next, other] = io::unix_stream::pair().value();
    CHECK(next.native_handle() == number);
    bool woken = false;
    spawn([&, stream = &next] { woken = stream->wait_readable().has_value(); });
    run_until_blocked();
    spawn([&, stream = &there] { CHECK(stream->write_all("x")); });
    run_until_blocked();
    borrowed.close();
    CHECK(!woken);
    spawn([&, stream = &other] { CHECK(stream->write_all("x")); });
    run();
    CHECK(woken);
}

WEFT_TEST("wait_readable: in a plain thread, with a deadline that passed long ago, only asks") {
    const io::pipe ends = io::pipe::make().value();
    const int number = ends.reader.native_handle();
    CHECK(io::wait_readable(number, time_point::min()).error() == std::errc::timed_out);
}

MATRIX_TEST("wait_readable: says timed_out after its deadline") {
    io::pipe ends = io::pipe::make().value();
    std::error_code error;
    spawn(
        [&] { error = io::wait_readable(ends.reader.native_handle(), clock.now() + 3ms).error(); });
    run_until_blocked();
    advance(3ms);
    CHECK(error == std::errc::timed_out);
}

WEFT_TEST("descriptor: a plain thread waits, too, and is woken by close") {
    io::pipe ends = io::pipe::make().value();
    std::error_code error;
    std::atomic<int> reads = 0;
    std::thread reader([&] {
        std::byte mine[8];
        for (;;) {
            const auto got = ends.reader.read_some(mine);
            if (!got) {
                error = got.error();
                return;
            }
            ++reads;
            reads.notify_all();
        }
    });
    CHECK(ends.writer.write_all("x"));
    reads.wait(0);
    ends.reader.close();
    reader.join();
    CHECK(error == errc::closed);
}

WEFT_TEST("descriptor: SIGPIPE kills nobody, and stays pending for whom it was") {
    io::pipe ends = io::pipe::make().value();
    ends.reader.close();
    auto [here, there] = io::unix_stream::pair().value();
    there.close();
    const auto write_both = [&, stream = &here] {
        CHECK(ends.writer.write_all("x").error() == std::errc::broken_pipe);
        CHECK(stream->write_all("x").error() == std::errc::broken_pipe);
    };
    write_both();
    const auto is_pending = [] {
        sigset_t all;
        ::sigpending(&all);
        return ::sigismember(&all, SIGPIPE) == 1;
    };
    sigset_t only;
    sigset_t before;
    ::sigemptyset(&only);
    ::sigaddset(&only, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &only, &before);
    write_both();
    CHECK(!is_pending());
    ::pthread_kill(::pthread_self(), SIGPIPE);  // somebody else's
    write_both();
    CHECK(is_pending());
    const timespec at_once{};
    CHECK(::sigtimedwait(&only, nullptr, &at_once) == SIGPIPE);
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

WEFT_TEST("descriptor: what is wrong with a number has a name") {
    CHECK(io::descriptor::borrow(-1).error() == std::errc::bad_file_descriptor);
    CHECK(io::descriptor::adopt(-1).error() == std::errc::bad_file_descriptor);
    io::descriptor none;
    CHECK(none.wait_readable().error() == std::errc::bad_file_descriptor);
    CHECK(none.read_some(buffer).error() == std::errc::bad_file_descriptor);
    CHECK(none.release() == -1);
    none.close();
}

WEFT_TEST("descriptor: release gives the number back, open") {
    io::pipe ends = io::pipe::make().value();
    const int number = ends.reader.get_descriptor().release();
    CHECK(number >= 0);
    CHECK(!ends.reader);
    CHECK(::fcntl(number, F_GETFD) >= 0);
    ::close(number);
}
