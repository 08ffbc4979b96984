// call_switching.hpp - calling a function that switches, so that no return is mispredicted.
//
// The processor predicts where a `ret` goes from a stack of the calls that it has seen. After a
// switch that stack is the other side's, and every `ret` on the way back to the user's code is a
// misprediction, some 20 cycles each. So whatever switches is called through one place, with no
// call between it and the switch, or stands in the frame of its caller (swap_in_frame.hpp):
//
//   user's code  --call-->  weft_v0_call_switching  --call-->  function, which switches
//
// On the way out the `ret` of `function` goes to the same instruction on both sides, so the
// prediction that the other side made is right; the last step, to the user's code, is an indirect
// jump, which is predicted from its own history (docs/switch.md).
//
// A function of the library that waits somewhere inside is between the user's code and the switch,
// too, and its `ret` would be mispredicted. If that is worth it, it is called by call_waiting(),
// and calls what switches by itself.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <weft/context/context_state.hpp>

#if WEFT_NATIVE_SWITCH && defined(__x86_64__)
extern "C" void weft_v0_call_switching(void* first, void* second, void (*function)(void*, void*));
extern "C" unsigned char weft_v0_call_waiting(void* first, void* second, std::uint64_t third,
                                              std::int64_t fourth,
                                              unsigned char (*function)(void*, void*, std::uint64_t,
                                                                        std::int64_t));
#endif

namespace weft::inline v0::detail {

using switching_function = void (*)(void* first, void* second);

/// function(first, second), which may throw.
[[gnu::always_inline]] inline void call_switching(switching_function function, void* first,
                                                  void* second = nullptr) {
#if WEFT_NATIVE_SWITCH && defined(__x86_64__)
    ::weft_v0_call_switching(first, second, function);
#else
    function(first, second);
#endif
}

using waiting_function = unsigned char (*)(void*, void*, std::uint64_t, std::int64_t);

/// function(first, second, third, fourth), as the last thing that the caller does.
[[gnu::always_inline]] inline unsigned char call_waiting(waiting_function function, void* first,
                                                         void* second, std::uint64_t third,
                                                         std::int64_t fourth) {
#if WEFT_NATIVE_SWITCH && defined(__x86_64__)
    return ::weft_v0_call_waiting(first, second, third, fourth, function);
#else
    return function(first, second, third, fourth);
#endif
}

}  // namespace weft::inline v0::detail
