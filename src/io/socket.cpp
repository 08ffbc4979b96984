// socket.cpp - what sockets have in common: options, addresses, reading and writing, accepting.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/io/socket.hpp>

#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>

#include <weft/fiber/detail/deadline_at.hpp>
#include <weft/fiber/this_fiber.hpp>

#include "io/buffers.hpp"
#include "io/make_socket.hpp"
#include "io/system_call.hpp"

namespace weft::inline v0::io {

using detail::system_call;
using detail::system_error_of;

namespace {

// A call that never says "not now".
template <class Call>
result<std::size_t> ask(const descriptor& asked, Call call) {
    return asked.call(
        [&](int number) noexcept { return system_call([&] { return call(number); }); });
}

template <class Call>
result<address> address_by(const descriptor& asked, Call call) {
    sockaddr_storage where{};
    socklen_t size = sizeof where;
    const auto done = ask(asked, [&](int number) {
        return call(number, reinterpret_cast<sockaddr*>(&where), &size);
    });
    if (!done) return std::unexpected(done.error());
    return address::from_system(&where, size);
}

result<void> without_value(const result<std::size_t>& done) {
    if (!done) return std::unexpected(done.error());
    return {};
}

// More would keep others waiting too long whom the same reactor tells.
constexpr std::size_t most_received_early = 16384;

// One try each, of a span that stands where it was asked for. Not inlined, as system_call().
[[gnu::noinline]] long receive(void* buffer, int number) noexcept {
    const auto& into = *static_cast<const std::span<std::byte>*>(buffer);
    const ssize_t size = ::recv(number, into.data(), into.size(), 0);
    return size < 0 ? -static_cast<long>(errno) : size;
}

[[gnu::noinline]] long transmit(void* bytes, int number) noexcept {
    const auto& from = *static_cast<const std::span<const std::byte>*>(bytes);
    const ssize_t size = ::send(number, from.data(), from.size(), MSG_NOSIGNAL);
    return size < 0 ? -static_cast<long>(errno) : size;
}

int limited(std::size_t bytes) noexcept {
    return static_cast<int>(std::min<std::size_t>(bytes, 0x3fff'ffff));
}

}  // namespace

result<address> socket_base::local_address() const {
    return address_by(descriptor_, ::getsockname);
}

result<address> socket_base::peer_address() const { return address_by(descriptor_, ::getpeername); }

result<void> socket_base::set_option(int level, int name, int value) {
    return without_value(ask(descriptor_, [&](int number) {
        return ::setsockopt(number, level, name, &value, sizeof value);
    }));
}

result<int> socket_base::option(int level, int name) const {
    int value = 0;
    socklen_t size = sizeof value;
    const auto done = ask(
        descriptor_, [&](int number) { return ::getsockopt(number, level, name, &value, &size); });
    if (!done) return std::unexpected(done.error());
    return value;
}

result<void> socket_base::set_receive_buffer(std::size_t bytes) {
    return set_option(SOL_SOCKET, SO_RCVBUF, limited(bytes));
}

result<void> socket_base::set_send_buffer(std::size_t bytes) {
    return set_option(SOL_SOCKET, SO_SNDBUF, limited(bytes));
}

// --- streams

// Of no bytes: there is nothing to wait for, though recv(2) would; read(2) does not.
result<std::size_t> stream_socket::read_some(std::span<std::byte> buffer) {
    if (buffer.empty()) [[unlikely]]
        return descriptor_.read_some(buffer);
    return descriptor_.perform(
        direction::read, detail::attempt{&receive, &buffer,
                                         short_read_ == short_read::says_empty ? buffer.size() : 0,
                                         buffer.size() <= most_received_early});
}

result<std::size_t> stream_socket::read_some(std::span<const std::span<std::byte>> buffers) {
    return descriptor_.read_some(buffers);
}

result<std::size_t> stream_socket::write_some(std::span<const std::byte> bytes) {
    return descriptor_.perform(direction::write, detail::attempt{&transmit, &bytes});
}

result<std::size_t> stream_socket::write_some(std::span<const std::span<const std::byte>> buffers) {
    detail::io_vector vector(buffers);
    msghdr message{};
    message.msg_iov = vector.data();
    message.msg_iovlen = static_cast<std::size_t>(vector.count());
    return descriptor_.perform(direction::write, [&](int number) noexcept {
        return system_call([&] { return ::sendmsg(number, &message, MSG_NOSIGNAL); });
    });
}

result<void> stream_socket::shutdown_write() {
    const auto ended = ask(descriptor_, [](int number) { return ::shutdown(number, SHUT_WR); });
    if (ended) descriptor_.end_writing();
    return without_value(ended);
}

result<void> stream_socket::shutdown_read() {
    return without_value(ask(descriptor_, [](int number) { return ::shutdown(number, SHUT_RD); }));
}

// --- listeners

result<descriptor> listener_socket::bind_and_listen(const address& where,
                                                    const listen_options& options) noexcept {
    result<descriptor> made = detail::make_socket(where, SOCK_STREAM);
    if (!made) return made;
    const int number = made->native_handle();
    const auto set = [number](int level, int name, int value) {
        return system_call([&] { return ::setsockopt(number, level, name, &value, sizeof value); });
    };
    const bool is_local = where.family() == address_family::local;
    long done = 0;
    if (options.reuse_address && !is_local) done = set(SOL_SOCKET, SO_REUSEADDR, 1);
    if (done >= 0 && options.reuse_port) done = set(SOL_SOCKET, SO_REUSEPORT, 1);
    if (done >= 0 && where.family() == address_family::ipv6)
        done = set(IPPROTO_IPV6, IPV6_V6ONLY, options.ipv6_only ? 1 : 0);
    const auto* const name = static_cast<const sockaddr*>(where.data());
    const auto size = static_cast<socklen_t>(where.size());
    if (done >= 0) done = system_call([&] { return ::bind(number, name, size); });
    if (done >= 0) done = system_call([&] { return ::listen(number, options.backlog); });
    if (done < 0) return system_error_of(done);
    return made;
}

namespace {

// What accept(2) says about one connection that ended meanwhile; the next may be well.
bool ended_meanwhile(int error) noexcept {
    switch (error) {
        case ECONNABORTED:
        case EPERM:  // a firewall's rule
        case EPROTO:
        case ENOPROTOOPT:
        case ENETDOWN:
        case ENETUNREACH:
        case EHOSTDOWN:
        case EHOSTUNREACH:
        case ENONET:
            return true;
        default:
            return false;
    }
}

// What will pass when others give something back.
bool is_shortage(int error) noexcept {
    return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

// By address: without descriptors UBSan cannot look at the object that a call is made on.
bool is_from_system(std::error_code error) noexcept {
    return &error.category() == &std::system_category();
}

// A listener is never writable: so this waits for the time, or until it is closed or cancelled.
// Where it would need a descriptor to wait, and there is none, it sleeps.
result<void> sit_out(descriptor& listener, std::chrono::nanoseconds pause) {
    const result<void> waited =
        listener.wait_writable(deadline_after(weft::detail::now_for_sleep(), pause));
    if (waited) return {};
    if (is_from_system(waited.error())) return sleep_for(pause);
    if (waited.error() == std::errc::timed_out) return {};
    return waited;
}

}  // namespace

result<descriptor> listener_socket::accept_descriptor(address* from) {
    auto pause = pause_;
    unsigned lost = 0;
    for (;;) {
        sockaddr_storage who{};
        socklen_t size = sizeof who;
        const auto taken = descriptor_.perform(direction::read, [&](int number) noexcept {
            size = sizeof who;
            return system_call([&] {
                return ::accept4(number, reinterpret_cast<sockaddr*>(&who), &size,
                                 SOCK_NONBLOCK | SOCK_CLOEXEC);
            });
        });
        std::error_code error;
        if (taken) {
            if (from != nullptr) *from = address::from_system(&who, size).value_or(address());
            result<descriptor> made = descriptor::adopt_prepared(static_cast<int>(*taken));
            if (made) return made;
            error = {ENOMEM, std::system_category()};  // ours: its connection is closed
        } else {
            error = taken.error();
        }
        if (!is_from_system(error)) return std::unexpected(error);
        if (ended_meanwhile(error.value())) {
            aborted_.add();
            // So many in a row are rather a rule of the system's, which will say the same again.
            if (++lost % 64 != 0) continue;
        } else if (is_shortage(error.value())) {
            pauses_.add();
        } else {
            return std::unexpected(error);
        }
        if (const auto over = sit_out(descriptor_, pause); !over)
            return std::unexpected(over.error());
        pause = std::min(2 * pause, 100 * pause_);
    }
}

}  // namespace weft::inline v0::io
