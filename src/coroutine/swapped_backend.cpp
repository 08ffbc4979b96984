// swapped_backend.cpp - coroutines that share one stack.
//
// The copying code never stands on the stack that it copies: it runs on the stack of whoever
// resumes from outside. One that resumes another from inside first goes back to that place, with a
// wish:
//
//   outside            A (on the shared stack)        B (on the same)
//   A.resume()  -----> runs
//                      B.resume(): wish = B
//   fulfils    <-----  leaves
//   copies A out, enters B  -------------------------> runs
//              <-------------------------------------  yields or ends
//   copies A in, enters A
//               -----> B.resume() returns
//
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>

#include <weft/base/assert.hpp>
#include <weft/base/thread_block.hpp>
#include <weft/coroutine/coroutine_block.hpp>
#include <weft/coroutine/shared_stack.hpp>

#include "coroutine/parked_bytes.hpp"
#include "coroutine/swapped_backend.hpp"
#include "stack/annotate.hpp"

namespace weft::inline v0 {

// --- the shared stack

shared_stack::shared_stack(shared_stack_options options) : options_(options) {
    if (options_.stacks == nullptr) options_.stacks = &shared_stacks();
    whole_ = detail::take_known(*options_.stacks, options_.size);
    stack_ = whole_;
    stack_.size -= std::min(options_.unused / 64 * 64, whole_.size / 2);
    kept_below_ = stack_.high() - detail::spent_by(resumer_);
    detail::claim_bytes(stack_.span(), stack_.span().last(0));  // others had another top
}

shared_stack::~shared_stack() {
    WEFT_ASSERT(users_ == 0, "shared_stack: destroyed while coroutines use it");
    if constexpr (detail::hides_bytes) detail::open_stack(stack_.span());
    detail::give_back_known(*options_.stacks, whole_);
}

// --- a coroutine on it

// The body is its block's entry(), as of every other: visit() knows it.
swapped_backend::swapped_backend(const coroutine_options& options, context_entry, void*) {
    if (options.shared == nullptr)
        throw std::invalid_argument("weft: a swapped coroutine needs options.shared");
    if (options.measure_stack)
        throw std::invalid_argument("weft: a swapped coroutine has no stack of its own to measure");
    attach(*options.shared, options.keep_fp_control);
}

std::exception_ptr& swapped_backend::wish_failure() noexcept {
    return static_cast<basic_coroutine_block<swapped_backend>&>(*this).error;
}

stack swapped_backend::where() const noexcept { return shared().where(); }

const std::byte* swapped_backend::kept_by_resumer() const noexcept {
    return shared().back_->lowest_kept();
}

// The asking one is parked with its wish; whoever entered it from outside enters us for it. A
// coroutine's shared stack is used by coroutines alone.
void swapped_backend::enter_from_inside() {
    auto& asking = static_cast<swapped_backend&>(*shared().occupant_);
    shared().wish_ = this;
    asking.leave();
    if (std::exception_ptr& failure = asking.wish_failure(); failure != nullptr)
        std::rethrow_exception(std::exchange(failure, nullptr));
}

// After a visit from outside: the body left because it wants somebody else to run first.
void swapped_backend::fulfil_wishes() {
    while (shared().wish_ != nullptr) {
        swapped_backend& wanted = *std::exchange(shared().wish_, nullptr);
        try {
            wanted.visit();
            wanted.fulfil_wishes();
        } catch (...) { wish_failure() = std::current_exception(); }
        visit();
    }
}

namespace detail {

// --- a place on it

void swapped_place::attach(shared_stack& shared, bool keep_fp_control) {
    shared_ = &shared;
    keep_fp_control_ = keep_fp_control;
    if (shared.options_.policy == buffer_policy::allocate_at_creation) {
        try {
            reserve_buffer(shared.options_.buffer_size);
        } catch (...) {
            shared_ = nullptr;
            throw;
        }
    }
    ++shared.users_;
}

void swapped_place::detach() noexcept {
    if (shared_ == nullptr) return;
    reclaim();
    --shared_->users_;
    shared_ = nullptr;
}

// Before a visit. Whoever is on the stack is copied out first; that may fail, and then nothing
// happened.
void swapped_place::make_room(context& body, context_entry entry, void* argument) {
    WEFT_ASSERT(!shared_->in_use_,
                "coroutine: a swapped one was resumed while another on its shared stack is in the "
                "middle of a call to a different stack");
    if (shared_->occupant_ != nullptr && shared_->occupant_ != this) shared_->occupant_->copy_out();
    switch (place_) {
        case place::nowhere:
            body = to_be_entered(&body, shared_->stack_.span(), entry, argument,
                                 {.keep_fp_control = keep_fp_control_});
            ++shared_->counters_.calls;
            break;
        case place::in_buffer:
            copy_in();
            show_locals();
            break;
        case place::on_stack:
            ++shared_->counters_.in_place;
            show_locals();
            break;
    }
    place_ = place::on_stack;
    shared_->occupant_ = this;
    shared_->in_use_ = true;
    if (!is_called(body)) ++shared_->counters_.switches;
}

void swapped_place::reclaim() noexcept {
    if (shared_->occupant_ == this) shared_->occupant_ = nullptr;
    release_buffer();
    place_ = place::nowhere;
}

// --- bytes

void swapped_place::copy_out() {
    reserve_buffer(used());
    copy_bytes(buffer_, parked_bytes().data(), used());
    place_ = place::in_buffer;
    shared_->occupant_ = nullptr;
    ++shared_->counters_.copies_out;
}

void swapped_place::copy_in() noexcept {
    claim_bytes(shared_->stack_.span(), parked_bytes());
    copy_bytes(parked_bytes().data(), buffer_, used());
    ++shared_->counters_.copies_in;
    if (shared_->options_.policy == buffer_policy::release_at_resume) release_buffer();
}

void swapped_place::reserve_buffer(std::size_t size) {
    if (size <= buffer_size_) return;
    const bool is_created = place_ != place::nowhere;
    if (shared_->options_.policy == buffer_policy::allocate_at_creation && is_created)
        throw std::length_error("weft: a swapped coroutine uses " + std::to_string(size) +
                                " bytes, and its buffer from creation has " +
                                std::to_string(buffer_size_));
    swap_allocator* const allocator = shared_->options_.allocator;
    void* const grown = allocator != nullptr ? allocator->allocate(size) : ::operator new(size);
    release_buffer();
    buffer_ = static_cast<std::byte*>(grown);
    buffer_size_ = size;
    ++shared_->counters_.buffers;
    shared_->counters_.buffer_bytes += size;
}

void swapped_place::release_buffer() noexcept {
    if (buffer_ == nullptr) return;
    if (swap_allocator* const allocator = shared_->options_.allocator)
        allocator->release(buffer_, buffer_size_);
    else
        ::operator delete(buffer_, buffer_size_);
    shared_->counters_.buffer_bytes -= buffer_size_;
    buffer_ = nullptr;
    buffer_size_ = 0;
}

// A fiber may wait inside a coroutine, on that one's stack, which stays where it is. What the fiber
// uses of the shared stack then ends where it resumed the outermost of those that it is inside of:
//
//      shared stack            stack of C            stack of D
//      F: C.resume()  -------> D.resume()  --------> waits: its body is saved here
//      ^ C's resumer           ^ D's resumer         ^ runs on the thread
//
// The thread still says what ran when the one that left did.
const std::byte* swapped_place::kept_outside(const context& body) const noexcept {
    const std::byte* lowest = body.lowest_kept();
    const activity* inside = this_thread_block().running;
    while (!shared_->holds(lowest)) [[unlikely]] {
            WEFT_ASSERT(
                inside != nullptr && inside->is_coroutine(),
                "swapped: it waits on another stack than its own, and not inside a coroutine "
                "that it resumed");
            const surroundings outside = surroundings_of(*inside);
            lowest = outside.kept;
            inside = outside.running;
        }
    return lowest;
}

std::span<std::byte> swapped_place::parked_bytes() const noexcept {
    return {shared_->kept_below_ - used(), used()};
}

void swapped_place::show_locals() noexcept {
    if constexpr (!hides_bytes) return;
    WEFT_ASSERT(show_bytes(shared_->stack_.span(), parked_bytes(), hidden_),
                "coroutine: the locals of a parked swapped one were written; pointers to them are "
                "valid only while it runs");
}

}  // namespace detail

}  // namespace weft::inline v0
