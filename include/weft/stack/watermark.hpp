// watermark.hpp - how much of a stack was ever used.
//
// Nothing is measured unless asked: paint a stack before anything runs on it, read the mark
// afterwards or meanwhile. Painting touches every page, so it is for finding the right size, not
// for production.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <weft/stack/stack.hpp>

namespace weft::inline v0 {

/// Fills an unused stack with a pattern.
void paint(const stack& unused) noexcept;

/// The number of bytes between the high end of a painted stack and the lowest byte ever written.
[[nodiscard]] std::size_t high_water_mark(const stack& painted) noexcept;

}  // namespace weft::inline v0
