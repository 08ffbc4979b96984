// stream_test.cpp - what is made of a byte stream's few operations, over all of them.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/io/stream.hpp>

#include <algorithm>
#include <string>

#include <weft/io/memory_stream.hpp>
#include <weft/io/pipe.hpp>
#include <weft/io/tcp.hpp>
#include <weft/io/unix.hpp>

#include "crowd.hpp"
#include "io_support.hpp"
#include "loops.hpp"

using namespace weft;
using namespace std::chrono_literals;
using weft_test::bytes;
using weft_test::read_all;

static_assert(io::byte_stream<io::tcp_stream>);
static_assert(io::byte_stream<io::unix_stream>);
static_assert(io::byte_stream<io::memory_stream>);
static_assert(io::byte_reader<io::pipe_reader> && io::byte_writer<io::pipe_writer>);
static_assert(io::byte_reader<io::buffered_reader<io::tcp_stream>>);

MATRIX_TEST("buffered_reader: reads lines that come in any pieces") {
    auto [here, there] = io::memory_stream::pair(3);
    std::string lines;
    spawn([&, stream = &here] {
        io::buffered_reader reader(*stream);
        for (;;) {
            const auto line = reader.read_until("\r\n");
            if (!line) {
                lines += line.error() == errc::end_of_stream ? "end:" : "wrong:";
                lines += std::to_string(reader.available().size());
                return;
            }
            lines.append(*line).append("|");
        }
    });
    spawn([stream = &there] {
        CHECK(stream->write_all("one\r\n\r\ntwo\rx\nthree\r\nrest"));
        CHECK(stream->shutdown_write());
    });
    run();
    CHECK(lines == "one\r\n|\r\n|two\rx\nthree\r\n|end:4");
}

MATRIX_TEST("buffered_reader: a record that is too long is refused, and what came stays") {
    auto [here, there] = io::memory_stream::pair();
    spawn([stream = &there] { CHECK(stream->write_all("0123456789\nabc")); });
    spawn([stream = &here] {
        io::buffered_reader reader(*stream, 8);
        CHECK(reader.read_until("\n").error() == std::errc::message_size);
        CHECK(reader.read_exactly(9).error() == std::errc::message_size);
        CHECK(reader.read_exactly(8).value() == "01234567");
        CHECK(reader.read_until("\n").value() == "89\n");
        std::byte rest[2];
        CHECK(reader.read_some(rest).value() == 2);
        CHECK(reader.read_exactly(1).value() == "c");
    });
    run();
}

MATRIX_TEST("buffered_reader: cancelled in the middle of a line, it loses nothing") {
    auto [here, there] = io::memory_stream::pair();
    io::buffered_reader reader(here);
    std::error_code error;
    std::string line;
    fiber f(s, options(), [&] { error = reader.read_until("\n").error(); });
    spawn([stream = &there] { CHECK(stream->write_all("first half, ")); });
    run_until_blocked();
    f.request_stop();
    run();
    CHECK(error == std::errc::operation_canceled);
    spawn([&, stream = &there] {
        CHECK(stream->write_all("second\n"));
        line = reader.read_until("\n").value();
    });
    run();
    CHECK(line == "first half, second\n");
}

namespace {

// Always has as much to give as is asked for, and counts how often it was.
class endless_lines {
public:
    io::result<std::size_t> read_some(std::span<std::byte> buffer) {
        ++reads;
        most = std::max(most, buffer.size());
        for (std::byte& one : buffer) one = std::byte(given_++ % 20 == 19 ? '\n' : 'x');
        return buffer.size();
    }
    std::size_t reads = 0;
    std::size_t most = 0;

private:
    std::size_t given_ = 0;
};

}  // namespace

