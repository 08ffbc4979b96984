// call_switching.hpp - calling a function that switches, so that no return is mispredicted.
//
// The processor predicts where a `ret` goes from a stack of the calls that it has seen. After a
// switch that stack is the other side's, and every `ret` on the way back to the user's code is a
// misprediction, some 20 cycles each. So whatever switches is called through one place, with no
// call between it and the switch:
//
//   user's code  --call-->  weft_call_switching  --call-->  function, which switches
//
// On the way out the `ret` of `function` goes to the same instruction on both sides, so the
// prediction that the other side made is right; the last step, to the user's code, is an indirect
// jump, which is predicted from its own history. Two coroutines then switch in a third of the time
// (docs/decisions).
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <weft/context/context_state.hpp>

#if WEFT_NATIVE_SWITCH && defined(__x86_64__)
extern "C" void weft_call_switching(void* first, void* second, void (*function)(void*, void*));
#endif

namespace weft::inline v0::detail {

using switching_function = void (*)(void* first, void* second);

/// function(first, second), which may throw.
[[gnu::always_inline]] inline void call_switching(switching_function function, void* first,
                                                  void* second = nullptr) {
#if WEFT_NATIVE_SWITCH && defined(__x86_64__)
    ::weft_call_switching(first, second, function);
#else
    function(first, second);
#endif
}

}  // namespace weft::inline v0::detail
