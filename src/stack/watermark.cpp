// watermark.cpp - see watermark.hpp.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/stack/watermark.hpp>

#include <cstdint>

#include <weft/base/sanitizer.hpp>

namespace weft::inline v0 {

namespace {
constexpr std::uint64_t pattern = 0x7765'6674'7765'6674;  // "weftweft"
}

// Uninstrumented: a stack holds red zones of frames, also after their end.
WEFT_NO_SANITIZE void paint(const stack& unused) noexcept {
    auto* const words = reinterpret_cast<volatile std::uint64_t*>(unused.low);
    for (std::size_t i = 0; i < unused.size / sizeof pattern; ++i) words[i] = pattern;
}

WEFT_NO_SANITIZE std::size_t high_water_mark(const stack& painted) noexcept {
    const auto* const words = reinterpret_cast<const volatile std::uint64_t*>(painted.low);
    std::size_t untouched = 0;
    while (untouched < painted.size / sizeof pattern && words[untouched] == pattern) ++untouched;
    return painted.size - untouched * sizeof pattern;
}

}  // namespace weft::inline v0
