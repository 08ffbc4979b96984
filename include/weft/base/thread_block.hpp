// thread_block.hpp - the one thread_local of the library, and the one way to reach it.
//
// A function that switches stacks may go on in another thread. Compilers do not know that: they
// keep the address of a thread_local, and merge two calls of an accessor, over a switch. So the
// address is computed by a volatile asm each time it is asked for; it is never merged, hoisted or
// kept. Ask again after every switch, and keep the result in no variable that lives over one.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include <weft/base/activity.hpp>

namespace weft::inline v0::detail {

/// What the C++ runtime keeps per thread about exceptions: layout of __cxa_eh_globals (Itanium
/// ABI).
struct exception_words {
    void* caught = nullptr;
    unsigned uncaught = 0;

    /// Whether an exception is in flight. (Bitwise, so that it is one branch.)
    [[nodiscard, gnu::always_inline]] bool any() const noexcept {
        return (reinterpret_cast<std::uintptr_t>(caught) | uncaught) != 0;
    }
};

/// Stands in for the exception words of a thread that has not switched yet. It reads as "something
/// in flight", so that the first switch of a thread takes the slow path, where the real address is
/// found.
extern exception_words unknown_exceptions;

struct switch_record;  // context part, sanitizer builds only
struct worker;         // exec part
struct worker_front;   // fiber part; begins with a pointer to the fiber that runs

struct thread_block {
    exception_words* exceptions = &unknown_exceptions;
    activity* running = nullptr;  // the innermost coroutine; none: see innermost_activity()
    switch_record* switched_from = nullptr;  // who switched last on this thread (sanitizer builds)
    std::uint64_t fp_control = 0;    // the thread's own, while a context that keeps its own runs
    bool runs_fp_keeper = false;     // whether such a context runs
    worker* runs_for = nullptr;      // exec part: the worker that this thread is, or stands in for
    worker_front* fibers = nullptr;  // fiber part: the same worker's fiber side
    bool overflow_ready = false;     // stack part: this thread has an alternate signal stack
    // coroutine part: the thread (a pthread_t) that runs in this one's stead, which waits for it
    unsigned long handed_to = 0;
};

/// The address of the calling thread's own exception words. Slow; the switch caches it.
[[nodiscard]] exception_words* find_exception_words() noexcept;

}  // namespace weft::inline v0::detail

// C linkage, for the asm below has to spell the name; initial-exec, for it has to be reached from a
// shared library without a call.
extern "C" {
[[gnu::tls_model(
    "initial-exec")]] extern constinit thread_local weft::detail::thread_block weft_v0_thread_block;
}

namespace weft::inline v0::detail {

// Link time optimisation does not see what an asm refers to, and a static library gives only what
// is seen to be missing: this is a reference that is seen, to the same file of ours.
[[gnu::used]] inline exception_words* const linked_thread_block = &unknown_exceptions;

#if defined(__x86_64__) && !defined(__ILP32__)

[[gnu::always_inline]] inline thread_block& this_thread_block() noexcept {
    thread_block* block;
    asm volatile(
        "movq %%fs:0, %0\n\t"
        "addq weft_v0_thread_block@gottpoff(%%rip), %0"
        : "=r"(block)
        :
        : "cc");
    return *block;
}

/// The pointer at that offset of this_thread_block(), by a load less: in an executable the linker
/// makes the first instruction a constant.
template <std::size_t offset>
[[gnu::always_inline]] inline void* pointer_of_this_thread() noexcept {
    void* pointer;
    asm volatile(
        "movq weft_v0_thread_block@gottpoff(%%rip), %0\n\t"
        "movq %%fs:%c1(%0), %0"
        : "=r"(pointer)
        : "i"(offset)
        : "memory");
    return pointer;
}

#elif defined(__aarch64__)

[[gnu::always_inline]] inline thread_block& this_thread_block() noexcept {
    thread_block* block;
    unsigned long offset;
    asm volatile(
        "mrs %0, tpidr_el0\n\t"
        "adrp %1, :gottprel:weft_v0_thread_block\n\t"
        "ldr %1, [%1, #:gottprel_lo12:weft_v0_thread_block]\n\t"
        "add %0, %0, %1"
        : "=&r"(block), "=&r"(offset));
    return *block;
}

#else

// Out of line, and with the pointer laundered: noinline alone is not enough, for compilers infer
// that such a function is pure.
[[nodiscard]] thread_block& this_thread_block() noexcept;

#endif

#if !(defined(__x86_64__) && !defined(__ILP32__))
template <std::size_t offset>
inline void* pointer_of_this_thread() noexcept {
    return *reinterpret_cast<void**>(reinterpret_cast<std::byte*>(&this_thread_block()) + offset);
}
#endif

/// this_thread_block().exceptions, .running, .runs_for and .fibers.
[[gnu::always_inline]] inline exception_words* exceptions_of_this_thread() noexcept {
    return static_cast<exception_words*>(
        pointer_of_this_thread<offsetof(thread_block, exceptions)>());
}
[[gnu::always_inline]] inline activity* running_on_this_thread() noexcept {
    return static_cast<activity*>(pointer_of_this_thread<offsetof(thread_block, running)>());
}
[[gnu::always_inline]] inline worker* worker_of_this_thread() noexcept {
    return static_cast<worker*>(pointer_of_this_thread<offsetof(thread_block, runs_for)>());
}
[[gnu::always_inline]] inline worker_front* fibers_of_this_thread() noexcept {
    return static_cast<worker_front*>(pointer_of_this_thread<offsetof(thread_block, fibers)>());
}

/// Where in a fiber its activity is.
inline constexpr std::size_t activity_of_fiber = 64;

/// What runs on the calling thread: a coroutine, else a fiber. nullptr: neither.
[[nodiscard]] inline activity* innermost_activity(const thread_block& thread) noexcept {
    if (thread.running != nullptr || thread.fibers == nullptr) return thread.running;
    std::byte* fiber;
    std::memcpy(&fiber, thread.fibers, sizeof fiber);
    return fiber != nullptr ? reinterpret_cast<activity*>(fiber + activity_of_fiber) : nullptr;
}

}  // namespace weft::inline v0::detail
