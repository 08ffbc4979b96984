// lock_spin.hpp - what a thread does between two looks at a lock bit.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <weft/base/version.hpp>

namespace weft::inline v0::detail {

/// Waits a little: see src/sync/spinning.hpp.
struct lock_spin {
    void once() noexcept;
    unsigned rounds = 0;
};

}  // namespace weft::inline v0::detail
