// reactor.hpp - which way of the kernel a worker or loop learns by that a descriptor is ready.
//
// A reactor is attached to a worker or loop when something there first waits for a descriptor: a
// program without I/O has no descriptors of ours. An idle worker sleeps in it, a busy one looks
// there every 61 dispatches and every 100 us. There is one kind so far, over epoll.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include <weft/exec/executor.hpp>

namespace weft::inline v0::io {

/// The kinds that there are; none is for a worker or loop that has met no I/O.
enum class reactor_kind : unsigned char { none, epoll };

/// The reactor of the worker that runs the caller; none: it has none so far, or the caller
/// runs on no executor of ours. From: any fiber or thread.
[[nodiscard]] reactor_kind reactor_in_use() noexcept;

/// Its name, as it is written here.
[[nodiscard]] std::string_view to_string(reactor_kind kind) noexcept;

}  // namespace weft::inline v0::io
