// reactor.hpp - which way of the kernel a worker or loop learns by that a descriptor is ready.
//
// A reactor is attached to a worker or loop when something there first waits for a descriptor: a
// program without I/O has no descriptors of ours. An idle worker sleeps in it, a busy one looks
// there every 61 dispatches and every 100 us (a loop not before as many have run as it found last).
// Which one is asked for by choose_reactor(), else by the environment variable WEFT_REACTOR (epoll
// or io_uring); else it is epoll. Where io_uring is refused, as containers often do, or is missing
// in this build, epoll serves. Another value of the variable aborts.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include <weft/exec/executor.hpp>

namespace weft::inline v0::io {

/// What the kernel is asked by.
enum class reactor_kind : unsigned char {
    none,      ///< by nothing so far
    epoll,     ///< epoll(7)
    io_uring,  ///< io_uring(7)
};

/// For all workers of this executor that have no reactor yet. none: as if it had not been said.
/// Suspends: never. From: any thread. Fails: never; reactor_in_use() tells what came of it.
void choose_reactor(executor& where, reactor_kind wanted) noexcept;

/// The reactor of the worker that runs the caller; none: it has none so far, or the caller
/// runs on no executor of ours. From: any fiber or thread.
[[nodiscard]] reactor_kind reactor_in_use() noexcept;

/// Whether this build and this kernel can do it.
[[nodiscard]] bool is_available(reactor_kind kind) noexcept;

/// "none", "epoll", "io_uring".
[[nodiscard]] std::string_view to_string(reactor_kind kind) noexcept;

}  // namespace weft::inline v0::io
