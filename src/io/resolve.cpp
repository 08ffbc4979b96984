// resolve.cpp - the system's look-ups, on the side pool, which may outlive whoever asked.
//
// getaddrinfo() may take half a minute and cannot be stopped. So a look-up owns what it works on,
// and a fiber that is cancelled withdraws it, or leaves it alone if it has begun:
//
//   fiber                                  side thread
//   launch                                 getaddrinfo, keep the answer
//   wait for `done`                        set `done`          (also if there is no thread for it)
//   cancelled: withdraw; drop its share    drop its share
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/io/resolve.hpp>

#include <netdb.h>
#include <sys/socket.h>

#include <cerrno>
#include <memory>
#include <string>
#include <utility>

#include <weft/base/thread_block.hpp>
#include <weft/exec/worker.hpp>
#include <weft/io/resolver.hpp>
#include <weft/sync/event.hpp>

#include "io/look_up.hpp"
#include "io/side_pool.hpp"
#include "io/write_quietly.hpp"

namespace weft::inline v0 {

namespace io {

namespace {

using answer = result<std::vector<address>>;

class category final : public std::error_category {
public:
    [[nodiscard]] const char* name() const noexcept override { return "weft.resolve"; }
    [[nodiscard]] std::string message(int value) const override {
        switch (static_cast<resolve_errc>(value)) {
            case resolve_errc::host_not_found:
                return "no such host is known";
            case resolve_errc::no_address:
                return "the host has no address";
            case resolve_errc::unknown_service:
                return "no such service is known";
            case resolve_errc::try_again:
                return "the name server does not answer";
            case resolve_errc::failed:
                return "the name server failed";
        }
        return "unknown error";
    }
};

// Where it had no descriptor to ask anybody by, it says that nobody knows the name.
std::error_code error_of(int code) noexcept {
    if (errno == EMFILE || errno == ENFILE) return {errno, std::system_category()};
    switch (code) {
        case EAI_NONAME:
            return resolve_errc::host_not_found;
        case EAI_NODATA:
        case EAI_ADDRFAMILY:
            return resolve_errc::no_address;
        case EAI_SERVICE:
            return resolve_errc::unknown_service;
        case EAI_AGAIN:
            return resolve_errc::try_again;
        case EAI_MEMORY:
            return std::make_error_code(std::errc::not_enough_memory);
        case EAI_SYSTEM:
            return {errno, std::system_category()};
        default:
            return resolve_errc::failed;
    }
}

// Blocks.
answer look_up(const std::string& host, const std::string& service) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;  // each address once
    if (service.find_first_not_of("0123456789") == service.npos) hints.ai_flags = AI_NUMERICSERV;
    addrinfo* found = nullptr;
    const std::error_code failed = detail::call_quietly([&] {  // it may ask a server by TCP
        errno = 0;
        const int code = ::getaddrinfo(host.c_str(), service.c_str(), &hints, &found);
        return code != 0 ? error_of(code) : std::error_code();
    });
    if (failed) return std::unexpected(failed);
    const std::unique_ptr<addrinfo, void (*)(addrinfo*)> all(found, &::freeaddrinfo);
    std::vector<address> addresses;
    for (const addrinfo* one = found; one != nullptr; one = one->ai_next)
        if (const auto where = address::from_system(one->ai_addr, one->ai_addrlen))
            addresses.push_back(*where);
    if (addresses.empty()) return std::unexpected(make_error_code(resolve_errc::no_address));
    return addresses;
}

struct side_look_up final : detail::side_call {
    side_look_up(std::string asked_host, std::string asked_service)
        : side_call(&perform), host(std::move(asked_host)), service(std::move(asked_service)) {
        discard = &let_go;
    }
    static void perform(side_call& self) noexcept {
        auto& me = static_cast<side_look_up&>(self);
        try {
            me.said = look_up(me.host, me.service);
        } catch (...) {
            me.said = std::unexpected(std::make_error_code(std::errc::not_enough_memory));
        }
    }
    static void let_go(side_call& self) noexcept {
        const auto mine = std::move(static_cast<side_look_up&>(self).share_of_pool);
        mine->done.set();
    }

    const std::string host;
    const std::string service;
    std::shared_ptr<side_look_up> share_of_pool;
    event done;
    answer said = std::unexpected(std::make_error_code(std::errc::resource_unavailable_try_again));
};

// Withdrawn in the end, unless it has begun.
class wanted_look_up {
public:
    wanted_look_up(std::string host, std::string service)
        : call_(std::make_shared<side_look_up>(std::move(host), std::move(service))) {
        call_->share_of_pool = call_;
        detail::side_access::launch(pool_, *call_);
    }
    wanted_look_up(const wanted_look_up&) = delete;
    wanted_look_up& operator=(const wanted_look_up&) = delete;
    ~wanted_look_up() {
        if (detail::side_access::withdraw(pool_, *call_)) call_->share_of_pool.reset();
    }
    [[nodiscard]] side_look_up& operator*() const noexcept { return *call_; }

private:
    side_pool& pool_ = detail::side_access::for_names();
    const std::shared_ptr<side_look_up> call_;
};

answer look_up_aside(const std::string& host, const std::string& service) {
    const detail::awaits_others posts(detail::worker_of_this_thread());
    const wanted_look_up call(host, service);
    if (const auto over = (*call).done.wait_until(no_deadline); !over)
        return std::unexpected(over.error());
    return std::move((*call).said);
}

// IPv6 and IPv4 by turns, beginning with the family that the system has put first.
std::vector<address> by_turns(const std::vector<address>& all) {
    std::vector<address> first;
    std::vector<address> others;
    for (const address& one : all)
        (one.family() == all[0].family() ? first : others).push_back(one);
    std::vector<address> mixed;
    for (std::size_t i = 0; i < std::max(first.size(), others.size()); ++i) {
        if (i < first.size()) mixed.push_back(first[i]);
        if (i < others.size()) mixed.push_back(others[i]);
    }
    return mixed;
}

}  // namespace

const std::error_category& resolve_category() noexcept {
    static const category resolving;
    return resolving;
}

answer resolve(std::string_view host, std::string_view service) {
    return shared_resolver().resolve(host, service);
}

result<tcp_stream> connect(std::string_view host, std::string_view service,
                           std::chrono::milliseconds stagger) {
    const answer found = resolve(host, service);
    if (!found) return std::unexpected(found.error());
    if (found->size() == 1) return tcp_stream::connect(found->front());
    return tcp_stream::connect(by_turns(*found), stagger);
}

}  // namespace io

namespace detail {

io::result<looked_up> ask_system(const std::string& host, const std::string& service) {
    auto found =
        this_fiber::get_id() ? io::look_up_aside(host, service) : io::look_up(host, service);
    if (!found) return std::unexpected(found.error());
    return looked_up{.addresses = std::move(*found)};
}

}  // namespace detail
}  // namespace weft::inline v0
