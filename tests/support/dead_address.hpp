// dead_address.hpp - addresses that refuse who connects, for as long as a test wants.
//
// A port that was free a moment ago may be somebody else's now, or be taken for the connection's
// own end, which then is connected with itself. A socket that is bound and does not listen keeps
// both away.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <weft/io/address.hpp>
#include <weft/io/tcp.hpp>

namespace weft_test {

/// A TCP address at which nobody listens while this lives.
class dead_address {
public:
    /// Port 0: some port. Throws std::system_error.
    explicit dead_address(const weft::io::address& where = weft::io::address::loopback_ipv4(0)) {
        const bool six = where.family() == weft::io::address_family::ipv6;
        number_ = ::socket(six ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        const auto* const given = static_cast<const sockaddr*>(where.data());
        sockaddr_storage got{};
        socklen_t size = sizeof got;
        if (number_ >= 0 && ::bind(number_, given, static_cast<socklen_t>(where.size())) == 0 &&
            ::getsockname(number_, reinterpret_cast<sockaddr*>(&got), &size) == 0) {
            where_ = weft::io::address::from_system(&got, size).value();
            return;
        }
        const int error = errno;
        if (number_ >= 0) ::close(number_);
        throw std::system_error(error, std::system_category(), where.to_string());
    }
    dead_address(dead_address&& other) noexcept
        : number_(std::exchange(other.number_, -1)), where_(other.where_) {}
    dead_address& operator=(dead_address&&) = delete;
    ~dead_address() {
        if (number_ >= 0) ::close(number_);
    }

    [[nodiscard]] const weft::io::address& where() const noexcept { return where_; }

private:
    int number_ = -1;
    weft::io::address where_;
};

/// Several hosts and a port at which one of them listens and the others refuse, or all refuse.
struct hosts_of_a_port {
    std::optional<weft::io::tcp_listener> listener;
    std::vector<dead_address> dead;
    std::uint16_t port = 0;
    std::error_code missing;  // one of the hosts is not there
};

/// `live` is one of the hosts, or "".
inline hosts_of_a_port take_port(const std::vector<std::string>& hosts, const std::string& live) {
    for (int tries = 0;; ++tries) {
        hosts_of_a_port made;
        try {
            if (!live.empty()) {
                auto listener = weft::io::tcp_listener::bind(weft::io::address(live, 0));
                if (!listener) throw std::system_error(listener.error(), live);
                made.port = listener->local_address().value().port();
                made.listener = std::move(*listener);
            }
            for (const std::string& host : hosts) {
                if (host == live) continue;
                made.dead.emplace_back(weft::io::address(host, made.port));
                made.port = made.dead.back().where().port();
            }
            return made;
        } catch (const std::system_error& error) {  // somebody has that port at another host
            made.missing = error.code();
            if (error.code() != std::errc::address_in_use || tries == 100) return made;
        }
    }
}

}  // namespace weft_test
