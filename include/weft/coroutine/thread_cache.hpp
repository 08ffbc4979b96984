// thread_cache.hpp - OS threads that wait for their next coroutine.
//
// The thread back end runs each coroutine on a thread of its own. Making one takes tens of
// microseconds; with a cache a thread that finished one coroutine serves the next that asks for no
// more stack.
//
//     thread_cache threads;
//     thread_coroutine c({.threads = &threads}, [] { ... });
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include <weft/base/version.hpp>

namespace weft::inline v0 {

/// Thread-safe: all members.
class thread_cache {
public:
    thread_cache();
    thread_cache(const thread_cache&) = delete;
    thread_cache& operator=(const thread_cache&) = delete;
    /// Joins every idle thread. Aborts: if a coroutine still uses one.
    ~thread_cache();

    /// Threads that wait for the next coroutine.
    [[nodiscard]] std::size_t idle() const noexcept;
    /// How many threads were ever started.
    [[nodiscard]] std::size_t started() const noexcept;

private:
    friend class thread_backend;
    struct implementation;
    std::unique_ptr<implementation> implementation_;
};

}  // namespace weft::inline v0
