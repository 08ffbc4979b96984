// thread_now.hpp - on which thread a fiber is, asked anew each time.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>

namespace weft_test {

/// The same value, of which the compiler knows nothing: else it infers that a function that returns
/// a thread's own thing always returns the same, and does not ask again after the thread changed.
template <class T>
[[gnu::always_inline]] inline T fresh(T value) {
    asm volatile("" : "+r"(value)::"memory");
    return value;
}

/// pthread_self(), which compilers take to be constant. Not inlined.
[[gnu::noinline]] inline pthread_t thread_now() { return fresh(::pthread_self()); }

}  // namespace weft_test
