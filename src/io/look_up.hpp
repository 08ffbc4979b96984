// look_up.hpp - the two ways to look a name up.
//
// Each gets a host that is no number, and a service; neither keeps anything.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include <weft/io/address.hpp>
#include <weft/io/resolver.hpp>
#include <weft/io/result.hpp>

namespace weft::inline v0::detail {

struct looked_up {
    std::vector<io::address> addresses;  // at least one
    std::chrono::seconds holds{0};       // for how long; 0: nobody said
};

/// getaddrinfo: on the side pool for a fiber, else it blocks.
[[nodiscard]] io::result<looked_up> ask_system(const std::string& host, const std::string& service);

/// c-ares. std::errc::operation_not_supported: there is none in this build, or nothing to wait by.
[[nodiscard]] io::result<looked_up> ask_servers(const io::resolver_options& how,
                                                const std::string& host,
                                                const std::string& service);
/// Whether this build has c-ares.
[[nodiscard]] bool can_ask_servers() noexcept;

}  // namespace weft::inline v0::detail
