// system_call.hpp - errno, taken where no switch can come between.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cerrno>
#include <system_error>

#include <weft/io/result.hpp>

namespace weft::inline v0::detail {

/// The call's result, or minus errno. Not inlined: a caller that goes on in another thread would
/// keep the address of the first thread's errno.
template <class Call>
[[gnu::noinline]] long system_call(Call call) noexcept {
    const auto result = call();
    return result < 0 ? -static_cast<long>(errno) : static_cast<long>(result);
}

/// The same for calls that do not wait; repeated when a signal interrupts them.
template <class Call>
long system_call_again(Call call) noexcept {
    long result = -EINTR;
    while (result == -EINTR) result = system_call(call);
    return result;
}

[[nodiscard]] inline std::unexpected<std::error_code> system_error_of(long negative) noexcept {
    return std::unexpected(std::error_code(static_cast<int>(-negative), std::system_category()));
}

}  // namespace weft::inline v0::detail
