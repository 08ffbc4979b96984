// annotate.hpp - what valgrind, LSan and TSan are told about memory that is used as a stack.
//
// The depot announces a stack when it cuts it, and what caches hold stays known: taking a cached
// one costs nothing. A user's source says nothing to anybody, so whoever takes a stack of a source
// that he was given takes it here.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <weft/stack/stack.hpp>

namespace weft::inline v0::detail {

/// Called once for memory that becomes a stack; fills in stack::tsan_fiber in TSan builds.
/// Fails: std::bad_alloc.
void announce_stack(stack& fresh);

/// Called before that memory goes back to the system, or to a user.
void forget_stack(const stack& gone) noexcept;

/// LSan reads whatever it knows, page by page, also what nobody ever wrote: a stack that holds
/// nothing need not be known. None of the two does anything in other builds.
void hide_from_leak_search(const stack& trimmed) noexcept;
void show_to_leak_search(const stack& used_again) noexcept;

/// A stack of that source, which LSan and valgrind know until it is given back. (TSan learns of it
/// with the context that is made on it.) Fails: as stack_source::take().
[[nodiscard]] stack take_known(stack_source& source, std::size_t size);
void give_back_known(stack_source& source, const stack& taken) noexcept;

}  // namespace weft::inline v0::detail
