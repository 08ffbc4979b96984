// sizes.hpp - which sizes of stack make sense.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>

#include <weft/base/version.hpp>

namespace weft::inline v0::detail {

inline constexpr std::size_t smallest_size = 4 * 1024;
inline constexpr std::size_t largest_size = std::size_t{1} << 40;

/// Fails: std::invalid_argument, naming the size.
inline void require_sensible_size(std::size_t size) {
    if (size < smallest_size || size > largest_size)
        throw std::invalid_argument(
            "weft: a stack of " + std::to_string(size) + " bytes makes no sense; at least " +
            std::to_string(smallest_size) + ", at most " + std::to_string(largest_size));
}

}  // namespace weft::inline v0::detail
