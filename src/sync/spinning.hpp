// spinning.hpp - whether it may help to look at a lock again for a moment before waiting for it.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <weft/base/version.hpp>

namespace weft::inline v0::detail {

/// True if the holder may run now on another processor, and if to wait costs more than a moment:
/// in a plain thread, and on a pool. On a loop the holder is most likely a fiber of the same loop.
[[nodiscard]] bool spinning_may_help() noexcept;

}  // namespace weft::inline v0::detail
