// native_context.hpp - the switch written by hand, for x86-64 and aarch64.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <weft/base/sanitizer.hpp>
#include <weft/context/call_switching.hpp>
#include <weft/context/context_state.hpp>

#if WEFT_NATIVE_SWITCH

#if defined(__x86_64__) && !WEFT_ASAN && !WEFT_TSAN
/// 1 where users' functions switch themselves: swap_in_frame.hpp.
#define WEFT_SWITCH_IN_FRAME 1
#endif

namespace weft::inline v0 {

/// Where a computation stopped. A default one is empty: a place for swap() to save into.
/// It may be moved while it is suspended. Thread-safe: no; one thread at a time may use it, and
/// what it was saved by must happen before what resumes it.
class native_context {
public:
    native_context() noexcept = default;
    native_context(native_context&&) noexcept = default;
    native_context& operator=(native_context&&) noexcept = default;

    /// A context that will run entry(argument) at the high end of the stack.
    /// Suspends: never. From: anywhere. Fails: never (in TSan builds std::bad_alloc). Aborts: if
    /// the stack is smaller than 1 KiB, or the thread has a hardware shadow stack, which is not
    /// maintained.
    [[nodiscard]] static native_context make(std::span<std::byte> stack, context_entry entry,
                                             void* argument, context_options options = {});

    /// Saves the running computation in `from` and goes on with `to`. Returns when somebody goes on
    /// with `from`, perhaps in another thread. The two words of exception state go with each.
    static inline void swap(native_context& from, native_context& to) noexcept;

    /// Goes on with `to` and saves nothing: the way out of a finished context, whose stack may be
    /// taken back as soon as control has arrived elsewhere.
    [[noreturn]] static void jump(native_context& to) noexcept;

    /// The lowest stack address that a suspended context still needs, red zone included.
    [[nodiscard]] std::byte* lowest_used() const noexcept;
    /// The same without the red zone. What swap() saved needs none: whoever switches calls others,
    /// too, so the compiler keeps nothing below its stack pointer.
    [[nodiscard]] std::byte* lowest_kept() const noexcept {
        return static_cast<std::byte*>(registers_.stack_pointer);
    }

    // For weft's own functions, which inline the switch (src/context/switch.hpp), and for swap().
    struct registers {
        void* stack_pointer = nullptr;
        void* frame_pointer = nullptr;
        void* resume_address = nullptr;
#if defined(__x86_64__)
        void* rbx = nullptr;  // if it was left by a switch in a user's frame
#endif
    } registers_;
    [[no_unique_address]] detail::switch_record record_;

private:
    static void swap_function(void* from, void* to);
};

namespace detail {
// What the switch has in registers when it arrives, whoever switched: see detail::arrival.
struct registers_on_arrival {
    native_context::registers* mine;
    native_context::registers* left;
};
}  // namespace detail

#if !WEFT_SWITCH_IN_FRAME
inline void native_context::swap(native_context& from, native_context& to) noexcept {
    detail::call_switching(&swap_function, &from, &to);
}
#endif

}  // namespace weft::inline v0

#endif

#ifndef WEFT_SWITCH_IN_FRAME
/// As above: here they call one of ours that does.
#define WEFT_SWITCH_IN_FRAME 0
#endif
