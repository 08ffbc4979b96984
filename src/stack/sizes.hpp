// sizes.hpp - which sizes of stack make sense.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include <weft/base/version.hpp>

namespace weft::inline v0::detail {

inline constexpr std::size_t smallest_size = 4 * 1024;
inline constexpr std::size_t largest_size = std::size_t{1} << 40;

}  // namespace weft::inline v0::detail
