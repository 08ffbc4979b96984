// file_test.cpp - files by position, over the side pool.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/io/file.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <optional>
#include <semaphore>
#include <string>
#include <thread>
#include <vector>

#include <weft/exec/loop.hpp>
#include <weft/fiber/cancel.hpp>
#include <weft/io/blocking.hpp>
#include <weft/sync/wait_group.hpp>

#include "loops.hpp"
#include "pools.hpp"
#include "temporary_folder.hpp"

using namespace weft;
using weft_test::temporary_folder;

namespace {

std::span<const std::byte> bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

constexpr io::file_options fresh = {.read = true, .write = true, .create = true, .exclusive = true};

}  // namespace

POOL_TEST("file: what is written is read, at any offset") {
    const temporary_folder folder;
    fiber f(p, options(), [&] {
        io::file one = io::file::open(folder / "one", fresh).value();
        one.write_at(0, bytes("hello, world")).value();
        one.write_at(7, bytes("weft!")).value();
        std::array<char, 32> buffer{};
        CHECK(one.read_at(0, std::as_writable_bytes(std::span(buffer))).value() == 12);
        CHECK(std::string(buffer.data()) == "hello, weft!");
        CHECK(one.read_at(7, std::as_writable_bytes(std::span(buffer).first(4))).value() == 4);
        CHECK(std::string(buffer.data(), 4) == "weft");
        CHECK(one.read_at(12, std::as_writable_bytes(std::span(buffer))).value() == 0);
        CHECK(one.read_at(1000, std::as_writable_bytes(std::span(buffer))).value() == 0);
        CHECK(one.size().value() == 12);
        one.sync().value();
        one.resize(5).value();
        CHECK(one.size().value() == 5);
        one.close().value();
        CHECK(!one.is_open());
        CHECK(one.size().error() == std::errc::bad_file_descriptor);
        CHECK(one.close().error() == std::errc::bad_file_descriptor);
    });
    f.join();
}

