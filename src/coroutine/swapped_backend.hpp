// swapped_backend.hpp - the switches of the swapped back end, inlined into coroutine_block.cpp.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <weft/coroutine/shared_stack.hpp>

#include "context/switch.hpp"

namespace weft::inline v0 {

[[gnu::always_inline]] inline void swapped_backend::begin_visits() {
    make_room();
    shared_.back_ = &shared_.resumer_;
    detail::enter_here(shared_.resumer_, body_, shared_.stack_.span(), entry_, argument_);
}

/// One visit to the body, by somebody who does not stand on the shared stack.
[[gnu::always_inline]] inline void swapped_backend::visit() {
    begin_visits();
    settle();
}

// Not if it needs memory for who is there now, and not from inside a coroutine: what that keeps is
// found by whoever entered it (lowest_kept()).
[[gnu::always_inline]] inline bool swapped_backend::can_follow(
    const swapped_backend& left) const noexcept {
    const swapped_backend* const there = shared_.occupant_;
    return &shared_ != &left.shared_ &&
           (there == nullptr || there == this || there->used_ <= there->buffer_size_) &&
           left.shared_.holds(__builtin_frame_address(0));
}

[[gnu::always_inline]] inline void swapped_backend::follow(swapped_backend& left) noexcept {
    make_room();
    shared_.back_ = left.shared_.back_;
    detail::swap_here(left.body_, body_);
}

[[gnu::always_inline]] inline void swapped_backend::enter() {
    if (shared_.holds(__builtin_frame_address(0))) [[unlikely]]
        return enter_from_inside();
    visit();
    if (shared_.wish_ != nullptr) [[unlikely]]
        fulfil_wishes();
}

[[gnu::always_inline]] inline void swapped_backend::leave() {
    detail::swap_here(body_, *shared_.back_);
}

[[gnu::always_inline]] inline void swapped_backend::finish() {
    shared_.occupant_ = nullptr;
    if (detail::is_called(body_)) return;
    detail::jump_from_here(*shared_.back_);
}

}  // namespace weft::inline v0
