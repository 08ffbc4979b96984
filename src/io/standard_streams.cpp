// standard_streams.cpp - see standard_streams.hpp.
//
// A write to something that blocks must be no larger than what fits when poll(2) says that it is
// writable: PIPE_BUF for a pipe, 256 bytes for a terminal. Others may have taken it by then, or
// read what was there. So a socket is told MSG_DONTWAIT, a pipe RWF_NOWAIT. Terminals and pipes by
// name do not know that: there the worker waits for the next input, or for room.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/io/standard_streams.hpp>

#include <fcntl.h>
#include <limits.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include <weft/base/test_point.hpp>
#include <weft/fiber/cancel.hpp>
#include <weft/io/blocking.hpp>

#include "io/system_call.hpp"
#include "io/write_quietly.hpp"

namespace weft::inline v0 {

namespace {

using kind = detail::standard_descriptor::kind;
using count = io::result<std::size_t>;

constexpr std::size_t terminal_piece = 256;

// What cannot be used in this direction is never ready: then it is a file, and its call says so.
kind kind_of(int number, io::direction used) noexcept {
    struct stat about {};
    if (::fstat(number, &about) != 0) return kind::file;
    const int wrong = used == io::direction::read ? O_WRONLY : O_RDONLY;
    if ((::fcntl(number, F_GETFL) & O_ACCMODE) == wrong) return kind::file;
    if (S_ISSOCK(about.st_mode)) return kind::socket;
    if (S_ISFIFO(about.st_mode)) return kind::pipe;
    return ::isatty(number) == 1 ? kind::terminal : kind::file;
}

// Of what system_call() says: whoever waits between two calls may go on in another thread, which
// has another errno.
count counted(long result) {
    if (result < 0) return detail::system_error_of(result);
    return static_cast<std::size_t>(result);
}

// Whatever the error: sandboxes have their own for calls that they do not know. The plain call says
// what else is wrong.
bool is_refused(ssize_t result) noexcept { return result < 0 && errno != EAGAIN && errno != EINTR; }

count read_now(int number, std::span<std::byte> buffer) {
    const iovec all{.iov_base = buffer.data(), .iov_len = buffer.size()};
    return counted(detail::system_call([&] {
        const ssize_t got = ::preadv2(number, &all, 1, -1, RWF_NOWAIT);
        return is_refused(got) ? ::readv(number, &all, 1) : got;
    }));
}

count write_now(int number, std::span<const std::byte> bytes) {
    const iovec all{.iov_base = const_cast<std::byte*>(bytes.data()), .iov_len = bytes.size()};
    return counted(detail::write_quietly([&] {
        const ssize_t put = ::pwritev2(number, &all, 1, -1, RWF_NOWAIT);
        return is_refused(put) ? ::writev(number, &all, 1) : put;
    }));
}

count write_once(int number, std::span<const std::byte> bytes) {
    const iovec all{.iov_base = const_cast<std::byte*>(bytes.data()), .iov_len = bytes.size()};
    return counted(detail::write_quietly(number, &all, 1));
}

count receive_once(int number, std::span<std::byte> buffer) {
    return counted(detail::system_call(
        [=] { return ::recv(number, buffer.data(), buffer.size(), MSG_DONTWAIT); }));
}

count send_once(int number, std::span<const std::byte> bytes) {
    return counted(detail::system_call(
        [=] { return ::send(number, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL); }));
}

// On the side pool; the bytes go through the heap, so that a swapped fiber may be away.
count read_aside(int number, std::span<std::byte> buffer) {
    using bytes = std::vector<std::byte>;
    const auto got = io::try_blocking(
        io::file_side_pool(),
        [number, size = buffer.size()]() -> std::expected<bytes, std::error_code> {
            bytes all(size);
            const count counts = counted(
                detail::system_call_again([&] { return ::read(number, all.data(), size); }));
            if (!counts) return std::unexpected(counts.error());
            all.resize(*counts);
            return all;
        });
    if (!got) return std::unexpected(got.error());
    std::ranges::copy(*got, buffer.begin());
    return got->size();
}

count write_aside(int number, std::span<const std::byte> bytes) {
    return io::try_blocking(
        io::file_side_pool(),
        [number, all = std::vector<std::byte>(bytes.begin(), bytes.end())]() -> count {
            for (;;) {
                const count put = write_once(number, all);
                if (put || put.error() != std::errc::interrupted) return put;
            }
        });
}

bool again(const count& tried) noexcept {
    return !tried && (tried.error() == std::errc::resource_unavailable_try_again ||
                      tried.error() == std::errc::interrupted);
}

}  // namespace

namespace detail {

standard_descriptor::standard_descriptor(int n, io::direction used)
    : number(n), what(kind_of(n, used)) {
    if (what == kind::file) return;
    if (auto made = io::descriptor::by_number(number)) watched = std::move(*made);
}

}  // namespace detail

namespace io {

count standard_reader::read_some(std::span<std::byte> buffer) {
    if (buffer.empty()) return 0;
    if (from_.what == kind::file) return read_aside(from_.number, buffer);
    for (;;) {
        if (const auto ready = from_.watched.wait_readable(); !ready)
            return std::unexpected(ready.error());
        WEFT_TEST_POINT("standard streams: about to read");
        const count got = from_.what == kind::socket ? receive_once(from_.number, buffer)
                                                     : read_now(from_.number, buffer);
        if (!again(got)) return got;
    }
}

count standard_writer::put(std::span<const std::byte> bytes) {
    if (bytes.empty()) return 0;
    if (to_.what == kind::file) return write_aside(to_.number, bytes);
    if (to_.what != kind::socket)
        bytes = bytes.first(std::min<std::size_t>(
            bytes.size(), to_.what == kind::pipe ? PIPE_BUF : terminal_piece));
    for (;;) {
        if (const auto ready = to_.watched.wait_writable(); !ready)
            return std::unexpected(ready.error());
        WEFT_TEST_POINT("standard streams: about to write");
        const count put =
            to_.what == kind::socket ? send_once(to_.number, bytes) : write_now(to_.number, bytes);
        if (!again(put)) return put;
    }
}

namespace {

// False: it was cancelled while it waited for its turn.
class turn {
public:
    explicit turn(timed_mutex& lock) : lock_(lock), mine_(lock.try_lock_until(no_deadline)) {}
    turn(const turn&) = delete;
    turn& operator=(const turn&) = delete;
    ~turn() {
        if (mine_) lock_.unlock();
    }
    [[nodiscard]] bool is_mine() const noexcept { return mine_; }

private:
    timed_mutex& lock_;
    const bool mine_;
};

std::unexpected<std::error_code> stopped() {
    return std::unexpected(error_code_of(this_fiber::stop_reason()));
}

}  // namespace

count standard_writer::write_some(std::span<const std::byte> bytes) {
    const turn mine(turn_);
    if (!mine.is_mine()) return stopped();
    return put(bytes);
}

result<void> standard_writer::write_all(std::span<const std::byte> bytes, std::size_t& done) {
    const turn mine(turn_);
    if (!mine.is_mine()) return stopped();
    while (done < bytes.size()) {
        const count written = put(bytes.subspan(done));
        if (!written) return std::unexpected(written.error());
        done += *written;
    }
    return {};
}

standard_reader& standard_input() {
    static auto* const input = new standard_reader(STDIN_FILENO);
    return *input;
}
standard_writer& standard_output() {
    static auto* const output = new standard_writer(STDOUT_FILENO);
    return *output;
}
standard_writer& standard_error() {
    static auto* const error = new standard_writer(STDERR_FILENO);
    return *error;
}

}  // namespace io
}  // namespace weft::inline v0
