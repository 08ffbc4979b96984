// channel.cpp - what the results of a channel are called.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/fiber/cancel.hpp>
#include <weft/sync/channel.hpp>

namespace weft::inline v0::detail {

std::error_code error_of(channel_result result) noexcept {
    switch (result) {
        case channel_result::closed:
            return make_error_code(errc::closed);
        case channel_result::would_block:
            return std::make_error_code(std::errc::operation_would_block);
        case channel_result::timed_out:
            return std::make_error_code(std::errc::timed_out);
        case channel_result::cancelled:
            return error_code_of(this_fiber::stop_reason());
        case channel_result::done:
        case channel_result::again:
            break;
    }
    return {};
}

}  // namespace weft::inline v0::detail
