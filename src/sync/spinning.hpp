// spinning.hpp - waiting for a moment without waiting.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/pause.hpp"

namespace weft::inline v0::detail {

/// Lets others have the processor.
void give_way() noexcept;

/// Waits a little, for somebody who is about to give up a lock bit; after some rounds it lets
/// others have the processor.
inline void spin_once(unsigned& rounds) noexcept {
    constexpr unsigned limit = 10;
    if (rounds == limit) return give_way();
    ++rounds;
    for (unsigned i = 0; i < rounds; ++i) pause();
}

/// The same, counting its rounds.
class spin_wait {
public:
    void once() noexcept { spin_once(rounds_); }

private:
    unsigned rounds_ = 0;
};

/// Whether it may help to look at a lock again for a moment before waiting for it.
/// True if the holder may run now on another processor, and if to wait costs more than a moment:
/// in a plain thread, and on a pool. On a loop the holder is most likely a fiber of the same loop.
[[nodiscard]] bool spinning_may_help() noexcept;

}  // namespace weft::inline v0::detail