WEFT_TEST("buffered_reader: of what is there it reads much at once, within its limit") {
    endless_lines all;
    io::buffered_reader reader(all);
    for (int i = 0; i < 50'000; ++i) CHECK(reader.read_until("\n").value().size() == 20);
    CHECK(all.reads < 100);
    CHECK(all.most <= 16 * 1024);
    endless_lines few;
    io::buffered_reader narrow(few, 30);
    for (int i = 0; i < 100; ++i) CHECK(narrow.read_until("\n").value().size() == 20);
    CHECK(few.most == 30);
}

MATRIX_TEST("buffered_reader: of a stream that gives little it keeps little") {
    auto [here, there] = io::memory_stream::pair();
    spawn([stream = &there] {
        for (int i = 0; i < 100; ++i) {
            CHECK(stream->write_all("a little\n"));
            yield();
        }
        CHECK(stream->shutdown_write());
    });
    std::size_t most = 0;
    spawn([&, stream = &here] {
        struct spy {
            io::result<std::size_t> read_some(std::span<std::byte> buffer) {
                most = std::max(most, buffer.size());
                return stream.read_some(buffer);
            }
            io::memory_stream& stream;
            std::size_t& most;
        } counted{*stream, most};
        io::buffered_reader reader(counted);
        while (reader.read_until("\n")) yield();
    });
    run();
    CHECK(most == 512);
}

MATRIX_TEST("read_exactly: into several buffers, and goes on where it was cancelled") {
    auto [here, there] = io::memory_stream::pair();
    std::byte head[2];
    std::byte body[4];
    const std::span<std::byte> parts[] = {head, {}, body};
    std::size_t done = 0;
    std::error_code error;
    fiber f(s, options(),
            [&, stream = &here] { error = stream->read_exactly(parts, done).error(); });
    spawn([stream = &there] { CHECK(stream->write_all("abc")); });
    run_until_blocked();
    f.request_stop();
    run();
    CHECK(error == std::errc::operation_canceled);
    CHECK(done == 3);
    spawn([&, stream = &here] {
        CHECK(stream->read_exactly(parts, done));
        CHECK(stream->read_exactly(parts, done = 5).error() == errc::end_of_stream);
    });
    spawn([stream = &there] {
        CHECK(stream->write_all("def"));
        CHECK(stream->shutdown_write());
    });
    run();
    CHECK(std::ranges::equal(head, bytes("ab")));
    CHECK(std::ranges::equal(body, bytes("cdef")));
}

MATRIX_TEST("pipe: what was written, and read, before a cancellation is counted") {
    io::pipe ends = io::pipe::make().value();
    const std::string much(1 << 20, 'm');
    std::string got(much.size(), ' ');
    std::size_t written = 0;
    std::size_t read = 0;
    fiber writes(s, options(), [&] {
        CHECK(ends.writer.write_all(io::bytes_of(much), written).error() ==
              std::errc::operation_canceled);
    });
    run_until_blocked();
    writes.request_stop();
    run();
    CHECK(written > 0);
    CHECK(written < much.size());
    const auto rest = std::as_writable_bytes(std::span(got));
    fiber reads(s, options(), [&] {
        CHECK(ends.reader.read_exactly(rest, read).error() == std::errc::operation_canceled);
    });
    run_until_blocked();
    reads.request_stop();
    run();
    CHECK(read == written);
    spawn([&] { CHECK(ends.writer.write_all(io::bytes_of(much), written)); });
    spawn([&] { CHECK(ends.reader.read_exactly(rest, read)); });
    run();
    CHECK(got == much);
}

MATRIX_TEST("read_exactly: an end that comes too early has a name") {
    auto [here, there] = io::memory_stream::pair();
    std::byte buffer[8];
    std::size_t done = 0;
    std::error_code error;
    spawn([&, stream = &here] { error = stream->read_exactly(buffer, done).error(); });
    spawn([stream = &there] {
        CHECK(stream->write_all("abc"));
        stream->close();
    });
    run();
    CHECK(error == errc::end_of_stream);
    CHECK(done == 3);
}

MATRIX_TEST("memory_stream: it has a capacity, an end, and closes") {
    auto [here, there] = io::memory_stream::pair(4);
    std::string log;
    spawn([&, stream = &here] {
        CHECK(stream->write_all("12345678"));
        log += "written ";
        log += read_all(*stream);
    });
    run_until_blocked();
    CHECK(log.empty());
    spawn([stream = &there] {
        std::byte all[8];
        CHECK(stream->read_exactly(all));
        CHECK(stream->write_all("bye"));
        stream->close();
        CHECK(stream->write_all("x").error() == errc::closed);
        CHECK(stream->read_some(all).error() == errc::closed);
        CHECK(stream->shutdown_write().error() == errc::closed);
    });
    run();
    CHECK(log == "written bye");
    spawn([&, stream = &here] {
        log = stream->write_all("x").error() == std::errc::broken_pipe ? "broken" : "wrong";
    });
    run();
    CHECK(log == "broken");
}

MATRIX_TEST("memory_stream: closing it from a third wakes reader and writer") {
    auto [here, there] = io::memory_stream::pair(4);
    std::error_code errors[2];
    std::byte buffer[1];
    spawn([&, stream = &here] { errors[0] = stream->read_some(buffer).error(); });
    spawn([&, stream = &here] { errors[1] = stream->write_all("12345").error(); });
    run_until_blocked();
    here.close();
    run();
    CHECK(errors[0] == errc::closed);
    CHECK(errors[1] == errc::closed);
}

MATRIX_TEST("memory_stream: ending it tells a writer that waits") {
    auto [here, there] = io::memory_stream::pair(4);
    std::error_code error;
    spawn([&, stream = &here] { error = stream->write_all("12345").error(); });
    run_until_blocked();
    CHECK(here.shutdown_write());
    run();
    CHECK(error == std::errc::broken_pipe);
    std::byte all[5];
    CHECK(there.read_some(all).value_or(0) == 4);  // what it had taken is there
    CHECK(there.read_some(all).value_or(1) == 0);
}

MATRIX_TEST("memory_stream: one that never has to wait lets others run") {
    auto [here, there] = io::memory_stream::pair();
    bool others_ran = false;
    int rounds_made = 0;
    spawn([&, stream = &here] {
        while (rounds_made < 1000 && !others_ran) {
            clock.advance(1ms);
            CHECK(stream->write_all("x"));
            std::byte one[1];
            CHECK(there.read_exactly(one));
            ++rounds_made;
        }
    });
    spawn([&] { others_ran = true; });
    run();
    CHECK(rounds_made < 1000);
}

MATRIX_TEST("memory_stream: several buffers are filled and sent by one call") {
    auto [here, there] = io::memory_stream::pair(8);
    std::byte into[3][4];
    const std::span<std::byte> room[] = {into[0], std::span<std::byte>(), into[1], into[2]};
    std::string log;
    spawn([&, ends = std::pair(&here, &there)] {
        for (int i = 0; i < 2; ++i) {  // the second goes around the end of the memory
            const std::span<const std::byte> parts[] = {bytes("ab"), bytes(""), bytes("cdef"),
                                                        bytes("ghij")};
            log += std::to_string(ends.first->write_some(parts).value()) + " ";
            log += std::to_string(ends.second->read_some(std::span(room).first(3)).value()) + " ";
            log.append(reinterpret_cast<const char*>(into[0]), 4);
            log.append(reinterpret_cast<const char*>(into[1]), 4) += ' ';
            CHECK(ends.first->write_all("xyz"));
            log += std::to_string(ends.second->read_some(room).value()) + " ";
        }
        const std::span<const std::byte> nothing[] = {bytes("")};
        log += std::to_string(ends.first->write_some(nothing).value());
        log += std::to_string(ends.second->read_some(std::span(room).subspan(1, 1)).value());
    });
    run_until_blocked();
    CHECK(log == "8 8 abcdefgh 3 8 8 abcdefgh 3 00");
    CHECK(s.alive() == 0);
    there.close();
    run();
}

MATRIX_TEST("memory_stream: vectored writes go on where they stopped, through a small buffer") {
    auto [here, there] = io::memory_stream::pair(7);
    std::vector<std::vector<std::byte>> parts;
    std::size_t size = 0;
    for (std::size_t i = 0; i < 150; ++i) {
        parts.emplace_back(i % 5 == 0 ? 0 : i % 23);
        for (std::byte& one : parts.back()) one = weft_test::byte_at(size++);
    }
    const std::vector<std::span<const std::byte>> buffers(parts.begin(), parts.end());
    std::vector<std::byte> got(size);
    std::size_t done = 0;
    spawn([&, stream = &here] {
        CHECK(stream->write_all(buffers, done));
        CHECK(stream->shutdown_write());
    });
    run_until_blocked();
    CHECK(done == 7);
    std::size_t read = 0;
    spawn([&, stream = &there] {
        for (;;) {
            const std::span<std::byte> rest = std::span(got).subspan(read);
            const std::size_t first = std::min<std::size_t>(rest.size(), 3);
            const std::span<std::byte> two[] = {rest.first(first), rest.subspan(first)};
            const std::size_t some = stream->read_some(two).value();
            read += some;
            if (some == 0 || read == size) return;
        }
    });
    run();
    CHECK(done == size);
    CHECK(read == size);
    for (std::size_t i = 0; i < size; ++i) REQUIRE(got[i] == weft_test::byte_at(i));
}

CROWD_TEST("memory_stream: stress, bytes come in order, through a small buffer") {
    const weft_test::with_test_points points;
    auto [here, there] = io::memory_stream::pair(7);
    const auto count = static_cast<std::size_t>(rounds(200'000));
    std::atomic<std::size_t> wrong = 0;
    crowd(4, [&, ends = std::pair(&here, &there)](int i) {
        io::memory_stream& mine = i % 2 == 0 ? *ends.first : *ends.second;
        const bool writes = i < 2;
        for (std::size_t at = 0; at < count; ++at) {
            std::byte one = weft_test::byte_at(at);
            if (writes)
                static_cast<void>(mine.write_all(std::span(&one, 1)));
            else if (!mine.read_exactly(std::span(&one, 1)) || one != weft_test::byte_at(at))
                ++wrong;
        }
    });
    CHECK(wrong == 0);
}

namespace {

// Whether a read of nothing, from where nothing is to be read, is over at once.
template <class Reader>
void read_nothing(Reader& from, int& over) {
    const auto got = from.read_some(std::span<std::byte>());
    over += got.has_value() && *got == 0;
}

}  // namespace

MATRIX_TEST("stream: a read of no bytes gives none, and does not wait") {
    auto [tcp, other_tcp] = weft_test::tcp_pair();
    auto [local, other_local] = io::unix_stream::pair().value();
    auto [memory, other_memory] = io::memory_stream::pair();
    io::pipe ends = io::pipe::make().value();
    int over = 0;
    spawn([&, stream = &tcp] { read_nothing(*stream, over); });
    spawn([&, stream = &local] { read_nothing(*stream, over); });
    spawn([&, stream = &memory] { read_nothing(*stream, over); });
    spawn([&, stream = &ends.reader] { read_nothing(*stream, over); });
    spawn([&, stream = &tcp] {
        io::buffered_reader reader(*stream);
        read_nothing(reader, over);
    });
    run_until_blocked();
    CHECK(over == 5);
    CHECK(s.alive() == 0);
    for (io::tcp_stream* one : {&tcp, &other_tcp}) one->close();
    other_local.close();
    local.close();
    memory.close();
    ends.reader.close();
    run();
    // Of what is closed it is no end.
    CHECK(tcp.read_some(std::span<std::byte>()).error() == errc::closed);
    CHECK(local.read_some(std::span<std::byte>()).error() == errc::closed);
    CHECK(memory.read_some(std::span<std::byte>()).error() == errc::closed);
    CHECK(ends.reader.read_some(std::span<std::byte>()).error() == errc::closed);
}
