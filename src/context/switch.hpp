// switch.hpp - the switch of native_context, inlined into weft's own functions.
//
// Never into a user's: in a frame that is realigned and also holds an alloca, clang addresses the
// locals through rbx, and an asm that clobbers it would lose them. What is inlined there is
// weft/context/swap_in_frame.hpp, and only for x86-64.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include <weft/context/context.hpp>

#if WEFT_NATIVE_SWITCH

#if defined(__x86_64__)
#include "context/switch_x86_64.hpp"
#else
#include "context/switch_aarch64.hpp"
#endif

#include "context/annotate.hpp"
#include "context/carry.hpp"

namespace weft::inline v0::detail {

// The registers are a context's first member, so their address is its own.
static_assert(std::is_standard_layout_v<native_context> &&
              offsetof(native_context, registers_) == 0);

// The last step of a switch: nothing is left to be put away.
[[gnu::always_inline]] inline arrival<native_context> swap_registers(native_context& from,
                                                                     native_context& to) noexcept {
    void* fake_stack = nullptr;
    leaving(from.record_, to.record_, fake_stack);
    const registers_on_arrival at = transfer(from.registers_, to.registers_);
    arrived(fake_stack);
    return {*reinterpret_cast<native_context*>(at.mine),
            reinterpret_cast<native_context*>(at.left)};
}

/// swap_registers() of one that has something to put away, and takes it up when it goes on. A
/// function with a switch of its own: so whoever goes there need not ask, and nobody who switches
/// has to keep both addresses in further registers over a call.
[[nodiscard]] arrival<native_context> carry_and_swap(native_context& from,
                                                     native_context& to) noexcept;

/// native_context::swap(), inlined, for one who has found the thread's exception words already;
/// says who goes on here, and who left. Both are in registers on arrival, while whatever the caller
/// kept lies in its frame: a load behind a load of the stack pointer.
[[gnu::always_inline]] inline arrival<native_context> swap_here(const exception_words& words,
                                                                native_context& from,
                                                                native_context& to) noexcept {
    if (must_put_away(words)) [[unlikely]]
        return carry_and_swap(from, to);
    return swap_registers(from, to);
}

[[gnu::always_inline]] inline arrival<native_context> swap_here(native_context& from,
                                                                native_context& to) noexcept {
    return swap_here(*exceptions_of_this_thread(), from, to);
}

/// Whether one that leaves a context of this kind has to call carry_and_return().
[[nodiscard, gnu::always_inline]] inline bool must_carry(const exception_words& words,
                                                         const native_context&) noexcept {
    return must_put_away(words);
}

/// carry_and_swap() and then who left; nullptr: one that jumped.
[[nodiscard, gnu::noinline]] const void* carry_and_return(native_context& from,
                                                          native_context& to) noexcept;

/// native_context::jump(), inlined.
[[noreturn, gnu::always_inline]] inline void jump_from_here(native_context& to) noexcept {
    if (must_put_away()) [[unlikely]]
        put_away_finished();
    leaving_for_good(to.record_);
    leap(to.registers_);
}

// --- a first visit that is a call
//
// A body that is entered for the first time may as well be called on its stack. If it returns
// before it was left once, the call returns, and there never was a switch. Sanitizers must be told
// of every stack and are at a switch, so in their builds it is one; so it is when something must be
// put away.

/// What enter_here() starts a body with: an empty context if by a call, otherwise a new one.
[[nodiscard]] inline native_context to_be_entered(native_context*, std::span<std::byte> stack,
                                                  context_entry entry, void* argument,
                                                  context_options options) {
    const bool by_switch = WEFT_ASAN || WEFT_TSAN || options.keep_fp_control || must_put_away();
    if (by_switch) [[unlikely]]
        return native_context::make(stack, entry, argument, options);
    return {};
}

/// Whether `body` runs inside the call that entered it: it was not left so far.
[[nodiscard]] inline bool is_called(const native_context& body) noexcept {
    return body.registers_.resume_address == nullptr;
}

/// How many bytes at the high end of its stack a body needs no more, once it was left.
[[nodiscard]] inline std::size_t spent_by(const native_context&) noexcept { return spent_at_start; }

/// swap_here(), or the call that starts a body; the entry may return while is_called() holds.
[[gnu::always_inline]] inline void enter_here(native_context& from, native_context& body,
                                              std::span<std::byte> stack, context_entry entry,
                                              void* argument) noexcept {
    if (!is_called(body)) {
        swap_here(from, body);
        return;
    }
    const auto high = reinterpret_cast<std::uintptr_t>(stack.data() + stack.size());
    call_on(from.registers_, reinterpret_cast<void*>(high / 16 * 16), entry, argument);
}

}  // namespace weft::inline v0::detail

#endif

#include <weft/base/thread_block.hpp>

namespace weft::inline v0::detail {

[[gnu::always_inline]] inline arrival<portable_context> swap_here(portable_context& from,
                                                                  portable_context& to) noexcept {
    return portable_context::swap_function(from, to);
}

[[gnu::always_inline]] inline arrival<portable_context> swap_here(const exception_words&,
                                                                  portable_context& from,
                                                                  portable_context& to) noexcept {
    return portable_context::swap_function(from, to);
}

[[nodiscard, gnu::always_inline]] inline bool must_carry(const exception_words&,
                                                         const portable_context&) noexcept {
    return false;  // it sees to that itself
}

[[nodiscard, gnu::always_inline]] inline const void* carry_and_return(
    portable_context& from, portable_context& to) noexcept {
    return portable_context::swap_function(from, to).left;
}

[[gnu::always_inline]] inline arrival<portable_context> swap_registers(
    portable_context& from, portable_context& to) noexcept {
    return portable_context::swap_function(from, to);
}

[[noreturn, gnu::always_inline]] inline void jump_from_here(portable_context& to) noexcept {
    portable_context::jump(to);
}

// It has no way to call on another stack: every visit is a switch.
[[nodiscard]] inline portable_context to_be_entered(portable_context*, std::span<std::byte> stack,
                                                    context_entry entry, void* argument,
                                                    context_options options) {
    return portable_context::make(stack, entry, argument, options);
}

[[nodiscard]] inline bool is_called(const portable_context&) noexcept { return false; }

[[nodiscard]] inline std::size_t spent_by(const portable_context&) noexcept { return 0; }

[[gnu::always_inline]] inline void enter_here(portable_context& from, portable_context& body,
                                              std::span<std::byte>, context_entry, void*) noexcept {
    swap_here(from, body);
}

}  // namespace weft::inline v0::detail
