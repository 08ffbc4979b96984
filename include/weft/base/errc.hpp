// errc.hpp - errors that std::errc has no word for.
//
//     if (result.error() == errc::closed) ...
//
// Cancelled and timed out are std::errc::operation_canceled and std::errc::timed_out.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <system_error>
#include <type_traits>

#include <weft/base/version.hpp>

namespace weft::inline v0 {

/// What std::errc lacks.
enum class errc {
    closed = 1,     // the channel was closed, and nothing is left in it; or the socket, by us
    shutdown,       // the executor takes no new work
    end_of_stream,  // no more bytes will come, and some were missing
};

/// "weft". Never destroyed before whoever holds an error_code of it.
[[nodiscard]] const std::error_category& error_category() noexcept;

/// For std::error_code.
[[nodiscard]] inline std::error_code make_error_code(errc code) noexcept {
    return {static_cast<int>(code), error_category()};
}

}  // namespace weft::inline v0

template <>
struct std::is_error_code_enum<weft::errc> : std::true_type {};
