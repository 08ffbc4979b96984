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
    detail::claim_bytes(stack_.span(), stack_.span().last(0));  // others had another top
}

shared_stack::~shared_stack() {
    WEFT_ASSERT(users_ == 0, "shared_stack: destroyed while coroutines use it");
    detail::give_back_known(*options_.stacks, whole_);
}

// --- a coroutine on it

swapped_backend::swapped_backend(const coroutine_options& options, context_entry entry,
                                 void* argument)
    : shared_(options.shared != nullptr
                  ? *options.shared
                  : throw std::invalid_argument("weft: a swapped coroutine needs options.shared")),
      entry_(entry),
      argument_(argument),
      keep_fp_control_(options.keep_fp_control) {
    if (options.measure_stack)
        throw std::invalid_argument("weft: a swapped coroutine has no stack of its own to measure");
    if (shared_.options_.policy == buffer_policy::allocate_at_creation)
        reserve_buffer(shared_.options_.buffer_size);
    ++shared_.users_;
}

swapped_backend::~swapped_backend() {
    reclaim();
    --shared_.users_;
}

stack swapped_backend::where() const noexcept { return shared_.where(); }

const std::byte* swapped_backend::kept_by_resumer() const noexcept {
    return shared_.back_->lowest_kept();
}

// The asking one is parked with its wish; whoever entered it from outside enters us for it.
void swapped_backend::enter_from_inside() {
    swapped_backend& asking = *shared_.occupant_;
    shared_.wish_ = this;
    asking.leave();
    if (asking.wish_failure_ != nullptr)
        std::rethrow_exception(std::exchange(asking.wish_failure_, nullptr));
}

// After a visit from outside: the body left because it wants somebody else to run first.
void swapped_backend::fulfil_wishes() {
    while (shared_.wish_ != nullptr) {
        swapped_backend& wanted = *std::exchange(shared_.wish_, nullptr);
        try {
            wanted.visit();
            wanted.fulfil_wishes();
        } catch (...) { wish_failure_ = std::current_exception(); }
        visit();
    }
}

// Before a visit. Whoever is on the stack is copied out first; that may fail, and then nothing
// happened.
void swapped_backend::make_room() {
    WEFT_ASSERT(!shared_.in_use_,
                "coroutine: a swapped one was resumed while another on its shared stack is in the "
                "middle of a call to a different stack");
    if (shared_.occupant_ != nullptr && shared_.occupant_ != this) shared_.occupant_->copy_out();
    switch (place_) {
        case place::nowhere:
            body_ = detail::to_be_entered(&body_, shared_.stack_.span(), entry_, argument_,
                                          {.keep_fp_control = keep_fp_control_});
            ++shared_.counters_.calls;
            break;
        case place::in_buffer:
            copy_in();
            show_locals();
            break;
        case place::on_stack:
            ++shared_.counters_.in_place;
            show_locals();
            break;
    }
    place_ = place::on_stack;
    shared_.occupant_ = this;
    shared_.in_use_ = true;
    if (!detail::is_called(body_)) ++shared_.counters_.switches;
}

// After a visit.
void swapped_backend::settle() noexcept {
    shared_.in_use_ = false;
    if (shared_.occupant_ == nullptr) return;  // it finished
    used_ = static_cast<std::size_t>(shared_.stack_.high() - lowest_kept() + 7) / 8 * 8;
    ++shared_.counters_.parks;
    hidden_ = detail::hide_bytes(parked_bytes());
}

void swapped_backend::reclaim() noexcept {
    if (shared_.occupant_ == this) shared_.occupant_ = nullptr;
    release_buffer();
    place_ = place::nowhere;
}

// --- bytes

void swapped_backend::copy_out() {
    reserve_buffer(used_);
    detail::copy_bytes(buffer_, parked_bytes().data(), used_);
    place_ = place::in_buffer;
    shared_.occupant_ = nullptr;
    ++shared_.counters_.copies_out;
}

void swapped_backend::copy_in() noexcept {
    detail::claim_bytes(shared_.stack_.span(), parked_bytes());
    detail::copy_bytes(parked_bytes().data(), buffer_, used_);
    ++shared_.counters_.copies_in;
    if (shared_.options_.policy == buffer_policy::release_at_resume) release_buffer();
}

void swapped_backend::reserve_buffer(std::size_t size) {
    if (size <= buffer_size_) return;
    if (shared_.options_.policy == buffer_policy::allocate_at_creation && buffer_ != nullptr)
        throw std::length_error("weft: a swapped coroutine uses " + std::to_string(size) +
                                " bytes, and its buffer from creation has " +
                                std::to_string(buffer_size_));
    swap_allocator* const allocator = shared_.options_.allocator;
    void* const grown = allocator != nullptr ? allocator->allocate(size) : ::operator new(size);
    release_buffer();
    buffer_ = static_cast<std::byte*>(grown);
    buffer_size_ = size;
    ++shared_.counters_.buffers;
    shared_.counters_.buffer_bytes += size;
}

void swapped_backend::release_buffer() noexcept {
    if (buffer_ == nullptr) return;
    if (swap_allocator* const allocator = shared_.options_.allocator)
        allocator->release(buffer_, buffer_size_);
    else
        ::operator delete(buffer_, buffer_size_);
    shared_.counters_.buffer_bytes -= buffer_size_;
    buffer_ = nullptr;
    buffer_size_ = 0;
}

// A fiber may wait inside a coroutine, on that one's stack, which stays where it is. What the fiber
// uses of the shared stack then ends where it resumed the outermost of those that it is inside of:
//
//      shared stack            stack of C            stack of D
//      F: C.resume()  -------> D.resume()  --------> waits: body_ is saved here
//      ^ C's resumer           ^ D's resumer         ^ runs on the thread
//
// The thread still says what ran when the one that left did.
const std::byte* swapped_backend::lowest_kept() const noexcept {
    const std::byte* lowest = body_.lowest_kept();
    const detail::activity* inside = detail::this_thread_block().running;
    while (!shared_.holds(lowest)) [[unlikely]] {
            WEFT_ASSERT(
                inside != nullptr && inside->is_coroutine(),
                "swapped: it waits on another stack than its own, and not inside a coroutine "
                "that it resumed");
            const auto& coroutine = static_cast<const detail::coroutine_base&>(*inside);
            lowest = coroutine.kept_by_resumer(coroutine);
            inside = coroutine.outer;
        }
    return lowest;
}

std::span<std::byte> swapped_backend::parked_bytes() const noexcept {
    return {shared_.stack_.high() - used_, used_};
}

void swapped_backend::show_locals() noexcept {
    WEFT_ASSERT(detail::show_bytes(shared_.stack_.span(), parked_bytes(), hidden_),
                "coroutine: the locals of a parked swapped one were written; pointers to them are "
                "valid only while it runs");
}

}  // namespace weft::inline v0
