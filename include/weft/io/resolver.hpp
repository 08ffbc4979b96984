// resolver.hpp - who is asked for the addresses of a name, and how long the answer is kept.
//
//     io::resolver names({.servers = {io::address("192.0.2.53", 53)}});
//     auto found = names.resolve("example.org", "https");
//
// Where the library was built with c-ares, a look-up asks the name servers itself, through the
// reactor, after /etc/hosts; an answer is kept for as long as the servers allow, and no longer. The
// little files of the system that c-ares takes its settings from are read on a side thread.
// Otherwise, and on request, it is the system's resolver (getaddrinfo) on a side pool, which does
// not tell for how long an answer holds: then none is kept. A number needs no look-up.
//
// Most programs need none of their own: resolve.hpp has functions over a shared one.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include <weft/io/address.hpp>
#include <weft/io/result.hpp>

namespace weft::inline v0 {

namespace detail {
class name_cache;  // src/io/name_cache.hpp
}

namespace io {

/// What a resolver can be told at its creation.
struct resolver_options {
    /// The name servers; none: those of /etc/resolv.conf.
    std::vector<address> servers = {};
    /// For an answer of a server, at its first try; 0: as /etc/resolv.conf says, or 5 s.
    std::chrono::milliseconds timeout{0};
    /// How often each server is asked; 0: as /etc/resolv.conf says, or 3 times.
    int tries = 0;
    /// How many names are kept at most; 0: none.
    std::size_t cache = 1024;
    /// Ask the system (getaddrinfo) always. By itself it does so where c-ares is missing, and where
    /// /etc/nsswitch.conf names other sources of hosts than files and dns.
    bool system = false;
};

/// How often it was asked, and what came of that.
struct resolver_counters {
    std::uint64_t kept = 0;       // answered from what was kept
    std::uint64_t looked_up = 0;  // looked up by c-ares or the system
};

/// Thread-safe.
class resolver {
public:
    /// Fails: std::system_error with std::errc::invalid_argument for a server without a port, or
    /// that is no IPv4 or IPv6 address, or for a time or a number of tries below 0; with
    /// std::errc::operation_not_supported for servers where c-ares is missing.
    explicit resolver(resolver_options options = {});
    resolver(const resolver&) = delete;
    resolver& operator=(const resolver&) = delete;
    ~resolver();

    /// As weft::io::resolve(), by this one. An answer is kept on the clock of the executor where it
    /// was looked up, and for those who have the same; time for answers is the system's.
    /// Suspends: maybe. Cancel: reported, also while it looks up. From: any fiber or thread. Fails:
    /// as resolve().
    [[nodiscard]] result<std::vector<address>> resolve(std::string_view host,
                                                       std::string_view service);

    /// Forgets all answers. From: any fiber or thread.
    void forget() noexcept;
    /// What it has done so far. From: any fiber or thread.
    [[nodiscard]] resolver_counters counters() const noexcept;
    /// Whether it asks name servers itself.
    [[nodiscard]] bool asks_servers() const noexcept { return !options_.system; }

private:
    resolver_options options_;
    std::unique_ptr<detail::name_cache> cache_;
};

/// The one that resolve() and connect() use: with default options, made at first use.
[[nodiscard]] resolver& shared_resolver();

}  // namespace io
}  // namespace weft::inline v0
