// annotate.cpp - see annotate.hpp.
//
// SPDX-License-Identifier: Apache-2.0
#include "stack/annotate.hpp"

#include <new>

#if __has_include(<valgrind/valgrind.h>)
#include <valgrind/valgrind.h>
#else
#define RUNNING_ON_VALGRIND 0
#define VALGRIND_STACK_REGISTER(low, high) void()
#endif
#if WEFT_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/lsan_interface.h>
#endif
#if WEFT_TSAN
#include <sanitizer/tsan_interface.h>
#endif

namespace weft::inline v0::detail {

void announce_stack([[maybe_unused]] stack& fresh) {
    // valgrind searches its list of stacks at every change of the stack pointer: only when it is
    // there.
    if (RUNNING_ON_VALGRIND != 0)
        static_cast<void>(VALGRIND_STACK_REGISTER(fresh.low, fresh.high()));
#if WEFT_ASAN
    __lsan_register_root_region(fresh.low, fresh.size);
#endif
#if WEFT_TSAN
    fresh.tsan_fiber = __tsan_create_fiber(0);
    if (fresh.tsan_fiber == nullptr) throw std::bad_alloc();
#endif
}

void forget_stack([[maybe_unused]] const stack& gone) noexcept {
#if WEFT_ASAN
    __lsan_unregister_root_region(gone.low, gone.size);
    __asan_unpoison_memory_region(gone.low, gone.size);
#endif
#if WEFT_TSAN
    __tsan_destroy_fiber(gone.tsan_fiber);
#endif
}

}  // namespace weft::inline v0::detail
