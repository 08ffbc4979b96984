// resolver.cpp - numbers, what is kept, and who is asked.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/io/resolver.hpp>

#include <cctype>
#include <charconv>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <utility>

#include <weft/fiber/cancel.hpp>
#include <weft/fiber/this_fiber.hpp>
#include <weft/io/resolve.hpp>

#include "io/look_up.hpp"
#include "io/name_cache.hpp"

namespace weft::inline v0::io {

namespace {

std::optional<std::uint16_t> port_number(std::string_view service) noexcept {
    std::uint16_t port = 0;
    const auto [end, error] = std::from_chars(service.begin(), service.end(), port);
    if (error != std::errc() || end != service.end()) return std::nullopt;
    return port;
}

// What c-ares does, too. Other sources it would leave out.
bool hosts_are_in_files_and_dns() {
    std::ifstream file("/etc/nsswitch.conf");
    for (std::string line; std::getline(file, line);) {
        std::istringstream words(line.substr(0, line.find('#')));
        std::string word;
        if (!(words >> word) || word != "hosts:") continue;
        while (words >> word)
            if (word != "files" && word != "dns") return false;
    }
    return true;
}

[[noreturn]] void refuse(std::errc why, const char* what) {
    throw std::system_error(std::make_error_code(why), what);
}

void check(const resolver_options& options) {
    for (const address& one : options.servers) {
        const bool is_ip =
            one.family() == address_family::ipv4 || one.family() == address_family::ipv6;
        if (!is_ip || one.port() == 0)
            refuse(std::errc::invalid_argument, "resolver: a server is an IP address with a port");
    }
    if (options.timeout.count() < 0 || options.tries < 0)
        refuse(std::errc::invalid_argument, "resolver: a time or a number of tries is below 0");
    if (!options.servers.empty() && (options.system || !detail::can_ask_servers()))
        refuse(std::errc::operation_not_supported, "resolver: the system's takes no servers");
}

clock_source& clock_here() noexcept {
    return this_fiber::get_id() ? this_fiber::executor().clock() : steady_clock_source();
}

}  // namespace

resolver::resolver(resolver_options options) : options_(std::move(options)) {
    check(options_);
    if (!detail::can_ask_servers()) options_.system = true;
    if (options_.servers.empty() && !hosts_are_in_files_and_dns()) options_.system = true;
    cache_ = std::make_unique<detail::name_cache>(options_.cache);
}

resolver::~resolver() = default;

result<std::vector<address>> resolver::resolve(std::string_view host, std::string_view service) {
    if (host.empty() || service.empty() || host.contains('\0') || service.contains('\0'))
        return std::unexpected(std::make_error_code(std::errc::invalid_argument));
    if (this_fiber::stop_requested())
        return std::unexpected(error_code_of(this_fiber::stop_reason()));
    const bool digits = service.find_first_not_of("0123456789") == service.npos;
    const auto port = port_number(service);
    // What begins with a blank or a sign would be a number to the system.
    if ((digits && !port) || std::isalnum(static_cast<unsigned char>(service.front())) == 0)
        return std::unexpected(make_error_code(resolve_errc::unknown_service));
    if (port)
        if (const auto number = address::parse(host, *port)) return std::vector{*number};

    const std::string name(host);
    const std::string door(service);
    const std::string key = name + '\0' + door;
    clock_source& clock = clock_here();
    if (auto known = cache_->find(key, clock)) return std::move(*known);
    cache_->looked_up.fetch_add(1, std::memory_order_relaxed);
    const time_point asked = clock.now();  // the time that an answer holds begins before it comes
    result<detail::looked_up> found = std::unexpected(std::error_code());
    if (!options_.system) found = detail::ask_servers(options_, name, door);
    const bool refused = !found && found.error() == std::errc::operation_not_supported;
    if (options_.system || (refused && options_.servers.empty()))
        found = detail::ask_system(name, door);
    if (!found) return std::unexpected(found.error());
    cache_->keep(key, found->addresses, clock, deadline_after(asked, found->holds));
    return std::move(found->addresses);
}

void resolver::forget() noexcept { cache_->clear(); }

resolver_counters resolver::counters() const noexcept {
    return {.kept = cache_->kept.load(std::memory_order_relaxed),
            .looked_up = cache_->looked_up.load(std::memory_order_relaxed)};
}

resolver& shared_resolver() {
    static auto* const shared = new resolver;
    return *shared;
}

}  // namespace weft::inline v0::io
