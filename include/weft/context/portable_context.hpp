// portable_context.hpp - the same switch over ucontext: portable, and some two hundred times
// slower.
//
// getcontext and swapcontext save the signal mask with a system call and keep the floating-point
// control words. It serves architectures without a file of their own, and comparison.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <weft/context/context_state.hpp>

namespace weft::inline v0 {

namespace detail {
struct portable_place;
}

/// The contract of native_context, line by line; only what differs is said here.
class portable_context {
public:
    portable_context() noexcept = default;
    portable_context(portable_context&&) noexcept = default;
    portable_context& operator=(portable_context&&) noexcept = default;

    /// Fails: std::system_error with errno when getcontext fails.
    [[nodiscard]] static portable_context make(std::span<std::byte> stack, context_entry entry,
                                               void* argument, context_options options = {});
    /// As context::swap().
    static void swap(portable_context& from, portable_context& to) noexcept {
        static_cast<void>(swap_function(from, to));
    }
    /// As native_context's.
    [[noreturn]] static void jump(portable_context& to) noexcept;
    /// As native_context's.
    [[nodiscard]] std::byte* lowest_used() const noexcept;
    /// As native_context's.
    [[nodiscard]] std::byte* lowest_kept() const noexcept { return lowest_used_; }

    // For weft's own functions (src/context/switch.hpp).
    /// What swap() calls.
    static detail::arrival<portable_context> swap_function(portable_context& from,
                                                           portable_context& to) noexcept;

private:
    detail::portable_place* saved_ = nullptr;  // on the stack that it describes
    std::byte* lowest_used_ = nullptr;         // of that stack
    [[no_unique_address]] detail::switch_record record_;
};

}  // namespace weft::inline v0
