// standard_streams_test.cpp - a program's own streams, whatever they are; and its end.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/io/standard_streams.hpp>

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>
#include <string_view>
#include <utility>

#include <weft/base/sanitizer.hpp>
#include <weft/base/test_point.hpp>
#include <weft/io/file.hpp>
#include <weft/io/pipe.hpp>

#include "loops.hpp"
#include "subprocess.hpp"
#include "temporary_folder.hpp"
#include "weft_test.hpp"

using namespace weft;
using weft_test::run_command;
using weft_test::temporary_folder;

namespace {

/// What a shell says; io_cat is the program that copies its input to its output.
weft_test::subprocess_result shell(const std::string& script) {
    std::string io_cat = "io_cat() {";
    for (const std::string& word : weft_test::program_command("io_cat"))
        io_cat += " '" + word + "'";
    return run_command({weft_test::find_tool("sh"), "-c", io_cat + " \"$@\"; }\n" + script});
}

}  // namespace

WEFT_TEST("standard streams: from pipe to pipe, more than it holds") {
    const auto result = shell("head -c 300000 /dev/zero | io_cat | wc -c");
    EXPECT_TRUE(result.says("300000\n")) << result.describe();
}

WEFT_TEST("standard streams: from file to file") {
    const temporary_folder folder;
    io::write_file(folder / "in", std::string(100'000, 'f')).value();
    const auto result =
        shell("io_cat < " + (folder / "in") + " > " + (folder / "out") + " && echo good");
    EXPECT_TRUE(result.says("good")) << result.describe();
    CHECK(io::read_file(folder / "out").value() == std::string(100'000, 'f'));
}

WEFT_TEST("standard streams: devices, and nothing at all") {
    CHECK(shell("io_cat < /dev/null").says("0\n"));
    CHECK(shell("echo word | io_cat > /dev/null").says("5\n"));
    CHECK(shell("io_cat <&-").says("0\n"));  // closed
}

WEFT_TEST("standard streams: the wrong end of a pipe is an error, and not waited for") {
    int ends[2];
    CHECK(::pipe2(ends, O_CLOEXEC) == 0);
    std::array<std::byte, 1> one{};
    CHECK(io::standard_reader(ends[1]).read_some(one).error() == std::errc::bad_file_descriptor);
    CHECK(io::standard_writer(ends[0]).write_all("x").error() == std::errc::bad_file_descriptor);
    for (const int end : ends) ::close(end);
}

WEFT_TEST("standard streams: a reader that has gone away is an error, not a signal") {
    const auto result = shell("(head -c 1000000 /dev/zero | io_cat; echo status $? >&2) | true");
    EXPECT_TRUE(result.says("status 0")) << result.describe();
}

WEFT_TEST("standard streams: a wait for more is cancelled, and no flag of theirs is changed") {
    const temporary_folder folder;
    const std::string over = folder / "over";  // until then the pipe stays open
    const auto result =
        shell("mkfifo " + over + "; (echo first; read line < " + over +
              ") | (io_cat one && grep flags /proc/self/fdinfo/0; echo > " + over + ")");
    EXPECT_TRUE(result.says("first\n")) << result.describe();
    EXPECT_TRUE(result.says("flags:\t00\n") || result.says("flags:\t0100000\n"))
        << result.describe();
}

WEFT_TEST("standard streams: a terminal") {
    const int master = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (master < 0 || ::grantpt(master) != 0 || ::unlockpt(master) != 0)
        GTEST_SKIP() << "this system has no pseudo terminals to give";
    const std::string name = ::ptsname(master);
    const int kept = ::open(name.c_str(), O_RDWR | O_NOCTTY | O_CLOEXEC);
    ASSERT_GE(kept, 0);
    termios modes{};
    ::tcgetattr(kept, &modes);
    modes.c_lflag &= static_cast<tcflag_t>(~ECHO);
    ::tcsetattr(kept, TCSANOW, &modes);
    ASSERT_EQ(::write(master, "typed\n\4", 7), 7);
    const auto result = shell("io_cat < " + name + " > " + name);
    EXPECT_TRUE(result.says("6\n")) << result.describe();
    char back[16] = "";
    const ssize_t n = ::read(master, back, sizeof back - 1);
    CHECK(std::string(back, static_cast<std::size_t>(n > 0 ? n : 0)) == "typed\r\n");
    ::close(kept);
    ::close(master);
}

MATRIX_TEST("standard streams: what was written before a cancellation is counted") {
    io::pipe ends = io::pipe::make().value();
    io::standard_writer writer(ends.writer.native_handle());
    const std::string much(1 << 20, 'm');
    std::size_t done = 0;
    fiber writes(s, options(), [&] {
        CHECK(writer.write_all(io::bytes_of(much), done).error() == std::errc::operation_canceled);
    });
    run_until_blocked();
    writes.request_stop();
    run();
    CHECK(done > 0);
    CHECK(done < much.size());
    std::string got(much.size(), ' ');
    spawn([&] { CHECK(writer.write_all(io::bytes_of(much), done)); });
    spawn([&] { CHECK(ends.reader.read_exactly(std::as_writable_bytes(std::span(got)))); });
    run();
    CHECK(got == much);
}

#if defined(WEFT_CHECKS) && WEFT_CHECKS
namespace {

// A pipe that blocks, and that another program has, too: that is quicker, once.
struct shared_pipe {
    shared_pipe() { CHECK(::pipe2(ends, O_CLOEXEC) == 0); }
    shared_pipe(const shared_pipe&) = delete;
    shared_pipe& operator=(const shared_pipe&) = delete;
    ~shared_pipe() {
        detail::at_test_points = nullptr;
        for (const int end : ends) ::close(end);
    }
    // -EAGAIN: there is none.
    [[nodiscard]] long take_now(char& one) const {
        const iovec part{.iov_base = &one, .iov_len = 1};
        const ssize_t got = ::preadv2(ends[0], &part, 1, -1, RWF_NOWAIT);
        return got < 0 ? -errno : got;
    }
    [[nodiscard]] std::size_t fill() const {
        std::array<char, PIPE_BUF> page{};
        const iovec part{.iov_base = page.data(), .iov_len = page.size()};
        std::size_t all = 0;
        while (::pwritev2(ends[1], &part, 1, -1, RWF_NOWAIT) > 0) all += page.size();
        return all;
    }
    [[nodiscard]] bool can_refuse() const {
        char none = 0;
        return take_now(none) == -EAGAIN;
    }

    int ends[2] = {-1, -1};
};

shared_pipe* raced_for = nullptr;
std::size_t filled = 0;

void be_quicker(const char* name) noexcept {
    if (raced_for == nullptr || !std::string_view(name).starts_with("standard streams")) return;
    const shared_pipe& all = *std::exchange(raced_for, nullptr);
    char one = 0;
    if (std::string_view(name).ends_with("read"))
        CHECK(all.take_now(one) == 1);
    else
        filled = all.fill();
}

}  // namespace

MATRIX_TEST("standard streams: what another program reads first is waited for by the fiber alone") {
    shared_pipe both;
    if (!both.can_refuse()) GTEST_SKIP() << "this kernel cannot be told not to wait for a pipe";
    io::standard_reader reader(both.ends[0]);
    CHECK(::write(both.ends[1], "a", 1) == 1);
    raced_for = &both;
    detail::at_test_points = &be_quicker;
    std::array<std::byte, 2> got{};
    bool over = false;
    spawn([&] {
        CHECK(reader.read_some(got).value() == 1);
        over = true;
    });
    run_until_blocked();
    CHECK(!over);
    CHECK(raced_for == nullptr);
    CHECK(::write(both.ends[1], "b", 1) == 1);
    run();
    CHECK(got[0] == std::byte{'b'});
}

MATRIX_TEST("standard streams: room that another program fills first is waited for by the fiber") {
    shared_pipe both;
    if (!both.can_refuse()) GTEST_SKIP() << "this kernel cannot be told not to wait for a pipe";
    io::standard_writer writer(both.ends[1]);
    raced_for = &both;
    detail::at_test_points = &be_quicker;
    filled = 0;
    bool over = false;
    spawn([&] {
        writer.write_all("ours").value();
        over = true;
    });
    run_until_blocked();
    CHECK(!over);
    CHECK(filled > 0);
    std::string theirs(filled, ' ');
    CHECK(::read(both.ends[0], theirs.data(), filled) == static_cast<ssize_t>(filled));
    run();
    char ours[8] = "";
    CHECK(::read(both.ends[0], ours, sizeof ours) == 4);
    CHECK(std::string(ours) == "ours");
}
#endif

WEFT_TEST("blocking: a program ends whatever the side pool does") {
    for (const char* how : {"idle", "running", "forked", "inside"}) {
        if (WEFT_TSAN && std::string(how) == "forked") continue;  // it allows no threads after it
        const auto result = weft_test::run_program("io_exit", {how});
        EXPECT_TRUE(result.exited_with(0)) << how << ": " << result.describe();
    }
}
