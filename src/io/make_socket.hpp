// make_socket.hpp - a socket of the kernel, non-blocking, and connecting it.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <weft/io/address.hpp>
#include <weft/io/descriptor.hpp>

namespace weft::inline v0::detail {

/// Of the address's family. Fails: as socket(2) does; std::errc::address_family_not_supported.
[[nodiscard]] io::result<io::descriptor> make_socket(const io::address& like, int type) noexcept;

/// Waits until it is connected. Suspends: maybe. Cancel: reported.
[[nodiscard]] io::result<void> connect_socket(io::descriptor& socket, const io::address& to);

}  // namespace weft::inline v0::detail
