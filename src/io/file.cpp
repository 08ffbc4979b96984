// file.cpp - files over a side pool.
//
// The buffer of a fiber is used where it lies, for a call that has begun is waited for. That of a
// swapped one is not there meanwhile: then the bytes go through the heap.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/io/file.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <string>
#include <vector>

#include <weft/fiber/detail/swapped.hpp>
#include <weft/io/blocking.hpp>
#include <weft/scope/deadline.hpp>

#include "io/write_quietly.hpp"

namespace weft::inline v0::io {

namespace {

using report = std::expected<void, std::error_code>;
using count_report = std::expected<std::size_t, std::error_code>;

std::unexpected<std::error_code> said(std::errc code) {
    return std::unexpected(std::make_error_code(code));
}
std::unexpected<std::error_code> said_errno() {
    return std::unexpected(std::error_code(errno, std::system_category()));
}

template <class F>
auto aside(F&& function) {
    return try_blocking(file_side_pool(), std::forward<F>(function));
}

// The most that one system call takes.
constexpr std::size_t most_at_once = 0x7ffff000;

bool is_offset(std::uint64_t offset, std::size_t size) noexcept {
    constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<off_t>::max());
    return offset <= most && size <= most - offset;
}

// --- the calls, on whatever thread may block

count_report read_all(int descriptor, std::uint64_t offset, std::span<std::byte> to) {
    std::size_t got = 0;
    while (got < to.size()) {
        const ssize_t n =
            ::pread(descriptor, to.data() + got, std::min(to.size() - got, most_at_once),
                    static_cast<off_t>(offset + got));
        if (n == 0) break;
        if (n > 0)
            got += static_cast<std::size_t>(n);
        else if (errno != EINTR)
            return said_errno();
    }
    return got;
}

template <class Write>
report write_all(std::span<const std::byte> from, Write write) {
    std::size_t sent = 0;
    while (sent < from.size()) {
        const ssize_t n = write(from.subspan(sent, std::min(from.size() - sent, most_at_once)));
        if (n >= 0)
            sent += static_cast<std::size_t>(n);
        else if (errno != EINTR)
            return said_errno();
    }
    return {};
}

template <class Call>
report repeat(Call call) {
    while (call() != 0)
        if (errno != EINTR) return said_errno();
    return {};
}

// What is in memory already; fewer bytes than that are there says nothing about the end. More than
// this much would keep the worker from others: it is left to a side thread.
constexpr std::size_t most_cached = 1 << 20;

std::size_t read_cached(int descriptor, std::uint64_t offset, std::span<std::byte> to) noexcept {
    const iovec part{.iov_base = to.data(), .iov_len = std::min(to.size(), most_cached)};
    const ssize_t n = ::preadv2(descriptor, &part, 1, static_cast<off_t>(offset), RWF_NOWAIT);
    return n > 0 ? static_cast<std::size_t>(n) : 0;
}

/// The same bytes where others may read them while this fiber waits.
class steady_bytes {
public:
    explicit steady_bytes(std::span<const std::byte> from) : bytes_(from) {
        if (!weft::detail::on_shared_stack(from.data())) return;
        copy_.assign(from.begin(), from.end());
        bytes_ = copy_;
    }
    steady_bytes(const steady_bytes&) = delete;
    steady_bytes& operator=(const steady_bytes&) = delete;
    [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return bytes_; }

private:
    std::vector<std::byte> copy_;
    std::span<const std::byte> bytes_;
};

int flags_of(const file_options& options) noexcept {
    int flags = options.read && options.write ? O_RDWR : options.write ? O_WRONLY : O_RDONLY;
    if (options.create) flags |= O_CREAT;
    if (options.exclusive) flags |= O_EXCL;
    if (options.truncate) flags |= O_TRUNC;
    return flags | O_CLOEXEC | O_NOCTTY;
}

}  // namespace

// --- open and close

std::expected<file, std::error_code> file::open(std::string_view path,
                                                const file_options& options) {
    if ((!options.read && !options.write) || path.contains('\0') ||
        (options.truncate && !options.write) || (options.exclusive && !options.create))
        return said(std::errc::invalid_argument);
    const auto opened =
        aside([name = std::string(path), options]() -> std::expected<int, std::error_code> {
            for (;;) {
                const int got = ::open(name.c_str(), flags_of(options), options.permissions);
                if (got >= 0) return got;
                if (errno != EINTR) return said_errno();
            }
        });
    if (!opened) return std::unexpected(opened.error());
    return file(*opened, options.write);
}

file& file::operator=(file&& other) noexcept {
    if (this == &other) return *this;
    close_quietly();
    descriptor_ = std::exchange(other.descriptor_, -1);
    writes_ = other.writes_;
    return *this;
}

file::~file() { close_quietly(); }

void file::close_quietly() noexcept {
    if (!is_open()) return;
    if (writes_ && this_fiber::get_id()) {
        try {
            if (shield([this] { return close(); }) || !is_open()) return;
        } catch (const std::bad_alloc&) {}  // then here
    }
    ::close(descriptor_);
}

report file::close() {
    if (!is_open()) return said(std::errc::bad_file_descriptor);
    const auto closed = aside([descriptor = descriptor_]() -> std::expected<int, std::error_code> {
        return ::close(descriptor) == 0 || errno == EINTR ? 0 : errno;
    });
    if (!closed) return std::unexpected(closed.error());
    descriptor_ = -1;
    if (*closed != 0) return std::unexpected(std::error_code(*closed, std::system_category()));
    return {};
}

// --- bytes

