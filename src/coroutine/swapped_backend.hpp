// swapped_backend.hpp - the switches of the swapped back end, inlined into coroutine_block.cpp.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <weft/coroutine/shared_stack.hpp>

#include "context/switch.hpp"

namespace weft::inline v0 {

/// One visit to the body, by somebody who does not stand on the shared stack.
[[gnu::always_inline]] inline void swapped_backend::visit() {
    make_room();
    detail::enter_here(shared_.resumer_, body_, shared_.stack_.span(), entry_, argument_);
    settle();
}

[[gnu::always_inline]] inline void swapped_backend::enter() {
    if (shared_.holds(__builtin_frame_address(0))) [[unlikely]]
        return enter_from_inside();
    visit();
    if (shared_.wish_ != nullptr) [[unlikely]]
        fulfil_wishes();
}

[[gnu::always_inline]] inline void swapped_backend::leave() {
    detail::swap_here(body_, shared_.resumer_);
}

[[gnu::always_inline]] inline void swapped_backend::finish() {
    shared_.occupant_ = nullptr;
    if (detail::is_called(body_)) return;
    detail::jump_from_here(shared_.resumer_);
}

}  // namespace weft::inline v0
