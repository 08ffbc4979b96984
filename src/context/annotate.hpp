// annotate.hpp - what the sanitizers are told at a switch. In other builds every function is empty.
//
// ASan must know on which stack the thread stands, and keeps one fake stack per context; TSan keeps
// a whole thread state per context. Both are told just before the switch (leaving) and ASan also
// just after it (arrived). All are inlined into the function that switches: a helper of its own
// would push its entry on one TSan shadow stack and pop it from another. That function keeps the
// fake stack in a local: the context it was saved in may have been moved by the time it returns.
//
// The switch synchronises for TSan (flags 0), for what comes after a switch does come after it in
// the order of the program.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <weft/base/thread_block.hpp>
#include <weft/context/context_state.hpp>

#if WEFT_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if WEFT_TSAN
#include <sanitizer/tsan_interface.h>
#endif

namespace weft::inline v0::detail {

/// For valgrind: what lies below a stack pointer that it has seen is gone for it, also when
/// somebody else begins to use that memory.
void make_plain_memory(std::span<std::byte> memory) noexcept;

#if WEFT_ASAN

[[gnu::always_inline]] inline void leaving(switch_record& from, switch_record& to,
                                           void*& fake_stack) noexcept {
    this_thread_block().switched_from = &from;
    __sanitizer_start_switch_fiber(&fake_stack, to.stack_low, to.stack_size);
}

[[gnu::always_inline]] inline void leaving_for_good(switch_record& to) noexcept {
    this_thread_block().switched_from = nullptr;
    __sanitizer_start_switch_fiber(nullptr, to.stack_low, to.stack_size);
}

// The thread's own stack has no record of its bounds until somebody arrives from it: ASan tells
// them.
[[gnu::always_inline]] inline void arrived(void* fake_stack) noexcept {
    switch_record* from = this_thread_block().switched_from;
    if (from == nullptr)
        __sanitizer_finish_switch_fiber(fake_stack, nullptr, nullptr);
    else
        __sanitizer_finish_switch_fiber(fake_stack, &from->stack_low, &from->stack_size);
}

#elif WEFT_TSAN

[[gnu::always_inline]] inline void leaving(switch_record& from, switch_record& to,
                                           void*&) noexcept {
    from.tsan_fiber = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(to.tsan_fiber, 0);
}

[[gnu::always_inline]] inline void leaving_for_good(switch_record& to) noexcept {
    __tsan_switch_to_fiber(to.tsan_fiber, 0);
}

[[gnu::always_inline]] inline void arrived(void*) noexcept {}

#else

[[gnu::always_inline]] inline void leaving(switch_record&, switch_record&, void*&) noexcept {}
[[gnu::always_inline]] inline void leaving_for_good(switch_record&) noexcept {}
[[gnu::always_inline]] inline void arrived(void*) noexcept {}

#endif

}  // namespace weft::inline v0::detail
