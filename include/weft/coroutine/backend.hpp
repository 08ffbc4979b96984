// backend.hpp - the four ways to leave a function in the middle and come back to it.
//
// A back end transfers control between a resumer and a body, and owns what that takes: a stack of
// its own (own, ucontext), an OS thread (thread), or a place on a stack that is shared and a buffer
// for the time in which somebody else uses it (swapped). What a coroutine means (state, exceptions,
// destruction) is in coroutine_block.hpp and the same for all. docs/back_ends.md says where they
// differ.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>

#include <weft/context/context.hpp>
#include <weft/coroutine/options.hpp>

namespace weft::inline v0 {

/// What coroutine_block needs. The body is entry(argument); it calls finish() as its last act.
///   enter()   from the resumer: runs the body until it leaves or finishes
///   leave()   from the body: goes back to the resumer; returns at the next enter()
///   finish()  from the body: goes back for good
///   reclaim() from the resumer, after the body finished or if it never started: frees what it used
///   kept_by_resumer() while the body runs: how far down the stack of its resumer is in use
template <class Backend>
concept coroutine_backend =
    std::constructible_from<Backend, const coroutine_options&, context_entry, void*> &&
    requires(Backend& backend) {
    backend.enter();
    backend.leave();
    backend.finish();
    { backend.reclaim() }
    noexcept;
    { backend.where() }
    noexcept->std::same_as<stack>;
    { backend.kept_by_resumer() }
    noexcept->std::same_as<const std::byte*>;
};

namespace detail {

/// A stack of its own, and a context on it.
template <class Context>
class context_backend {
public:
    context_backend(const coroutine_options& options, context_entry entry, void* argument);
    context_backend(const context_backend&) = delete;
    context_backend& operator=(const context_backend&) = delete;
    ~context_backend();

    // Attributes stand here and not at the definitions: clang takes a template's from its first
    // declaration alone.
    [[gnu::always_inline]] inline void enter();
    [[gnu::always_inline]] inline void leave();
    [[noreturn]] WEFT_NO_SANITIZE void finish();
    void reclaim() noexcept;
    [[nodiscard]] stack where() const noexcept { return stack_; }
    [[nodiscard]] const std::byte* kept_by_resumer() const noexcept {
        return resumer_.lowest_kept();
    }

    // For whoever switches in the frame of who resumes or yields (coroutine_block.hpp).
    [[nodiscard, gnu::always_inline]] Context& body() noexcept { return body_; }
    [[nodiscard, gnu::always_inline]] Context& resumer() noexcept { return resumer_; }

private:
    Context body_;
    Context resumer_;
    stack stack_;
    stack_source* stacks_;
};

class coroutine_thread;
struct activity;

}  // namespace detail

/// The default: a stack of its own and the switch of this build.
class own_backend : public detail::context_backend<context> {
public:
    using context_backend::context_backend;
};

/// A stack of its own and swapcontext. Portable and slow; for comparison and odd architectures.
class ucontext_backend : public detail::context_backend<portable_context> {
public:
    using context_backend::context_backend;
};

/// One OS thread each, of which one runs at a time: native debuggers, profilers and thread_local
/// just work. Whoever leaves wakes the other directly.
class thread_backend {
public:
    /// For a coroutine: the argument is its block.
    thread_backend(const coroutine_options& options, context_entry entry, void* argument);
    /// For whoever else: what the thread then says it runs.
    thread_backend(const coroutine_options& options, context_entry entry, void* argument,
                   detail::activity& runs);
    thread_backend(const thread_backend&) = delete;
    thread_backend& operator=(const thread_backend&) = delete;
    ~thread_backend();

    /// Goes on with the body, from its resumer.
    void enter();
    /// Goes back to the resumer, from the body.
    void leave();
    void finish() {}  // the thread hands over when the entry function returns
    /// Gives back what it ran on, after the body's end.
    void reclaim() noexcept;
    /// The stack that it runs on, as far as that is known.
    [[nodiscard]] stack where() const noexcept;
    /// Nobody knows: the resumer is a thread that sleeps.
    [[nodiscard]] const std::byte* kept_by_resumer() const noexcept { return nullptr; }

private:
    detail::coroutine_thread* thread_;
    thread_cache* threads_;
};

class shared_stack;
class swapped_backend;

namespace detail {

/// A place on a shared_stack: what one that runs there has, whether coroutine or fiber. Every
/// swapped fiber has one, so it is small: what only coroutines need is in swapped_backend, and the
/// context of the body is its owner's, who has one anyway.
class swapped_place {
public:
    swapped_place() noexcept = default;
    swapped_place(const swapped_place&) = delete;
    swapped_place& operator=(const swapped_place&) = delete;
    ~swapped_place() { detach(); }

