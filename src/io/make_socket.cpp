// make_socket.cpp - see make_socket.hpp.
//
// SPDX-License-Identifier: Apache-2.0
#include "io/make_socket.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <chrono>

#include <weft/fiber/this_fiber.hpp>

#include "io/system_call.hpp"

namespace weft::inline v0::detail {

io::result<io::descriptor> make_socket(const io::address& like, int type) noexcept {
    int family = AF_UNSPEC;
    switch (like.family()) {
        case io::address_family::none:
            return std::unexpected(std::make_error_code(std::errc::address_family_not_supported));
        case io::address_family::ipv4:
            family = AF_INET;
            break;
        case io::address_family::ipv6:
            family = AF_INET6;
            break;
        case io::address_family::local:
            family = AF_UNIX;
            break;
    }
    const long number =
        system_call([=] { return ::socket(family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0); });
    if (number < 0) return system_error_of(number);
    return io::descriptor::adopt_prepared(static_cast<int>(number));
}

// A connect that is under way becomes writable when it has ended, well or not. A local one whose
// other side has a full backlog says EAGAIN, and nothing tells when there is room.
io::result<void> connect_socket(io::descriptor& socket, const io::address& to) {
    std::chrono::milliseconds pause{1};
    for (;;) {
        long started = 0;
        const auto tried = socket.perform(io::direction::write, [&](int number) noexcept -> long {
            started = system_call([&] {
                return ::connect(number, static_cast<const sockaddr*>(to.data()),
                                 static_cast<socklen_t>(to.size()));
            });
            return 0;
        });
        if (!tried) return std::unexpected(tried.error());
        if (started >= 0 || started == -EISCONN) return {};
        if (started == -EINPROGRESS || started == -EALREADY || started == -EINTR) break;
        if (started != -EAGAIN) return system_error_of(started);
        if (const auto slept = sleep_for(pause); !slept) return std::unexpected(slept.error());
        pause = std::min(2 * pause, std::chrono::milliseconds(16));
    }
    if (const auto ready = socket.wait_writable(); !ready) return ready;
    int error = 0;
    socklen_t size = sizeof error;
    const auto asked = socket.call([&](int number) noexcept {
        return system_call(
            [&] { return ::getsockopt(number, SOL_SOCKET, SO_ERROR, &error, &size); });
    });
    if (!asked) return std::unexpected(asked.error());
    if (error != 0) return system_error_of(-error);
    return {};
}

}  // namespace weft::inline v0::detail
