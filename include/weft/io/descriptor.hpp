// descriptor.hpp - a descriptor of the operating system that fibers wait on.
//
// What every socket and pipe is made of, and the way in for foreign libraries. A call is tried
// first; only if the kernel says "not now" does the fiber wait, and it is registered with the
// reactor of its worker once, at its first wait (src/io/watch.hpp has the protocol).
//
// One fiber may read while another writes; a second reader, or a second writer, that has to wait
// aborts. Closing it from a third wakes both with errc::closed; the kernel's number is given back
// when the last of them has left, so it is never another descriptor under their hands. Its first
// wait on another executor moves it there; with somebody waiting on it that aborts.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

#include <weft/base/clock_source.hpp>
#include <weft/io/result.hpp>

namespace weft::inline v0 {

namespace io {
/// What a call does to a descriptor, and so what it may have to wait for.
enum class direction : unsigned char {
    read,   // to receive, to accept
    write,  // to send, to connect
};
}

namespace detail {
class watched;  // src/io/watched.hpp
struct standard_descriptor;

/// One try of a call: its result, or minus errno. It must not block.
struct attempt {
    long (*call)(void* function, int descriptor) noexcept;
    void* function;
    /// Of a read from a stream socket: a result below that says that nothing is left for now. 0: it
    /// says nothing.
    std::size_t full = 0;
    /// It does not mind where it is called: its reactor may do so for a fiber that waits.
    bool anywhere = false;
};
}  // namespace detail

namespace detail {
/// descriptor::wait(); nullptr: of none. Its caller may be a swapped fiber that waits, which keeps
/// every frame: so there is none between the two.
[[nodiscard]] io::result<void> wait_until_ready(watched* waited, io::direction which,
                                                time_point deadline);
}  // namespace detail

namespace io {

/// Thread-safe: a reader, a writer and close(), at once. All else is for one at a time, with nobody
/// inside; what is moved from or assigned to must have nobody inside.
class descriptor {
public:
    /// None.
    descriptor() noexcept = default;
    descriptor(descriptor&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
    descriptor& operator=(descriptor&& other) noexcept;
    ~descriptor();

    /// Takes over a number: it is made non-blocking and close-on-exec, and closed in the end, also
    /// if this fails.
    /// Fails: as fcntl(2) does; std::errc::not_enough_memory.
    [[nodiscard]] static result<descriptor> adopt(int number) noexcept;
    /// The same for one that is both already.
    [[nodiscard]] static result<descriptor> adopt_prepared(int number) noexcept;
    /// For one that belongs to somebody else: a copy of the number, so that its owner may close it
    /// before this or after it; what is open ends when both are closed. Its flags stay: without
    /// O_NONBLOCK, wait before you call anything that may block.
    /// Fails: as dup(2) does; std::errc::not_enough_memory.
    [[nodiscard]] static result<descriptor> borrow(int number) noexcept;

    /// Bytes that are there; 0: no more will come.
    /// Suspends: maybe. Cancel: reported, and nothing was read. From: any fiber or thread. Fails:
    /// as read(2) does; errc::closed.
    [[nodiscard]] result<std::size_t> read_some(std::span<std::byte> buffer);
    /// Into several buffers, at most 64 of them. The same otherwise.
    [[nodiscard]] result<std::size_t> read_some(std::span<const std::span<std::byte>> buffers);

    /// As many bytes as there is room for, at least one (none, if there are none).
    /// Suspends: maybe. Cancel: reported, and nothing was written. From: any fiber or thread.
    /// Fails: as write(2) does (std::errc::broken_pipe, without a signal); errc::closed.
    [[nodiscard]] result<std::size_t> write_some(std::span<const std::byte> bytes);
    /// From several buffers, at most 64 of them. The same otherwise.
    [[nodiscard]] result<std::size_t> write_some(
        std::span<const std::span<const std::byte>> buffers);

    /// Until a call in that direction would not block, or has failed.
    /// Suspends: maybe. Cancel: reported. From: any fiber or thread. Fails: std::errc::timed_out;
    /// errc::closed. Files are always ready.
    [[nodiscard]] result<void> wait(direction which, time_point deadline = no_deadline) {
        return detail::wait_until_ready(state_, which, deadline);
    }
    /// As wait() in that direction.
    [[nodiscard]] result<void> wait_readable(time_point deadline = no_deadline) {
        return wait(direction::read, deadline);
    }
    /// As wait() in that direction.
    [[nodiscard]] result<void> wait_writable(time_point deadline = no_deadline) {
        return wait(direction::write, deadline);
    }

    /// Any other call: function(number) noexcept does it and returns its result, or minus errno
    /// (not inlined into what may switch: errno has another address in another thread). It is
    /// repeated after EINTR, and after a wait on EAGAIN. `full`: detail::attempt.
    /// Suspends: maybe. Cancel: reported, and the call was not made. From: any fiber or thread.
    /// Fails: as the call does; errc::closed.
    template <class Function>
        requires std::is_nothrow_invocable_r_v<long, Function&, int>
    [[nodiscard]] result<std::size_t> perform(direction which, Function function,
                                              std::size_t full = 0) {
        return perform(which, detail::attempt{[](void* f, int number) noexcept -> long {
                                                  return (*static_cast<Function*>(f))(number);
                                              },
                                              &function, full});
    }
    [[nodiscard]] result<std::size_t> perform(direction which, const detail::attempt& attempt);

    /// One that never has to wait, as those that ask or set something.
    /// Suspends: never. Cancel: ignored. From: any fiber or thread. Fails: as the call does;
    /// errc::closed.
    template <class Function>
        requires std::is_nothrow_invocable_r_v<long, Function&, int>
    [[nodiscard]] result<std::size_t> call(Function function) const {
        return call(detail::attempt{[](void* f, int number) noexcept -> long {
                                        return (*static_cast<Function*>(f))(number);
                                    },
                                    &function});
    }
    [[nodiscard]] result<std::size_t> call(const detail::attempt& asked) const;

    /// Once; then it does nothing. Whoever waits on it gets errc::closed, and so do all calls
    /// after it.
    /// Suspends: never. From: any fiber or thread. Fails: never.
    void close() noexcept;

    /// The number goes back to the caller, with nobody inside; -1: there is none.
    [[nodiscard]] int release() noexcept;

    /// -1: none, or closed. It stays the property of this object.
    [[nodiscard]] int native_handle() const noexcept;
    [[nodiscard]] explicit operator bool() const noexcept { return native_handle() >= 0; }

private:
    friend detail::standard_descriptor;
    friend class stream_socket;

    explicit descriptor(detail::watched* state) noexcept : state_(state) {}
    /// The number itself, whatever it stands for from one time to the next; it is never closed.
    [[nodiscard]] static result<descriptor> by_number(int number) noexcept;
    /// No more will be written: whoever waits for room tries again, and is told so.
    void end_writing() noexcept;

    detail::watched* state_ = nullptr;
};

/// Until a read of that number would not block, or has failed: for foreign libraries, which may
/// close it any time after this. Each call registers it anew: who waits often, keeps a
/// descriptor::borrow().
/// Suspends: maybe. Cancel: reported. From: any fiber or thread. Fails: std::errc::timed_out;
/// std::errc::bad_file_descriptor; as dup(2) does.
[[nodiscard]] result<void> wait_readable(int number, time_point deadline = no_deadline);
/// The same for a write.
[[nodiscard]] result<void> wait_writable(int number, time_point deadline = no_deadline);

}  // namespace io
}  // namespace weft::inline v0