    /// From then on it is one of those that use the stack. Once.
    /// Fails: as the stack's allocator does, if buffers are allocated at creation.
    void attach(shared_stack& shared, bool keep_fp_control = false);
    /// Not any more, if it was. After the body's end, or before its start.
    void detach() noexcept;

    /// Goes back to the resumer, from the body.
    void leave(context& body);
    /// The same for the last time; returns if the body was called and never left.
    void finish(const context& body);
    /// Gives back what it ran on, after the body's end.
    void reclaim() noexcept;

    // For one that goes straight from body to body: whoever runs after a switch settles the one
    // that left.

    /// Goes on with the body, which is entry(argument), from outside every shared stack; another
    /// may have come back than was entered.
    void begin_visits(context& body, context_entry entry, void* argument);
    /// Whether make_way() may be called, by `left` from its own body.
    [[nodiscard]] bool can_follow(const swapped_place& left) const noexcept;
    /// Makes room for this one, which has begun before, and gives it the resumer of `left`, which
    /// then has to switch to its body.
    void make_way(context& body, const swapped_place& left) noexcept;
    /// Where its body goes back to.
    [[nodiscard]] context& back() noexcept;
    /// After it has left, from elsewhere.
    void settle(const context& body) noexcept;

    /// Bytes of buffer that it holds now.
    [[nodiscard]] std::size_t buffer_size() const noexcept { return buffer_size_; }

protected:
    /// Where it is.
    [[nodiscard]] shared_stack& shared() const noexcept { return *shared_; }

private:
    enum class place : unsigned char { nowhere, on_stack, in_buffer };

    void make_room(context& body, context_entry entry, void* argument);
    void copy_out();
    void copy_in() noexcept;
    void reserve_buffer(std::size_t size);
    void release_buffer() noexcept;
    [[nodiscard]] const std::byte* kept_outside(const context& body) const noexcept;
    [[nodiscard]] std::size_t used() const noexcept { return std::size_t{used_words_} * 8; }
    [[nodiscard]] std::span<std::byte> parked_bytes() const noexcept;
    void show_locals() noexcept;

    shared_stack* shared_ = nullptr;
    std::byte* buffer_ = nullptr;
    std::size_t buffer_size_ = 0;
    std::uintptr_t hidden_ = 0;     // what it takes to show its bytes again (dev and ASan builds)
    std::uint32_t used_words_ = 0;  // of the stack, that it needs while it is parked
    place place_ = place::nowhere;
    bool keep_fp_control_ = false;
};

}  // namespace detail

/// Runs on a shared_stack; parked, it costs the bytes that it uses. Pointers to its locals are
/// valid only while it runs. Every one is a part of a coroutine's block, which it knows for that.
class swapped_backend : private detail::swapped_place {
public:
    swapped_backend(const coroutine_options& options, context_entry entry, void* argument);

    /// Fails: as the shared_stack's allocator does, when another has to be copied out; nothing
    /// happened then, and both can be resumed later.
    void enter();
    /// Goes back to the resumer, from the body.
    void leave();
    /// The same for the last time; returns if the body was called and never left.
    void finish();
    using swapped_place::buffer_size;
    using swapped_place::reclaim;
    /// The stack that it runs on.
    [[nodiscard]] stack where() const noexcept;
    /// The lowest address that the resumer needs of its own stack, while the body runs.
    [[nodiscard]] const std::byte* kept_by_resumer() const noexcept;

private:
    void visit();
    void enter_from_inside();
    void fulfil_wishes();
    // Why the one it wished for was not entered. It has a place for that in its block.
    [[nodiscard]] std::exception_ptr& wish_failure() noexcept;

    context body_;
};

}  // namespace weft::inline v0
