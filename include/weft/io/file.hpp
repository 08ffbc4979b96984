// file.hpp - files, by position, without ever blocking a worker.
//
//     io::file log = io::file::open("log.txt", {.write = true, .create = true}).value();
//     log.append(bytes).value();
//     std::string text = io::read_file("settings").value();
//
// The calls that may sleep on a disk run on a side pool of their own (blocking.hpp). What the
// kernel has in memory already is read at once, on the worker. A file has no position of its own,
// so any number of fibers may use one at a time.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <weft/io/result.hpp>

namespace weft::inline v0::io {

/// How a file is opened.
struct file_options {
    bool read = false;       // read_at() may be called
    bool write = false;      // write_at(), append() and resize() may be called
    bool create = false;     // if there is none
    bool exclusive = false;  // with create: fails if there is one
    bool truncate = false;   // what was in it is gone
    /// Of a file that is made; less the process's umask.
    unsigned permissions = 0666;
};
/// One that is there.
inline constexpr file_options for_reading = {.read = true};
/// One that is made, or made empty.
inline constexpr file_options for_writing = {.write = true, .create = true, .truncate = true};

/// Thread-safe: all but construction, moves, close() and destruction.
///
/// All members. Suspends: maybe. Cancel: reported, before it begins; what has begun is waited for
/// and its result returned. From: any fiber or thread. Fails: std::errc::operation_canceled,
/// std::errc::timed_out, and what the system says.
class file {
public:
    /// No file. Calls fail with std::errc::bad_file_descriptor.
    file() noexcept = default;
    file(file&& other) noexcept
        : descriptor_(std::exchange(other.descriptor_, -1)), writes_(other.writes_) {}
    file& operator=(file&& other) noexcept;
    /// Closes it; of one that was opened to write, for a fiber, on a side thread: what was written
    /// may have to go to a disk or a server first. Suspends: then. Cancel: ignored.
    ~file();

    /// Fails: std::errc::invalid_argument for options without read and write, or for a path with a
    /// zero in it; and what the system says: std::errc::no_such_file_or_directory, ...
    [[nodiscard]] static result<file> open(std::string_view path,
                                           const file_options& options = for_reading);

    /// How many bytes came; fewer than asked for only at the end of the file, 0 behind it.
    [[nodiscard]] result<std::size_t> read_at(std::uint64_t offset, std::span<std::byte> to);
    /// All of it, or an error; then some of it may be there.
    [[nodiscard]] result<void> write_at(std::uint64_t offset, std::span<const std::byte> from);
    /// Behind the end, whoever else appends at the time; all of it in one piece, unless the disk is
    /// full.
    [[nodiscard]] result<void> append(std::span<const std::byte> from);

    /// Until what was written is on the disk.
    [[nodiscard]] result<void> sync();
    /// In bytes, now.
    [[nodiscard]] std::expected<std::uint64_t, std::error_code> size();
    /// Cuts it off, or adds zeros.
    [[nodiscard]] result<void> resize(std::uint64_t size);

    /// Tells what the destructor cannot. The file is closed whatever it says, unless it was
    /// cancelled before it began. From: the last one to use it.
    [[nodiscard]] result<void> close();

    /// Whether there is a file.
    [[nodiscard]] bool is_open() const noexcept { return descriptor_ >= 0; }
    /// The system's; -1: none.
    [[nodiscard]] int descriptor() const noexcept { return descriptor_; }

private:
    file(int descriptor, bool writes) noexcept : descriptor_(descriptor), writes_(writes) {}

    void close_quietly() noexcept;

    int descriptor_ = -1;
    bool writes_ = false;
};

/// All that is in a file.
/// Fails: as file's members; std::errc::file_too_large if there are more bytes than `most`.
[[nodiscard]] result<std::string> read_file(std::string_view path,
                                            std::size_t most = std::size_t{1} << 30);

/// Makes it, or replaces what was in it.
/// Fails: as file's members.
[[nodiscard]] result<void> write_file(std::string_view path, std::span<const std::byte> bytes);
[[nodiscard]] inline result<void> write_file(std::string_view path, std::string_view text) {
    return write_file(path, std::as_bytes(std::span(text)));
}

}  // namespace weft::inline v0::io
