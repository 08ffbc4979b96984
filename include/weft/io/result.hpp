// result.hpp - what operations of the io part return: a value, or the error that the world gave.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <expected>
#include <system_error>

#include <weft/base/errc.hpp>

namespace weft::inline v0::io {

/// Errors are the operating system's; std::errc::operation_canceled and timed_out, if the fiber was
/// asked to stop; weft::errc::closed, if somebody closed the object; weft::errc::end_of_stream.
template <class T>
using result = std::expected<T, std::error_code>;

}  // namespace weft::inline v0::io
