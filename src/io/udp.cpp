// udp.cpp - see udp.hpp.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/io/udp.hpp>

#include <sys/socket.h>

#include "io/make_socket.hpp"
#include "io/system_call.hpp"

namespace weft::inline v0::io {

using detail::system_call;

namespace {

const sockaddr* name_of(const address& where) noexcept {
    return static_cast<const sockaddr*>(where.data());
}
socklen_t size_of(const address& where) noexcept { return static_cast<socklen_t>(where.size()); }

}  // namespace

result<udp_socket> udp_socket::bind(const address& where) {
    result<descriptor> made = detail::make_socket(where, SOCK_DGRAM);
    if (!made) return std::unexpected(made.error());
    const long done =
        system_call([&] { return ::bind(made->native_handle(), name_of(where), size_of(where)); });
    if (done < 0) return detail::system_error_of(done);
    return udp_socket(std::move(*made));
}

result<udp_socket> udp_socket::connect(const address& to) {
    result<descriptor> made = detail::make_socket(to, SOCK_DGRAM);
    if (!made) return std::unexpected(made.error());
    const long done =
        system_call([&] { return ::connect(made->native_handle(), name_of(to), size_of(to)); });
    if (done < 0) return detail::system_error_of(done);
    return udp_socket(std::move(*made));
}

result<datagram> udp_socket::receive(std::span<std::byte> buffer) {
    sockaddr_storage who{};
    iovec room{.iov_base = buffer.data(), .iov_len = buffer.size()};
    msghdr message{};
    message.msg_iov = &room;
    message.msg_iovlen = 1;
    const auto got = descriptor_.perform(direction::read, [&](int number) noexcept {
        message.msg_name = &who;
        message.msg_namelen = sizeof who;
        return system_call([&] { return ::recvmsg(number, &message, 0); });
    });
    if (!got) return std::unexpected(got.error());
    return datagram{.size = *got,
                    .from = address::from_system(&who, message.msg_namelen).value_or(address()),
                    .truncated = (message.msg_flags & MSG_TRUNC) != 0};
}

result<void> udp_socket::send(std::span<const std::byte> bytes) { return send_to(bytes, {}); }

result<void> udp_socket::send_to(std::span<const std::byte> bytes, const address& to) {
    const auto sent = descriptor_.perform(direction::write, [&](int number) noexcept {
        return system_call([&] {
            return ::sendto(number, bytes.data(), bytes.size(), MSG_NOSIGNAL,
                            to.size() != 0 ? name_of(to) : nullptr, size_of(to));
        });
    });
    if (!sent) return std::unexpected(sent.error());
    return {};
}

}  // namespace weft::inline v0::io
