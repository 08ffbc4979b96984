// shared_stack.hpp - one stack for many coroutines; a parked one is copied out when another needs
// it.
//
//     shared_stack shared;
//     swapped_coroutine c({.shared = &shared}, [] { ... this_coroutine::yield(); ... });
//
// One that never yields runs on the shared stack as a call: no switch, no buffer, no copy. One that
// yields stays where it is until somebody else is resumed; only then the bytes it uses, and no
// more, move to a buffer. They come back to the same addresses, so pointers among them stay right;
// but a pointer from elsewhere to a parked one's locals points at somebody else's. Share nothing
// that lives on such a stack. ASan builds report the touch of a parked one's locals while nobody
// runs there; dev builds abort when they were written (and hand out garbage when read), unless
// somebody else has used the stack since.
//
// A swapped coroutine may resume another on the same stack: the resumer waits parked, like one that
// yielded, and goes on when the other yields or ends (docs/switch.md draws it).
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <weft/coroutine/backend.hpp>

namespace weft::inline v0 {

/// Where the bytes of parked coroutines are kept.
class swap_allocator {
public:
    virtual ~swap_allocator() = default;
    /// Fails: by any exception; it comes out of the resume() that needed the stack, and nothing is
    /// lost.
    [[nodiscard]] virtual void* allocate(std::size_t size) = 0;
    /// What allocate() returned, with the size that was asked for.
    virtual void release(void* buffer, std::size_t size) noexcept = 0;
};

/// When the buffer of a parked coroutine is allocated and given back.
enum class buffer_policy : unsigned char {
    keep_and_grow,         // kept until the coroutine ends, replaced when it needs more
    release_at_resume,     // held only while its bytes are in it
    allocate_at_creation,  // shared_stack_options::buffer_size from the start, and never more
};

/// What a shared stack can be told at its creation.
struct shared_stack_options {
    /// Bytes of the stack that they share.
    std::size_t size = default_stack_size();
    /// Bytes at its high end that nobody uses: with several stacks, so that those in use at the top
    /// of each meet different places of the cache.
    std::size_t unused = 0;
    stack_source* stacks = nullptr;       // nullptr: shared_stacks()
    swap_allocator* allocator = nullptr;  // nullptr: operator new
    /// For the buffers of all its coroutines.
    buffer_policy policy = buffer_policy::keep_and_grow;
    std::size_t buffer_size = 1024;  // for allocate_at_creation
};

/// What a shared stack has done so far.
struct swap_counters {
    std::uint64_t calls = 0;     // bodies started
    std::uint64_t switches = 0;  // times that one was entered by a switch, and not by a call
    std::uint64_t parks = 0;     // times that one left and was not finished
    std::uint64_t in_place = 0;  // resumed with its bytes still on the stack
    /// Times that one was copied to its buffer.
    std::uint64_t copies_out = 0;
    /// Times that one was copied back.
    std::uint64_t copies_in = 0;
    std::uint64_t buffers = 0;     // allocated so far
    std::size_t buffer_bytes = 0;  // held now
};

/// Thread-safe: no; it and its coroutines are used from one thread at a time.
class shared_stack {
public:
    explicit shared_stack(shared_stack_options options = {});
    shared_stack(const shared_stack&) = delete;
    shared_stack& operator=(const shared_stack&) = delete;
    /// Aborts: if a coroutine that uses it still exists.
    ~shared_stack();

    /// What has been done on it so far.
    [[nodiscard]] const swap_counters& counters() const noexcept { return counters_; }
    /// The stack itself.
    [[nodiscard]] stack where() const noexcept { return whole_; }

private:
    friend class detail::swapped_place;
    friend class swapped_backend;

    [[nodiscard]] bool holds(const void* address) const noexcept {
        return address >= stack_.low && address < stack_.high();
    }

    shared_stack_options options_;
    stack whole_;
    stack stack_;                                // what is used of it
    std::byte* kept_below_ = nullptr;            // above that, all bodies have the same
    detail::swapped_place* occupant_ = nullptr;  // whose bytes are on the stack
    // A coroutine on this stack that resumes another on it leaves with that wish; whoever entered
    // it from outside fulfils it.
    swapped_backend* wish_ = nullptr;
    context resumer_;            // of the one that runs on it: there is one at a time
    context* back_ = &resumer_;  // where that one leaves to: it may have followed one elsewhere
    bool in_use_ = false;        // somebody runs on it, or called away from it
    std::size_t users_ = 0;
    swap_counters counters_;
};

}  // namespace weft::inline v0
