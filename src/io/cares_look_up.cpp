// cares_look_up.cpp - names asked of name servers, by c-ares.
//
// c-ares opens the sockets, says what it waits for, and is called when that has come. Each look-up
// has a channel of its own: no lock, and a fiber that is cancelled destroys it. What it waits for
// is collected in an epoll instance, and the fiber (or thread) waits for that by its reactor:
//
//   on a side thread: c-ares reads its settings and /etc/hosts, and asks
//   c-ares: "this socket, to read"  ->  epoll_ctl
//   wait until the instance is readable, or until the next try is due by c-ares
//   for each socket that is ready: c-ares goes on, and perhaps has an answer
//
// Nothing that c-ares keeps lies on a stack. It is never inside a call while the fiber waits. What
// it asks by TCP, of a server whose answer was cut off, it writes so that SIGPIPE may be raised.
//
// SPDX-License-Identifier: Apache-2.0
#include "io/look_up.hpp"

#if defined(WEFT_HAS_CARES) && WEFT_HAS_CARES

#include <ares.h>
#include <arpa/inet.h>
#include <netdb.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>

#include <weft/base/test_point.hpp>
#include <weft/fiber/cancel.hpp>
#include <weft/fiber/this_fiber.hpp>
#include <weft/io/blocking.hpp>
#include <weft/io/descriptor.hpp>
#include <weft/io/resolve.hpp>

#include "io/write_quietly.hpp"

namespace weft::inline v0::detail {

namespace {

std::error_code error_of(int status) noexcept {
    using io::resolve_errc;
    switch (status) {
        case ARES_ENOTFOUND:
        case ARES_ENONAME:
        case ARES_EBADNAME:
            return resolve_errc::host_not_found;
        case ARES_ENODATA:
            return resolve_errc::no_address;
        case ARES_ESERVICE:
            return resolve_errc::unknown_service;
        case ARES_ETIMEOUT:
        case ARES_ECONNREFUSED:
            return resolve_errc::try_again;
        case ARES_ENOMEM:
            return std::make_error_code(std::errc::not_enough_memory);
        default:
            return resolve_errc::failed;
    }
}

// The library's own state is made once; it is never given back, for a look-up may be under way at
// the end of the program.
bool library_is_ready() noexcept {
    static const bool ready = ::ares_library_init(ARES_LIB_INIT_ALL) == ARES_SUCCESS;
    return ready;
}

// c-ares would take "-1" for 65535, and whatever begins with digits for those.
std::optional<std::uint16_t> port_of(const std::string& service) noexcept {
    std::uint16_t port = 0;
    const char* const end = service.data() + service.size();
    const auto [at, error] = std::from_chars(service.data(), end, port);
    if (error == std::errc() && at == end) return port;
    servent entry{};
    servent* found = nullptr;
    std::array<char, 1024> names;
    if (::getservbyname_r(service.c_str(), "tcp", &entry, names.data(), names.size(), &found) != 0)
        return std::nullopt;
    if (found == nullptr) return std::nullopt;
    return ntohs(static_cast<std::uint16_t>(found->s_port));
}

looked_up answer_of(const ares_addrinfo& found, std::uint16_t port) {
    looked_up answer;
    int least = std::numeric_limits<int>::max();
    for (const ares_addrinfo_cname* one = found.cnames; one != nullptr; one = one->next)
        least = std::min(least, one->ttl);
    for (const ares_addrinfo_node* one = found.nodes; one != nullptr; one = one->ai_next) {
        least = std::min(least, one->ai_ttl);
        const auto where = io::address::from_system(one->ai_addr, one->ai_addrlen);
        if (where && !std::ranges::count(answer.addresses, where->with_port(port)))
            answer.addresses.push_back(where->with_port(port));
    }
    answer.holds = std::chrono::seconds(std::max(least, 0));
    return answer;
}

class channel {
public:
    channel() = default;
    channel(const channel&) = delete;
    channel& operator=(const channel&) = delete;
    ~channel() {
        if (ares_ != nullptr) ::ares_destroy(ares_);  // tells told(), for the last time
    }

    /// Where files may be read.
    [[nodiscard]] std::error_code begin(const io::resolver_options& how, const std::string& host,
                                        const std::string& service) {
        if (const std::error_code failed = open(how)) return failed;
        const std::optional<std::uint16_t> port = port_of(service);
        if (!port) return io::resolve_errc::unknown_service;
        port_ = *port;
        ares_addrinfo_hints hints{};
        hints.ai_family = AF_UNSPEC;
        hints.ai_socktype = SOCK_STREAM;  // each address once
        call_quietly(
            [&] { ::ares_getaddrinfo(ares_, host.c_str(), nullptr, &hints, &told, this); });
        return {};
    }

