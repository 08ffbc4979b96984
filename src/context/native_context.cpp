// native_context.cpp - making contexts, and the switch as functions that anybody may call.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/context/native_context.hpp>

#include <weft/base/assert.hpp>

#include "context/switch.hpp"

#if WEFT_NATIVE_SWITCH

extern "C" void weft_v0_context_entry();

namespace weft::inline v0 {

namespace {

// What the entry stub finds at the top of a new stack. It calls first(second); where something is
// to be done before, first is arrive_first, which finds what make() was given just above.
struct first_frame {
    context_entry first;
    void* second;
    context_entry entry;
    void* argument;
};

// Of one that keeps its floating-point control words.
struct keeping_first_frame : first_frame {
    std::uint64_t fp_control;
    std::uint64_t unused;  // so that the frame stays aligned
};

template <bool Keeps>
[[maybe_unused]] WEFT_NO_SANITIZE void arrive_first(void* frame) {
    const auto* made = static_cast<first_frame*>(frame);
    detail::arrived(nullptr);
    if constexpr (Keeps)
        detail::keep_fp_control(static_cast<const keeping_first_frame*>(made)->fp_control);
    made->entry(made->argument);
}

template <class Frame>
Frame* place_first_frame(std::span<std::byte> stack) {
    static_assert(sizeof(Frame) % 16 == 0);
    const auto high = reinterpret_cast<std::uintptr_t>(stack.data() + stack.size());
    auto* const frame = reinterpret_cast<Frame*>(high / 16 * 16 - sizeof(Frame));
    detail::make_plain_memory(std::as_writable_bytes(std::span(frame, 1)));
    return frame;
}

}  // namespace

native_context native_context::make(std::span<std::byte> stack, context_entry entry, void* argument,
                                    context_options options) {
    WEFT_ASSERT(stack.size() >= 1024, "context: made on a stack of less than 1 KiB");
    WEFT_ASSERT(
        !detail::shadow_stack_is_live(),
        "context: this thread has a hardware shadow stack, which the switch does not maintain; "
        "start the program without it (GLIBC_TUNABLES=glibc.cpu.x86_shstk=off)");
    native_context made;
#if WEFT_ASAN || WEFT_TSAN
    made.record_ = detail::switch_record(stack, options.tsan_fiber);
#endif
    if (options.keep_fp_control) {
        auto* const frame = place_first_frame<keeping_first_frame>(stack);
        *frame = {{arrive_first<true>, frame, entry, argument}, detail::read_fp_control(), 0};
        made.registers_.stack_pointer = frame;
    } else {
        auto* const frame = place_first_frame<first_frame>(stack);
#if WEFT_ASAN
        *frame = {arrive_first<false>, frame, entry, argument};
#else
        *frame = {entry, argument, nullptr, nullptr};
#endif
        made.registers_.stack_pointer = frame;
    }
    made.registers_.resume_address = reinterpret_cast<void*>(&weft_v0_context_entry);
    return made;
}

#if WEFT_SWITCH_IN_FRAME
native_context* detail::with_registers_alone(native_context& to) noexcept {
    return must_put_away() ? nullptr : &to;
}
#endif

// noinline, also at link time: see switch.hpp.
[[gnu::noinline]] void native_context::swap_function(void* from, void* to) {
    detail::swap_here(*static_cast<native_context*>(from), *static_cast<native_context*>(to));
}

// Not instrumented, for it does not return: see coroutine_block.cpp.
WEFT_NO_SANITIZE void native_context::jump(native_context& to) noexcept {
    detail::jump_from_here(to);
}

// What is put away waits in this frame, so that a context, of which there may be a million, has no
// room for it.
[[gnu::noinline, gnu::cold]] detail::arrival<native_context> detail::carry_and_swap(
    native_context& from, native_context& to) noexcept {
    context_state mine;
    put_away(mine);
    const arrival<native_context> at = swap_registers(from, to);
    take_up(mine);
    return at;
}

const void* detail::carry_and_return(native_context& from, native_context& to) noexcept {
    return carry_and_swap(from, to).left;
}

std::byte* native_context::lowest_used() const noexcept {
    return static_cast<std::byte*>(registers_.stack_pointer) - detail::red_zone;
}

}  // namespace weft::inline v0

#endif
