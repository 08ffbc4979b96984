// sanitizer.hpp - which sanitizer this translation unit is built with.
//
// WEFT_ASAN and WEFT_TSAN are 0 or 1. What they change is confined to context/annotate.hpp
// (switches) and to the stack part (memory); a mix of settings in one program does not link
// (version.hpp).
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#if defined(__SANITIZE_ADDRESS__)
#define WEFT_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WEFT_ASAN 1
#endif
#endif
#ifndef WEFT_ASAN
/// 1 in a build with AddressSanitizer.
#define WEFT_ASAN 0
#endif

#if defined(__SANITIZE_THREAD__)
#define WEFT_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define WEFT_TSAN 1
#endif
#endif
#ifndef WEFT_TSAN
/// 1 in a build with ThreadSanitizer.
#define WEFT_TSAN 0
#endif

// For a function that handles memory which the sanitizers would misunderstand, such as the raw
// bytes of a parked stack. gcc and clang spell "no instrumentation at all" differently; what clang
// calls so leaves UBSan's.
#if defined(__clang__)
#define WEFT_NO_SANITIZE \
    __attribute__((disable_sanitizer_instrumentation, no_sanitize("undefined"), noinline))
#else
/// A function that no sanitizer instruments.
#define WEFT_NO_SANITIZE \
    __attribute__((no_sanitize_address, no_sanitize_thread, no_sanitize_undefined, noinline))
#endif
