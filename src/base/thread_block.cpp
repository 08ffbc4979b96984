// thread_block.cpp - the thread_local itself.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/base/thread_block.hpp>

#include <cxxabi.h>

extern "C" {
[[gnu::used]] constinit thread_local weft::detail::thread_block weft_v0_thread_block{};
}

namespace weft::inline v0::detail {

constinit exception_words unknown_exceptions{&unknown_exceptions, 1};

// noinline and a laundered pointer: __cxa_get_globals is declared const, so two calls of it in one
// function would be merged, also over a switch to another thread.
[[gnu::noinline]] exception_words* find_exception_words() noexcept {
    void* globals = abi::__cxa_get_globals();
    asm volatile("" : "+r"(globals)::"memory");
    return static_cast<exception_words*>(globals);
}

#if !(defined(__x86_64__) && !defined(__ILP32__)) && !defined(__aarch64__)
[[gnu::noinline]] thread_block& this_thread_block() noexcept {
    thread_block* block = &weft_v0_thread_block;
    asm volatile("" : "+r"(block)::"memory");
    return *block;
}
#endif

}  // namespace weft::inline v0::detail
