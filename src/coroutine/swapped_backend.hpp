// swapped_backend.hpp - the switches of the swapped back end, inlined into coroutine_block.cpp and,
// by fiber/leaving.hpp, into the files of fibers that switch.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <weft/coroutine/coroutine_block.hpp>
#include <weft/coroutine/shared_stack.hpp>

#include "context/switch.hpp"
#include "coroutine/parked_bytes.hpp"

namespace weft::inline v0 {

namespace detail {

[[gnu::always_inline]] inline void swapped_place::begin_visits(context& body, context_entry entry,
                                                               void* argument) {
    make_room(body, entry, argument);
    shared_->back_ = &shared_->resumer_;
    enter_here(shared_->resumer_, body, shared_->stack_.span(), entry, argument);
}

// Not if it needs memory for who is there now, and not from inside a coroutine: what that keeps is
// found by whoever entered it (kept_outside()).
[[gnu::always_inline]] inline bool swapped_place::can_follow(
    const swapped_place& left) const noexcept {
    const swapped_place* const there = shared_->occupant_;
    return shared_ != left.shared_ &&
           (there == nullptr || there == this || there->used() <= there->buffer_size_) &&
           left.shared_->holds(__builtin_frame_address(0));
}

[[gnu::always_inline]] inline void swapped_place::make_way(context& body,
                                                           const swapped_place& left) noexcept {
    make_room(body, nullptr, nullptr);
    shared_->back_ = left.shared_->back_;
}

// After a visit.
[[gnu::always_inline]] inline void swapped_place::settle(const context& body) noexcept {
    shared_->in_use_ = false;
    if (shared_->occupant_ == nullptr) {  // it finished
        if constexpr (hides_bytes) close_stack(shared_->stack_.span());
        return;
    }
    const std::byte* lowest = body.lowest_kept();
    if (!shared_->holds(lowest)) [[unlikely]]
        lowest = kept_outside(body);
    used_words_ = static_cast<std::uint32_t>((shared_->kept_below_ - lowest + 7) / 8);
    ++shared_->counters_.parks;
    if constexpr (hides_bytes) hidden_ = hide_bytes(shared_->stack_.span(), parked_bytes());
}

[[gnu::always_inline]] inline context& swapped_place::back() noexcept { return *shared_->back_; }

[[gnu::always_inline]] inline void swapped_place::leave(context& body) { swap_here(body, back()); }

[[gnu::always_inline]] inline void swapped_place::finish(const context& body) {
    shared_->occupant_ = nullptr;
    if (is_called(body)) return;
    jump_from_here(back());
}

}  // namespace detail

/// One visit to the body, by somebody who does not stand on the shared stack.
[[gnu::always_inline]] inline void swapped_backend::visit() {
    using block = basic_coroutine_block<swapped_backend>;
    begin_visits(body_, &block::entry, static_cast<block*>(this));
    settle(body_);
}

[[gnu::always_inline]] inline void swapped_backend::leave() { swapped_place::leave(body_); }

[[gnu::always_inline]] inline void swapped_backend::finish() { swapped_place::finish(body_); }

[[gnu::always_inline]] inline void swapped_backend::enter() {
    if (shared().holds(__builtin_frame_address(0))) [[unlikely]]
        return enter_from_inside();
    visit();
    if (shared().wish_ != nullptr) [[unlikely]]
        fulfil_wishes();
}

}  // namespace weft::inline v0
