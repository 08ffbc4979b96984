// context_state.hpp - what goes with a context besides its registers, for both implementations.
//
// The exception state of the C++ runtime (so that a catch block may switch) and the floating-point
// control words (only on request): few have any of it, so it waits in the frame of the switch
// (src/context/carry.hpp) and a context has no room for it. What the sanitizers must know is in the
// context, in their builds.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <weft/base/version.hpp>

#if (defined(__x86_64__) && !defined(__ILP32__) || defined(__aarch64__)) && !WEFT_PORTABLE_SWITCH
#define WEFT_NATIVE_SWITCH 1
#else
/// 1 where weft has a switch of its own for the architecture.
#define WEFT_NATIVE_SWITCH 0
#endif

namespace weft::inline v0 {

/// What a new context runs. It gets the argument of make() and must not return: its way out is
/// jump().
using context_entry = void (*)(void* argument);

/// What a context can be told when it is made.
struct context_options {
    /// Keeps MXCSR and the x87 control word (FPCR on aarch64) per context: it starts with its
    /// maker's and has its own from then on. Without it they belong to the thread, as the rounding
    /// mode that one context sets is seen by the next. portable_context always keeps them.
    bool keep_fp_control = false;
    /// A TSan fiber context that lives as long as the stack does (stack::tsan_fiber), or nullptr
    /// for one of its own. Ignored in other builds.
    void* tsan_fiber = nullptr;
};

namespace detail {

struct context_state {
    enum : std::uint32_t { holds_exceptions = 1, keeps_fp_control = 2 };

    std::uint32_t flags = 0;                // what is kept here
    std::uint32_t uncaught_exceptions = 0;  // with caught_exceptions: the two words of the C++
    void* caught_exceptions = nullptr;      // runtime, if holds_exceptions is set
    std::uint64_t own_fp_control = 0;       // if keeps_fp_control is set
};

// Where a switch arrived: `mine` is where the computation that goes on was found (not where it was
// saved, if it was moved meanwhile), `left` where the one that switched to it is saved now, or
// nullptr if that one jumped.
template <class Context>
struct arrival {
    Context& mine;
    Context* left;
};

// What ASan and TSan must be told at a switch. Empty in other builds.
struct switch_record {
#if WEFT_ASAN || WEFT_TSAN
    const void* stack_low = nullptr;
    std::size_t stack_size = 0;
    void* tsan_fiber = nullptr;  // of whoever left last: perhaps one that runs inside this one
    void* own_tsan_fiber = nullptr;

    switch_record() noexcept = default;
    switch_record(std::span<std::byte> stack, void* pooled_tsan_fiber);
    switch_record(switch_record&& other) noexcept;
    switch_record& operator=(switch_record&& other) noexcept;
    ~switch_record();
#endif
};

}  // namespace detail
}  // namespace weft::inline v0
