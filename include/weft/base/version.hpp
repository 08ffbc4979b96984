// version.hpp - which weft this is, and the refusal to link two kinds of it together.
//
// Everything public lives in `namespace weft`, whose inline namespace carries the version of the
// binary interface. The symbol below carries what the namespace cannot: a translation unit built
// with another sanitizer setting, for another switch, or with checks where the library has none,
// has other layouts, and the linker says so by the name of the symbol that it does not find.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include <weft/base/sanitizer.hpp>

/// Before 1.0 a new minor version may break what used the old one.
#define WEFT_VERSION_MAJOR 0
/// See WEFT_VERSION_MAJOR.
#define WEFT_VERSION_MINOR 1
/// Changes that break nothing.
#define WEFT_VERSION_PATCH 0

/// The version of the headers as a number, to compare: 100 is 0.1.0, 10203 would be 1.2.3.
#define WEFT_VERSION (WEFT_VERSION_MAJOR * 10000 + WEFT_VERSION_MINOR * 100 + WEFT_VERSION_PATCH)

#ifndef WEFT_PORTABLE_SWITCH
/// 1: the switch of this build is ucontext's.
#define WEFT_PORTABLE_SWITCH 0
#endif

#if WEFT_ASAN
#define WEFT_BUILD_SANITIZER asan
#elif WEFT_TSAN
#define WEFT_BUILD_SANITIZER tsan
#else
/// A part of WEFT_BUILD_SYMBOL.
#define WEFT_BUILD_SANITIZER none
#endif
#if defined(WEFT_CHECKS) && WEFT_CHECKS
#define WEFT_BUILD_CHECKS 1
#else
/// A part of WEFT_BUILD_SYMBOL.
#define WEFT_BUILD_CHECKS 0
#endif
/// A part of WEFT_BUILD_SYMBOL.
#define WEFT_JOIN_BUILD(sanitizer, portable, checks) \
    weft_0_1_built_with_sanitizer_##sanitizer##_and_portable_switch_##portable##_and_checks_##checks
/// A part of WEFT_BUILD_SYMBOL.
#define WEFT_EXPAND_BUILD(sanitizer, portable, checks) WEFT_JOIN_BUILD(sanitizer, portable, checks)
/// The symbol that the library has and whoever includes its headers refers to.
#define WEFT_BUILD_SYMBOL \
    WEFT_EXPAND_BUILD(WEFT_BUILD_SANITIZER, WEFT_PORTABLE_SWITCH, WEFT_BUILD_CHECKS)

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
