// wait_word.cpp - see wait_word.hpp.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/sync/detail/wait_word.hpp>

#include <weft/fiber/cancel.hpp>

namespace weft::inline v0::detail {

template std::uint64_t wait_word::enter_slowly() noexcept;

void throw_cancelled() {
    this_fiber::throw_if_cancelled();
    throw cancelled(cancel_reason::requested);  // the scope was left by another already
}

}  // namespace weft::inline v0::detail
