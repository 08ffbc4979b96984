// tcp.cpp - see tcp.hpp.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/io/tcp.hpp>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "io/make_socket.hpp"
#include "io/system_call.hpp"

namespace weft::inline v0::io {

namespace {

result<tcp_stream> prepared(result<descriptor> made) {
    if (!made) return std::unexpected(made.error());
    const int on = 1;
    ::setsockopt(made->native_handle(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return tcp_stream(std::move(*made));
}

}  // namespace

result<tcp_stream> tcp_stream::connect(const address& to) {
    if (to.family() == address_family::local)
        return std::unexpected(std::make_error_code(std::errc::address_family_not_supported));
    result<descriptor> made = detail::make_socket(to, SOCK_STREAM);
    if (!made) return std::unexpected(made.error());
    if (const auto done = detail::connect_socket(*made, to); !done)
        return std::unexpected(done.error());
    return prepared(std::move(made));
}

result<void> tcp_stream::set_no_delay(bool on) {
    return set_option(IPPROTO_TCP, TCP_NODELAY, on ? 1 : 0);
}

result<void> tcp_stream::set_keep_alive(bool on) {
    return set_option(SOL_SOCKET, SO_KEEPALIVE, on ? 1 : 0);
}

result<void> tcp_stream::set_reset_on_close(bool on) {
    const linger value{.l_onoff = on ? 1 : 0, .l_linger = 0};
    const auto done = descriptor_.call([&](int number) noexcept {
        return detail::system_call(
            [&] { return ::setsockopt(number, SOL_SOCKET, SO_LINGER, &value, sizeof value); });
    });
    if (!done) return std::unexpected(done.error());
    return {};
}

result<tcp_listener> tcp_listener::bind(const address& where, const listen_options& options) {
    if (where.family() == address_family::local)
        return std::unexpected(std::make_error_code(std::errc::address_family_not_supported));
    result<descriptor> made = bind_and_listen(where, options);
    if (!made) return std::unexpected(made.error());
    return tcp_listener(std::move(*made), options);
}

result<tcp_stream> tcp_listener::accept() { return prepared(accept_descriptor(nullptr)); }

result<tcp_stream> tcp_listener::accept(address& from) {
    return prepared(accept_descriptor(&from));
}

}  // namespace weft::inline v0::io
