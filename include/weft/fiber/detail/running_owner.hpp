// running_owner.hpp - who runs here: the name that a lock keeps of its owner.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <weft/base/version.hpp>

namespace weft::inline v0::detail {

/// Tells the running fiber, or the plain thread, from all others that exist now.
[[nodiscard]] const void* running_owner() noexcept;

}  // namespace weft::inline v0::detail
