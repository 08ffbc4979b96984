// coroutine_thread.hpp - an OS thread that runs one body at a time, in turn with a resumer.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>

#include <weft/base/thread_block.hpp>
#include <weft/context/context_state.hpp>
#include <weft/stack/stack.hpp>

#include "coroutine/hand_over.hpp"

namespace weft::inline v0::detail {

class coroutine_thread {
public:
    /// Starts the thread; it sleeps until the first enter().
    /// Fails: std::system_error with what pthread_create returned.
    explicit coroutine_thread(std::size_t stack_size);
    coroutine_thread(const coroutine_thread&) = delete;
    coroutine_thread& operator=(const coroutine_thread&) = delete;
    /// Joins it. No body may be running.
    ~coroutine_thread();

    /// What the next enter() starts, and what this thread then says it runs. `measured`: its stack
    /// is painted first.
    void set_body(context_entry entry, void* argument, activity& runs, bool measured) noexcept {
        entry_ = entry;
        argument_ = argument;
        activity_ = &runs;
        measured_ = measured;
    }

    void enter() noexcept;
    void leave() noexcept;

    [[nodiscard]] std::size_t stack_size() const noexcept { return stack_size_; }

private:
    static void* main(void* self);
    void run() noexcept;

    // Written by the resumer while it is its turn; read by the thread while it is the thread's.
    context_entry entry_ = nullptr;  // nullptr: end
    void* argument_ = nullptr;
    activity* activity_ = nullptr;
    bool measured_ = false;
    alignas(64) hand_over turn_;  // on a line of its own: nobody else's writes slow it down
    std::size_t stack_size_;
    pthread_t thread_;
};

}  // namespace weft::inline v0::detail
