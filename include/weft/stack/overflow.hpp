// overflow.hpp - a stack overflow is reported, never silent.
//
// A fault in the guard below a stack writes a line to stderr, from a handler on an alternate signal
// stack:
//
//     weft: stack overflow in coroutine 'parser': address 0x7f.. is below its stack 0x7f..-0x7f..
//     (65536 bytes), 65612 bytes deep
//
// and then goes on to the handler that was there before, or to the default action: a core dump
// stays possible. The first coroutine of a process turns the report on, unless it was turned off
// before.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <weft/base/version.hpp>

namespace weft::inline v0 {

/// Installs the SIGSEGV handler. Does nothing when it is installed. Thread-safe.
/// Fails: std::system_error with errno.
void enable_overflow_report();

/// Removes it, if it is still the one installed, and keeps weft from installing it by itself.
void disable_overflow_report() noexcept;

namespace detail {
/// Gives the calling thread an alternate signal stack if it has none, and enables the report.
void prepare_thread_for_overflow() noexcept;
}  // namespace detail

}  // namespace weft::inline v0
