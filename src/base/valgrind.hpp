// valgrind.hpp - what valgrind is told, and nothing where its headers are missing.
//
// WEFT_NO_VALGRIND leaves them out where they are there: for the test that it can be done.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#if __has_include(<valgrind/memcheck.h>) && !defined(WEFT_NO_VALGRIND)
#include <valgrind/memcheck.h>
#else
// The stand-ins use their arguments, so that nothing is unused here that is not elsewhere.
#define RUNNING_ON_VALGRIND 0
#define VALGRIND_STACK_REGISTER(low, high) (static_cast<void>(low), static_cast<void>(high), 0U)
#define VALGRIND_STACK_DEREGISTER(id) static_cast<void>(id)
#define VALGRIND_MAKE_MEM_UNDEFINED(address, size) \
    (static_cast<void>(address), static_cast<void>(size))
#define VALGRIND_MAKE_MEM_DEFINED(address, size) \
    (static_cast<void>(address), static_cast<void>(size))
#endif
