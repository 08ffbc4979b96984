// unix.cpp - see unix.hpp.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/io/unix.hpp>

#include <sys/socket.h>

#include "io/make_socket.hpp"
#include "io/system_call.hpp"

namespace weft::inline v0::io {

namespace {

std::unexpected<std::error_code> not_local() noexcept {
    return std::unexpected(std::make_error_code(std::errc::address_family_not_supported));
}

}  // namespace

result<unix_stream> unix_stream::connect(const address& to) {
    if (to.family() != address_family::local) return not_local();
    result<descriptor> made = detail::make_socket(to, SOCK_STREAM);
    if (!made) return std::unexpected(made.error());
    if (const auto done = detail::connect_socket(*made, to); !done)
        return std::unexpected(done.error());
    return unix_stream(std::move(*made));
}

result<std::pair<unix_stream, unix_stream>> unix_stream::pair() {
    int both[2];
    const long done = detail::system_call(
        [&] { return ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, both); });
    if (done < 0) return detail::system_error_of(done);
    result<descriptor> first = descriptor::adopt_prepared(both[0]);
    result<descriptor> second = descriptor::adopt_prepared(both[1]);
    if (!first) return std::unexpected(first.error());
    if (!second) return std::unexpected(second.error());
    return std::pair(unix_stream(std::move(*first)), unix_stream(std::move(*second)));
}

result<unix_listener> unix_listener::bind(const address& where, const listen_options& options) {
    if (where.family() != address_family::local) return not_local();
    result<descriptor> made = bind_and_listen(where, options);
    if (!made) return std::unexpected(made.error());
    return unix_listener(std::move(*made), options);
}

result<unix_stream> unix_listener::accept() {
    result<descriptor> taken = accept_descriptor(nullptr);
    if (!taken) return std::unexpected(taken.error());
    return unix_stream(std::move(*taken));
}

}  // namespace weft::inline v0::io