POOL_TEST("file: a buffer on the fiber's own stack is read into, cached or not") {
    const temporary_folder folder;
    const std::string text(100'000, 'x');
    io::write_file(folder / "long", text).value();
    fiber f(p, options(), [&] {
        io::file one = io::file::open(folder / "long").value();
        std::array<std::byte, 4096> buffer;
        std::size_t all = 0;
        for (;;) {
            const std::size_t n = one.read_at(all, buffer).value();
            if (n == 0) break;
            for (std::size_t i = 0; i < n; ++i)
                if (buffer[i] != std::byte{'x'}) ADD_FAILURE() << "byte " << all + i;
            all += n;
        }
        CHECK(all == text.size());
        // A pipe or a device knows no "only if cached"; this goes the other way.
        io::file zeros = io::file::open("/dev/zero").value();
        buffer.fill(std::byte{1});
        CHECK(zeros.read_at(0, buffer).value() == buffer.size());
        CHECK(buffer[4095] == std::byte{0});
    });
    f.join();
}

POOL_TEST("file: appends of many fibers are all there, each in one piece") {
    const temporary_folder folder;
    const auto one = std::make_unique<io::file>(io::file::open(folder / "log", fresh).value());
    wait_group all;
    for (int i = 0; i < 20; ++i) {
        all.add();
        spawn([&, i] {
            const auto done = all.guard();
            const std::string line = std::string(50, static_cast<char>('a' + i)) + "\n";
            for (int j = 0; j < 5; ++j) one->append(bytes(line)).value();
        });
    }
    all.wait();
    const std::string text = io::read_file(folder / "log").value();
    CHECK(text.size() == 20 * 5 * 51);
    for (std::size_t at = 0; at < text.size(); at += 51)
        CHECK(text.substr(at, 51) == std::string(50, text[at]) + "\n");
}

POOL_TEST("file: whole files are written and read") {
    const temporary_folder folder;
    fiber f(p, options(), [&] {
        const std::string text(3'000'000, 'z');
        io::write_file(folder / "a", text).value();
        CHECK(io::read_file(folder / "a").value() == text);
        io::write_file(folder / "a", std::string_view("short")).value();
        CHECK(io::read_file(folder / "a").value() == "short");
        CHECK(io::read_file(folder / "a", 5).value() == "short");
        CHECK(io::read_file(folder / "a", 4).error() == std::errc::file_too_large);
        CHECK(io::read_file("/proc/self/status").value().starts_with("Name:"));
    });
    f.join();
}

WEFT_TEST("file: errors have names") {
    using std::errc;
    const temporary_folder folder;
    loop s;
    go(s, [&] {
        CHECK(io::file::open(folder / "none").error() == errc::no_such_file_or_directory);
        CHECK(io::file::open(folder / "", io::for_writing).error() == errc::is_a_directory);
        CHECK(io::file::open("x", {}).error() == errc::invalid_argument);
        CHECK(io::file::open(std::string_view("a\0b", 3)).error() == errc::invalid_argument);
        CHECK(io::file::open("x", {.read = true, .truncate = true}).error() ==
              errc::invalid_argument);
        io::file one = io::file::open(folder / "one", fresh).value();
        CHECK(io::file::open(folder / "one", fresh).error() == errc::file_exists);
        std::array<std::byte, 8> buffer;
        CHECK(one.read_at(~std::uint64_t{0}, buffer).error() == errc::invalid_argument);
        CHECK(one.write_at(~std::uint64_t{0} / 2, buffer).error() == errc::invalid_argument);
        CHECK(one.resize(~std::uint64_t{0}).error() == errc::invalid_argument);
        io::file closed;
        CHECK(closed.read_at(0, buffer).error() == errc::bad_file_descriptor);
        CHECK(closed.append(buffer).error() == errc::bad_file_descriptor);
        CHECK(closed.read_at(0, {}).error() == errc::bad_file_descriptor);
        CHECK(closed.write_at(0, {}).error() == errc::bad_file_descriptor);
        CHECK(closed.append({}).error() == errc::bad_file_descriptor);
        io::file full = io::file::open("/dev/full", {.write = true}).value();
        CHECK(full.write_at(0, buffer).error() == errc::no_space_on_device);
        CHECK(io::read_file("/dev/zero", 1000).error() == errc::file_too_large);
    });
    s.run();
}

WEFT_TEST("file: appending to a pipe by name that nobody reads is an error, not a signal") {
    const temporary_folder folder;
    const std::string name = folder / "pipe";
    CHECK(::mkfifo(name.c_str(), 0600) == 0);
    const int reader = ::open(name.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    loop s;
    go(s, [&] {
        io::file one = io::file::open(name, {.write = true}).value();
        CHECK(one.append(bytes("read by nobody")));
        ::close(reader);
        CHECK(one.append(bytes("x")).error() == std::errc::broken_pipe);
    });
    s.run();
}

WEFT_TEST("file: a cancelled fiber reads nothing and leaves its file as it is") {
    const temporary_folder folder;
    loop s;
    std::optional<fiber> f;
    f.emplace(s, [&] {
        io::file one = io::file::open(folder / "one", fresh).value();
        f->request_stop();
        std::array<std::byte, 8> buffer{};
        CHECK(one.read_at(0, buffer).error() == std::errc::operation_canceled);
        CHECK(one.write_at(0, buffer).error() == std::errc::operation_canceled);
        CHECK(one.append(buffer).error() == std::errc::operation_canceled);
        CHECK(one.close().error() == std::errc::operation_canceled);
        CHECK(one.is_open());
    });
    s.run();
    f->detach();
    CHECK(io::read_file(folder / "one").value().empty());
}

WEFT_TEST("file: a read that is cancelled in its middle is not the end of the file") {
    const temporary_folder folder;
    const std::string text(1 << 20, 'm');
    io::write_file(folder / "one", text).value();
    io::file one = io::file::open(folder / "one").value();
    // Its beginning alone is in memory, where the file system can do that.
    ::fsync(one.descriptor());
    ::posix_fadvise(one.descriptor(), 0, 0, POSIX_FADV_DONTNEED);
    ::posix_fadvise(one.descriptor(), 0, 0, POSIX_FADV_RANDOM);
    std::vector<std::byte> buffer(text.size());
    CHECK(one.read_at(0, std::span(buffer).first(4096)).value() == 4096);
    io::side_pool& shared = io::file_side_pool();
    shared.end_idle();
    const unsigned limit = shared.limit();
    shared.set_limit(1);
    std::binary_semaphore held(0);
    loop s;
    go(s, [&] { io::blocking(shared, [&] { held.acquire(); }); });
    fiber reads(s, [&] {
        const auto got = one.read_at(0, buffer);
        if (got) {
            CHECK(*got == text.size());
        } else {
            CHECK(got.error() == std::errc::operation_canceled);
        }
    });
    go(s, [&] {
        reads.request_stop();
        held.release();
    });
    s.run();
    shared.set_limit(limit);
}

// As many as there may be, each of which waits for what a fiber does once it has read a file.
POOL_TEST("file: blocking calls of a program keep no file waiting") {
    io::side_pool& side = io::shared_side_pool();
    std::counting_semaphore<256> open{0};
    const unsigned limit = side.limit();
    for (unsigned i = 0; i < limit; ++i) go(p, [&] { io::blocking([&] { open.acquire(); }); });
    while (side.counters().running < limit) std::this_thread::yield();
    fiber reads(p, options(), [] { CHECK(io::read_file("/proc/self/comm").has_value()); });
    reads.join();
    open.release(limit);
    p.drain();
}

MATRIX_TEST("file: what was opened to write is closed on a side thread, also by who is cancelled") {
    const temporary_folder folder;
    io::write_file(folder / "read", std::string_view("x")).value();
    const auto closes_aside = [&](const char* name, const io::file_options& how, bool cancelled) {
        std::size_t before = 0;
        bool waited = false;
        spawn([&] {
            const auto scope = std::make_unique<cancel_scope>();
            {
                const io::file one = io::file::open(folder / name, how).value();
                before = io::file_side_pool().counters().finished;
                if (cancelled) scope->cancel();
            }
            waited = io::file_side_pool().counters().finished != before;
        });
        run();
        return waited;
    };
    CHECK(closes_aside("written", io::for_writing, false));
    CHECK(closes_aside("written", io::for_writing, true));
    CHECK(!closes_aside("read", io::for_reading, false));
}

WEFT_TEST("file: works in a plain thread") {
    const temporary_folder folder;
    io::write_file(folder / "one", std::string_view("plain")).value();
    CHECK(io::read_file(folder / "one").value() == "plain");
}
