// assert.hpp - misuse aborts, and says which rule was broken.
//
// Three kinds of failure exist in weft: misuse (here), errors of the world (std::expected or a
// named exception) and cancellation. Misuse cannot be handled, so it is not an exception.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <weft/base/version.hpp>

namespace weft::inline v0::detail {

/// Writes "weft: MESSAGE" (and, if given, "(NAME)") to stderr without allocating, then aborts.
[[noreturn, gnu::cold]] void fail(const char* message, const char* name = nullptr) noexcept;

}  // namespace weft::inline v0::detail

/// Always on: a broken rule of the library's contract. The message names the thing and the rule.
#define WEFT_ASSERT(condition, message) \
    (static_cast<bool>(condition) ? void() : ::weft::detail::fail(message))

/// On in builds with WEFT_CHECKS=1 (dev and the sanitizers): checks that would cost a hot path.
#if defined(WEFT_CHECKS) && WEFT_CHECKS
#define WEFT_CHECK(condition, message) WEFT_ASSERT(condition, message)
#else
#define WEFT_CHECK(condition, message) void()
#endif