count_report file::read_at(std::uint64_t offset, std::span<std::byte> to) {
    if (!is_open()) return said(std::errc::bad_file_descriptor);
    if (!is_offset(offset, to.size())) return said(std::errc::invalid_argument);
    if (this_fiber::stop_requested())
        return std::unexpected(error_code_of(this_fiber::stop_reason()));
    const std::size_t cached = to.empty() ? 0 : read_cached(descriptor_, offset, to);
    const std::span<std::byte> rest = to.subspan(cached);
    if (rest.empty() && cached != 0) return cached;
    count_report got;
    if (weft::detail::on_shared_stack(to.data())) {
        const auto away =
            aside([descriptor = descriptor_, offset = offset + cached,
                   size = rest.size()]() -> std::expected<std::vector<std::byte>, std::error_code> {
                std::vector<std::byte> bytes(size);
                const count_report n = read_all(descriptor, offset, bytes);
                if (!n) return std::unexpected(n.error());
                bytes.resize(*n);
                return bytes;
            });
        if (away) std::ranges::copy(*away, rest.begin());
        got = away ? count_report(away->size()) : std::unexpected(away.error());
    } else {
        got = aside([descriptor = descriptor_, offset = offset + cached, rest] {
            return read_all(descriptor, offset, rest);
        });
    }
    if (!got) return got;  // fewer bytes would mean that the file ends there
    return cached + *got;
}

report file::write_at(std::uint64_t offset, std::span<const std::byte> from) {
    if (!is_open()) return said(std::errc::bad_file_descriptor);
    if (!is_offset(offset, from.size())) return said(std::errc::invalid_argument);
    const steady_bytes steady(from);
    return aside([descriptor = descriptor_, offset, bytes = steady.bytes()]() mutable -> report {
        return write_all(bytes, [&](std::span<const std::byte> part) {
            const ssize_t n =
                ::pwrite(descriptor, part.data(), part.size(), static_cast<off_t>(offset));
            if (n > 0) offset += static_cast<std::uint64_t>(n);
            return n;
        });
    });
}

namespace {

// For a kernel, or an emulator, that does not know the flag: the file once more, to append only.
ssize_t append_by_another(int descriptor, std::span<const std::byte> part) {
    const std::string path = "/proc/self/fd/" + std::to_string(descriptor);
    const int appends = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
    if (appends < 0) return -1;
    const long n =
        detail::write_quietly([=] { return ::write(appends, part.data(), part.size()); });
    ::close(appends);
    if (n < 0) errno = static_cast<int>(-n);
    return n < 0 ? -1 : n;
}

}  // namespace

report file::append(std::span<const std::byte> from) {
    if (!is_open()) return said(std::errc::bad_file_descriptor);
    const steady_bytes steady(from);
    return aside([descriptor = descriptor_, bytes = steady.bytes()]() -> report {
        return write_all(bytes, [&](std::span<const std::byte> part) {
            const iovec one{.iov_base = const_cast<std::byte*>(part.data()),
                            .iov_len = part.size()};
            // What was opened may be a pipe by name.
            const long n = detail::write_quietly(
                [&] { return ::pwritev2(descriptor, &one, 1, -1, RWF_APPEND); });
            if (n == -ENOSYS || n == -EOPNOTSUPP) return append_by_another(descriptor, part);
            if (n < 0) errno = static_cast<int>(-n);
            return n < 0 ? ssize_t{-1} : ssize_t{n};
        });
    });
}

// --- the file as a whole

report file::sync() {
    return aside(
        [descriptor = descriptor_] { return repeat([&] { return ::fsync(descriptor); }); });
}

std::expected<std::uint64_t, std::error_code> file::size() {
    return aside([descriptor = descriptor_]() -> std::expected<std::uint64_t, std::error_code> {
        struct stat about {};
        if (::fstat(descriptor, &about) != 0) return said_errno();
        return static_cast<std::uint64_t>(about.st_size);
    });
}

report file::resize(std::uint64_t size) {
    if (!is_offset(size, 0)) return said(std::errc::invalid_argument);
    return aside([descriptor = descriptor_, size] {
        return repeat([&] { return ::ftruncate(descriptor, static_cast<off_t>(size)); });
    });
}

// --- whole files

namespace {

std::expected<std::string, std::error_code> whole_text(int descriptor, std::size_t most) {
    // Some say that they are empty and are not (those of /proc).
    std::string all;
    for (std::size_t room = 4096;; room = std::min(room * 2, std::size_t{1} << 24)) {
        const std::size_t before = all.size();
        if (before > most) return said(std::errc::file_too_large);
        all.resize(before + room);
        const auto n =
            read_all(descriptor, before, std::as_writable_bytes(std::span(all).subspan(before)));
        if (!n) return std::unexpected(n.error());
        all.resize(before + *n);
        if (*n < room) break;
    }
    if (all.size() > most) return said(std::errc::file_too_large);
    return all;
}

}  // namespace

// In one call, as it would be in a plain thread.
std::expected<std::string, std::error_code> read_file(std::string_view path, std::size_t most) {
    return aside([name = std::string(path), most]() -> std::expected<std::string, std::error_code> {
        const std::expected<file, std::error_code> opened = file::open(name);
        if (!opened) return std::unexpected(opened.error());
        return whole_text(opened->descriptor(), most);
    });
}

report write_file(std::string_view path, std::span<const std::byte> bytes) {
    const steady_bytes steady(bytes);
    return aside([name = std::string(path), all = steady.bytes()]() -> report {
        std::expected<file, std::error_code> opened = file::open(name, for_writing);
        if (!opened) return std::unexpected(opened.error());
        if (const report written = opened->write_at(0, all); !written) return written;
        return opened->close();
    });
}

}  // namespace weft::inline v0::io
