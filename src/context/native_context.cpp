// native_context.cpp - making contexts, and the switch as functions that anybody may call.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/context/native_context.hpp>

#include <weft/base/assert.hpp>

#include "context/switch.hpp"

#if WEFT_NATIVE_SWITCH

extern "C" void weft_context_entry();

namespace weft::inline v0 {

namespace {

// What the entry stub finds at the top of a new stack. It calls first(second); in sanitizer builds
// that is arrive_first, which finds what make() was given just above.
struct first_frame {
    context_entry first;
    void* second;
    context_entry entry;
    void* argument;
};

[[maybe_unused]] WEFT_NO_SANITIZE void arrive_first(void* frame) {
    const auto* made = static_cast<first_frame*>(frame);
    detail::arrived(nullptr);
    made->entry(made->argument);
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
    const auto high = reinterpret_cast<std::uintptr_t>(stack.data() + stack.size());
    auto* frame = reinterpret_cast<first_frame*>(high / 16 * 16 - sizeof(first_frame));
#if WEFT_ASAN
    *frame = {arrive_first, frame, entry, argument};
#else
    *frame = {entry, argument, nullptr, nullptr};
#endif
    made.registers_.stack_pointer = frame;
    made.registers_.resume_address = reinterpret_cast<void*>(&weft_context_entry);
    if (options.keep_fp_control) {
        made.state_.flags |= detail::context_state::keeps_fp_control;
        made.state_.own_fp_control = detail::read_fp_control();
    }
    return made;
}

// noinline, also at link time: see switch.hpp.
[[gnu::noinline]] void native_context::swap_function(void* from, void* to) {
    detail::swap_here(*static_cast<native_context*>(from), *static_cast<native_context*>(to));
}

// Not instrumented, for it does not return: see coroutine_block.cpp.
WEFT_NO_SANITIZE void native_context::jump(native_context& to) noexcept {
    detail::jump_from_here(to);
}

[[gnu::noinline, gnu::cold]] detail::arrival<native_context> detail::carry_and_swap(
    native_context& from, native_context& to) noexcept {
    carry(from.state_, to.state_);
    return swap_registers(from, to);
}

const void* detail::carry_and_return(native_context& from, native_context& to) noexcept {
    return carry_and_swap(from, to).left;
}

#if !defined(__x86_64__) || WEFT_ASAN || WEFT_TSAN
[[gnu::noinline]] const void* detail::swap_and_return(native_context& from,
                                                      native_context& to) noexcept {
    return swap_registers(from, to).left;
}
#endif

std::byte* native_context::lowest_used() const noexcept {
    return static_cast<std::byte*>(registers_.stack_pointer) - detail::red_zone;
}

}  // namespace weft::inline v0

#endif