    [[nodiscard]] io::result<looked_up> answer() {
        while (!done_)
            if (const std::error_code stopped = wait_and_go_on()) return std::unexpected(stopped);
        if (status_ != ARES_SUCCESS) return std::unexpected(error_of(status_));
        if (out_of_memory_)
            return std::unexpected(std::make_error_code(std::errc::not_enough_memory));
        if (answer_.addresses.empty())
            return std::unexpected(make_error_code(io::resolve_errc::no_address));
        return std::move(answer_);
    }

private:
    [[nodiscard]] std::error_code open(const io::resolver_options& how) {
        const int instance = ::epoll_create1(EPOLL_CLOEXEC);
        if (instance < 0) return {errno, std::system_category()};
        auto waits = io::descriptor::adopt_prepared(instance);
        if (!waits) return waits.error();
        ready_ = std::move(*waits);
        ares_options options{};
        int given = ARES_OPT_SOCK_STATE_CB;
        options.sock_state_cb = &interested;
        options.sock_state_cb_data = this;
        if (how.timeout.count() != 0) {
            options.timeout =
                static_cast<int>(std::min<std::int64_t>(how.timeout.count(), 1 << 30));
            given |= ARES_OPT_TIMEOUTMS;
        }
        if (how.tries != 0) {
            options.tries = how.tries;
            given |= ARES_OPT_TRIES;
        }
        int status = library_is_ready() ? ARES_SUCCESS : ARES_ENOTINITIALIZED;
        if (status == ARES_SUCCESS) status = ::ares_init_options(&ares_, &options, given);
        if (status == ARES_SUCCESS && !how.servers.empty())
            status = ::ares_set_servers_ports_csv(ares_, list_of(how.servers).c_str());
        return status == ARES_SUCCESS ? std::error_code() : error_of(status);
    }

    static std::string list_of(std::span<const io::address> servers) {
        std::string list;
        for (const io::address& one : servers)
            list.append(list.empty() ? "" : ",").append(one.to_string());
        return list;
    }

    // From inside c-ares.
    static void told(void* self, int status, int, ares_addrinfo* found) noexcept {
        auto& me = *static_cast<channel*>(self);
        me.done_ = true;
        me.status_ = status;
        if (found == nullptr) return;
        try {
            if (status == ARES_SUCCESS) me.answer_ = answer_of(*found, me.port_);
        } catch (const std::bad_alloc&) { me.out_of_memory_ = true; }
        ::ares_freeaddrinfo(found);
    }
    static void interested(void* self, ares_socket_t socket, int reads, int writes) noexcept {
        const int instance = static_cast<channel*>(self)->ready_.native_handle();
        epoll_event event{.events = (reads != 0 ? EPOLLIN : 0U) | (writes != 0 ? EPOLLOUT : 0U),
                          .data = {.fd = socket}};
        if (event.events == 0) {
            ::epoll_ctl(instance, EPOLL_CTL_DEL, socket, nullptr);
        } else if (::epoll_ctl(instance, EPOLL_CTL_MOD, socket, &event) != 0) {
            // Without memory for it, its query is late, and fails in the end.
            ::epoll_ctl(instance, EPOLL_CTL_ADD, socket, &event);
        }
    }

    // An error: the caller was asked to stop, or cannot wait.
    [[nodiscard]] std::error_code wait_and_go_on() {
        timeval left{};
        time_point until = no_deadline;
        if (::ares_timeout(ares_, nullptr, &left) != nullptr)
            until = deadline_after(
                now(), std::chrono::seconds(left.tv_sec) + std::chrono::microseconds(left.tv_usec));
        if (const auto came = ready_.wait_readable(until); !came) {
            if (this_fiber::stop_requested() || came.error() != std::errc::timed_out)
                return came.error();
            go_on(ARES_SOCKET_BAD, ARES_SOCKET_BAD);
            return {};
        }
        std::array<epoll_event, 16> events;
        const int count = ::epoll_wait(ready_.native_handle(), events.data(), events.size(), 0);
        for (const epoll_event& one :
             std::span(events).first(static_cast<std::size_t>(std::max(count, 0)))) {
            const bool failed = (one.events & (EPOLLERR | EPOLLHUP)) != 0;
            const bool reads = failed || (one.events & EPOLLIN) != 0;
            const bool writes = failed || (one.events & EPOLLOUT) != 0;
            go_on(reads ? one.data.fd : ARES_SOCKET_BAD, writes ? one.data.fd : ARES_SOCKET_BAD);
        }
        return {};
    }
    void go_on(ares_socket_t reads, ares_socket_t writes) {
        WEFT_TEST_POINT("resolver: about to go on");
        call_quietly([&] { ::ares_process_fd(ares_, reads, writes); });
    }

    [[nodiscard]] static time_point now() noexcept {
        return this_fiber::get_id() ? this_fiber::executor().clock().now()
                                    : steady_clock_source().now();
    }

    ares_channel ares_ = nullptr;
    io::descriptor ready_;
    bool done_ = false;
    bool out_of_memory_ = false;
    int status_ = ARES_SUCCESS;
    std::uint16_t port_ = 0;
    looked_up answer_;
};

}  // namespace

bool can_ask_servers() noexcept { return true; }

io::result<looked_up> ask_servers(const io::resolver_options& how, const std::string& host,
                                  const std::string& service) {
    const auto mine = std::make_unique<channel>();  // not on a stack that may go away
    // Copies, for the same reason.
    const auto begun = io::try_blocking(io::file_side_pool(), [&to = *mine, how, host, service] {
        return to.begin(how, host, service);
    });
    const std::error_code failed = begun ? *begun : begun.error();
    if (failed) return std::unexpected(failed);
    return mine->answer();
}

}  // namespace weft::inline v0::detail

#else

namespace weft::inline v0::detail {

bool can_ask_servers() noexcept { return false; }

io::result<looked_up> ask_servers(const io::resolver_options&, const std::string&,
                                  const std::string&) {
    return std::unexpected(std::make_error_code(std::errc::operation_not_supported));
}

}  // namespace weft::inline v0::detail

#endif
