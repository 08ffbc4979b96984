// serve_limits.hpp - how much a server takes on, and what it says in the end.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <system_error>

#include <weft/fiber/options.hpp>

namespace weft::inline v0::io {

/// How much a server takes on.
struct serve_limits {
    /// For a time: without limit.
    static constexpr std::chrono::nanoseconds never = std::chrono::nanoseconds::max();

    /// At most so many at once; others wait in the system's backlog.
    std::size_t connections = 1024;
    /// A read or write of a connection that gets nowhere for so long fails with timed_out.
    std::chrono::nanoseconds idle = never;
    /// So long a connection may last; then all its waits say timed_out.
    std::chrono::nanoseconds total = never;
    /// When the server stops: so long what is under way may take. Then it is cancelled.
    std::chrono::nanoseconds grace = std::chrono::seconds(10);
    /// When a handler has returned, and its client goes on sending though what was written to it is
    /// on the way: so long that client is still listened to. (What is closed with bytes unread is
    /// reset, and the end of the answer would be lost.) 0: not at all.
    std::chrono::nanoseconds linger = std::chrono::seconds(2);
    /// How long a line may be, with its end.
    std::size_t line = 64 * 1024;
    /// What kind of fibers the handlers are. With no worker named they are dealt out in turn.
    fiber_options fiber = {};
};

/// What a server did, and why it stopped.
struct serve_report {
    std::uint64_t accepted = 0;  // connections
    std::size_t most = 0;        // connections at once
    std::size_t cut = 0;         // connections that were cancelled after the grace
    std::error_code stopped_by;  // operation_canceled, timed_out, errc::closed, ...
};

}  // namespace weft::inline v0::io
