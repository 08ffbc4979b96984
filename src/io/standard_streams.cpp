// standard_streams.cpp - see standard_streams.hpp.
//
// A write to something that blocks must be no larger than what fits when poll(2) says that it is
// writable: PIPE_BUF for a pipe, 256 bytes for a terminal. A socket takes MSG_DONTWAIT.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/io/standard_streams.hpp>

#include <fcntl.h>
#include <limits.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <vector>

#include <weft/fiber/cancel.hpp>
#include <weft/io/blocking.hpp>

namespace weft::inline v0 {

namespace {

using kind = detail::standard_descriptor::kind;
using count = io::result<std::size_t>;

constexpr std::size_t terminal_piece = 256;

kind kind_of(int number) noexcept {
    struct stat about {};
    if (::fstat(number, &about) != 0) return kind::file;
    if (S_ISSOCK(about.st_mode)) return kind::socket;
    if (S_ISFIFO(about.st_mode)) return kind::pipe;
    return ::isatty(number) == 1 ? kind::terminal : kind::file;
}

count counted(ssize_t n) {
    if (n < 0) return std::unexpected(std::error_code(errno, std::system_category()));
    return static_cast<std::size_t>(n);
}

// Holds SIGPIPE back from this thread, and takes the one that its write has caused.
class no_broken_pipe_signal {
public:
    no_broken_pipe_signal() noexcept {
        ::sigemptyset(&pipe_);
        ::sigaddset(&pipe_, SIGPIPE);
        sigset_t pending;
        ::sigpending(&pending);
        was_pending_ = ::sigismember(&pending, SIGPIPE) == 1;
        ::pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
    }
    no_broken_pipe_signal(const no_broken_pipe_signal&) = delete;
    no_broken_pipe_signal& operator=(const no_broken_pipe_signal&) = delete;
    ~no_broken_pipe_signal() {
        const int error = errno;
        const timespec at_once{};
        if (!was_pending_)
            while (::sigtimedwait(&pipe_, nullptr, &at_once) < 0 && errno == EINTR) {}
        ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
        errno = error;
    }

private:
    sigset_t pipe_;
    sigset_t before_;
    bool was_pending_;
};

ssize_t write_once(int number, std::span<const std::byte> bytes) noexcept {
    const no_broken_pipe_signal guard;
    return ::write(number, bytes.data(), bytes.size());
}

// On the side pool; the bytes go through the heap, so that a swapped fiber may be away.
count read_aside(int number, std::span<std::byte> buffer) {
    using bytes = std::vector<std::byte>;
    const auto got =
        io::try_blocking([number, size = buffer.size()]() -> std::expected<bytes, std::error_code> {
            bytes all(size);
            ssize_t n = 0;
            while ((n = ::read(number, all.data(), size)) < 0 && errno == EINTR) {}
            if (const count counts = counted(n); !counts) return std::unexpected(counts.error());
            all.resize(static_cast<std::size_t>(n));
            return all;
        });
    if (!got) return std::unexpected(got.error());
    std::ranges::copy(*got, buffer.begin());
    return got->size();
}

count write_aside(int number, std::span<const std::byte> bytes) {
    return io::try_blocking(
        [number, all = std::vector<std::byte>(bytes.begin(), bytes.end())]() -> count {
            for (;;) {
                const ssize_t n = write_once(number, all);
                if (n >= 0 || errno != EINTR) return counted(n);
            }
        });
}

bool again(const count& tried) noexcept {
    return !tried && (tried.error() == std::errc::resource_unavailable_try_again ||
                      tried.error() == std::errc::interrupted);
}

}  // namespace

namespace detail {

standard_descriptor::standard_descriptor(int n) : number(n), what(kind_of(n)) {
    if (what == kind::file) return;
    if (auto borrowed = io::descriptor::borrow(number)) watched = std::move(*borrowed);
}

}  // namespace detail

namespace io {

count standard_reader::read_some(std::span<std::byte> buffer) {
    if (buffer.empty()) return 0;
    if (from_.what == kind::file) return read_aside(from_.number, buffer);
    for (;;) {
        if (const auto ready = from_.watched.wait_readable(); !ready)
            return std::unexpected(ready.error());
        const count got =
            counted(from_.what == kind::socket
                        ? ::recv(from_.number, buffer.data(), buffer.size(), MSG_DONTWAIT)
                        : ::read(from_.number, buffer.data(), buffer.size()));
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
        const count put =
            counted(to_.what == kind::socket ? ::send(to_.number, bytes.data(), bytes.size(),
                                                      MSG_DONTWAIT | MSG_NOSIGNAL)
                                             : write_once(to_.number, bytes));
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

result<void> standard_writer::write_all(std::span<const std::byte> bytes) {
    const turn mine(turn_);
    if (!mine.is_mine()) return stopped();
    while (!bytes.empty()) {
        const count written = put(bytes);
        if (!written) return std::unexpected(written.error());
        bytes = bytes.subspan(*written);
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
