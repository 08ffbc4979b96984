// spinning.hpp - waiting for a moment without waiting.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/pause.hpp"

namespace weft::inline v0::detail {

/// Waits a little, for somebody who is about to give up a lock bit; after some rounds it lets
/// others have the processor.
class spin_wait {
public:
    void once() noexcept {
        if (rounds_ == limit) return give_way();
        ++rounds_;
        for (unsigned i = 0; i < rounds_; ++i) pause();
    }

private:
    static constexpr unsigned limit = 10;
    static void give_way() noexcept;
    unsigned rounds_ = 0;
};

/// Whether it may help to look at a lock again for a moment before waiting for it.
/// True if the holder may run now on another processor, and if to wait costs more than a moment:
/// in a plain thread, and on a pool. On a loop the holder is most likely a fiber of the same loop.
[[nodiscard]] bool spinning_may_help() noexcept;

}  // namespace weft::inline v0::detail
