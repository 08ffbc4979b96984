// parked_bytes.hpp - raw access to the bytes of a stack that nobody stands on.
//
// The functions are not instrumented: the bytes hold red zones and dead frames, which is no error
// here.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <weft/base/version.hpp>

namespace weft::inline v0::detail {

/// memcpy for whole words; both sides are 8-aligned.
void copy_bytes(std::byte* to, const std::byte* from, std::size_t size) noexcept;

/// Before bytes are copied to `parked`, for valgrind: it takes what lies below the stack pointer of
/// whoever used the stack last for free, and the red zone below the one that goes on for usable.
/// What is above them was there all the time.
void claim_bytes(std::span<std::byte> whole_stack, std::span<std::byte> parked) noexcept;

/// Whether this build does anything in what follows: others need not call it.
#if WEFT_ASAN || WEFT_CHECKS
inline constexpr bool hides_bytes = true;
#else
inline constexpr bool hides_bytes = false;
#endif

/// Makes the locals of a parked coroutine unusable where they lie; returns what it takes to undo
/// that. ASan builds poison them, and the rest of the stack, where locals of others lay that were
/// copied out. Dev builds turn them into garbage. Other builds do nothing.
[[nodiscard]] std::uintptr_t hide_bytes(std::span<std::byte> whole_stack,
                                        std::span<std::byte> parked) noexcept;

/// Undoes hide_bytes(), perhaps after the bytes were copied out and in again; the rest of the stack
/// is free for new frames. False if somebody wrote to them meanwhile, as far as the build can tell.
[[nodiscard]] bool show_bytes(std::span<std::byte> whole_stack, std::span<std::byte> parked,
                              std::uintptr_t hidden) noexcept;

/// For ASan: nobody is on the stack, until a context is made on it or bytes are shown.
void close_stack(std::span<std::byte> whole_stack) noexcept;
/// For ASan: the stack is memory as any other.
void open_stack(std::span<std::byte> whole_stack) noexcept;

}  // namespace weft::inline v0::detail
