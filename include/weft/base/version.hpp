// version.hpp - which weft this is, and the refusal to link two kinds of it together.
//
// Everything public lives in `namespace weft`, whose inline namespace carries the version of the
// binary interface. The symbol below carries what the namespace cannot: a translation unit built
// with another sanitizer setting, or for another switch, than the library has other layouts, and
// the linker says so by the name of the symbol that it does not find.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include <weft/base/sanitizer.hpp>

#define WEFT_VERSION_MAJOR 0
#define WEFT_VERSION_MINOR 1
#define WEFT_VERSION_PATCH 0

/// The version of the headers as a number, for #if: 100 is 0.1.0, 10203 would be 1.2.3.
#define WEFT_VERSION (WEFT_VERSION_MAJOR * 10000 + WEFT_VERSION_MINOR * 100 + WEFT_VERSION_PATCH)

#ifndef WEFT_PORTABLE_SWITCH
#define WEFT_PORTABLE_SWITCH 0
#endif

#if WEFT_ASAN
#define WEFT_BUILD_SANITIZER asan
#elif WEFT_TSAN
#define WEFT_BUILD_SANITIZER tsan
#else
#define WEFT_BUILD_SANITIZER none
#endif
#define WEFT_JOIN_BUILD(sanitizer, portable) \
    weft_0_1_built_with_sanitizer_##sanitizer##_and_portable_switch_##portable
#define WEFT_EXPAND_BUILD(sanitizer, portable) WEFT_JOIN_BUILD(sanitizer, portable)
#define WEFT_BUILD_SYMBOL WEFT_EXPAND_BUILD(WEFT_BUILD_SANITIZER, WEFT_PORTABLE_SWITCH)

extern "C" const char WEFT_BUILD_SYMBOL;

namespace weft::inline v0 {

/// The version of the library that was linked, as "major.minor.patch".
/// Suspends: never. From: anywhere. Fails: never.
[[nodiscard]] std::string_view version() noexcept;

namespace detail {
// A user of any weft header refers to the library's build symbol; see the head of this file.
[[gnu::used]] inline const char* const linked_build = &WEFT_BUILD_SYMBOL;
}  // namespace detail

}  // namespace weft::inline v0
