// fiber_context.hpp - fibers without a scheduler: the interface of the standard proposal P0876.
//
// A fiber_context stands for a fiber that does not run: one that is prepared, or one that is
// suspended. Resuming it suspends whoever asked, goes there, and hands over a fiber_context for
// the one left behind. There is no caller and no callee, no current fiber to ask for, no queue and
// no cancellation; for those see coroutine.hpp and the part fiber. docs/fiber_context.md has the
// rules and a program.
//
// The revision is P0876R22 (2026-02-22), its wording read in full, destructor rule included:
// destroying a fiber_context that is not empty terminates. By its list of changes the draft
// D0876R24 (2026-05-11) has the same interface; until R20 can_resume() was not const.
// What R22 leaves open or undefined, weft settles like this:
//
//   resuming an empty one                              aborts, naming the mistake
//   resuming a thread's own stack from another thread  aborts, naming the mistake
//   resuming any other fiber from another thread       works, though can_resume() said false
//   whatever must terminate                            a line on stderr, then std::terminate
//   the least stack, and its alignment                 4 KiB below the fiber's own record; none
//   who runs the deleter                               the fiber that goes on, on its own stack
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <functional>
#include <memory>
#include <new>
#include <span>
#include <type_traits>
#include <utility>

#include <weft/base/version.hpp>
#include <weft/context/call_switching.hpp>
#include <weft/context/context.hpp>
#include <weft/stack/stack.hpp>

namespace weft::inline v0 {

class fiber_context;

namespace detail {

struct activity;      // base part
struct fiber_switch;  // fiber_context.cpp
class fiber_record;   // below

// The function of resume_with(), called on the resumed fiber. It lies in the resumer's frame.
struct injected_call {
    fiber_context (*call)(void* function, fiber_context&& resumer);
    void* function;
};

// Where a fiber waits to be resumed: in its record while it is prepared, in the frame of its
// resume() while it is suspended.
struct fiber_stop {
    context place;
    const void* owner = nullptr;  // the thread it last ran on; none while it is prepared
    activity* running = nullptr;  // whose stack it stands on, if a coroutine's or its own
    bool is_thread = false;       // it stands on a thread's
    // Written by whoever resumes it, and by nobody before: clearing them would cost a resume.
    fiber_stop* resumer;     // the fiber that was suspended for this one, unless it ended
    fiber_record* ended;     // the fiber that ended for this one, and is to be released
    injected_call injected;  // what to call first, if call is not null
};

// Suspends the running fiber at `here` and goes on at `to`; both are fiber_stops. Returns with
// here.resumer set to whoever came. here.injected is meant for `to`. Use call_switching().
void switch_fibers(void* to, void* here);

enum class stack_origin : unsigned char { depot, user };

// The stack of a fiber. The sanitizers and valgrind know a depot's anyway, a user's while this
// lives.
class known_stack {
public:
    known_stack(const stack& memory, stack_origin origin);  // Fails: in TSan builds std::bad_alloc.
    known_stack(const known_stack&) = delete;
    known_stack& operator=(const known_stack&) = delete;
    ~known_stack();

    [[nodiscard]] const stack& get() const noexcept { return stack_; }

private:
    stack stack_;
    stack_origin origin_;
};

// What there is of a fiber besides its frames. It lies at the high end of the fiber's own stack.
class fiber_record {
public:
    // Prepares a context on the memory below the record. Fails: as context::make().
    fiber_record(const stack& memory, stack_origin origin);
    fiber_record(const fiber_record&) = delete;
    fiber_record& operator=(const fiber_record&) = delete;

    // Calls the entry function, then destroys it.
    virtual fiber_context run(fiber_context&& resumer) = 0;
    // Destroys the record and gives its memory back. Called on another stack.
    virtual void release() noexcept = 0;

    [[nodiscard]] std::span<std::byte> memory() const noexcept { return memory_.get().span(); }

protected:
    ~fiber_record() = default;

private:
    const known_stack memory_;

public:
    fiber_stop stop;
};

template <class Entry, class Deleter>
class fiber_body final : public fiber_record {
public:
    template <class E, class D>
    fiber_body(const stack& memory, stack_origin origin, E&& entry, D&& deleter)
        : fiber_record(memory, origin),
          deleter_(std::forward<D>(deleter)),
          entry_(std::forward<E>(entry)) {}
    ~fiber_body() {}  // entry_ is gone by then

    fiber_context run(fiber_context&& resumer) override;

    // The deleter lies in the memory that it deletes, so it comes out first.
    void release() noexcept override {
        Deleter deleter(std::move(deleter_));
        const std::span<std::byte> memory = this->memory();
        this->~fiber_body();
        std::invoke(std::move(deleter), memory);
    }

private:
    Deleter deleter_;
    union {
        Entry entry_;  // last, for nobody but run() destroys it
    };
};

// Where in the memory a record goes. Fails: std::length_error if that leaves too little below it.
[[nodiscard]] void* place_of_record(std::span<std::byte> memory, std::size_t size,
                                    std::size_t alignment);

template <class Entry, class Deleter, class E, class D>
[[nodiscard]] fiber_stop* prepare_fiber(const stack& memory, stack_origin origin, E&& entry,
                                        D&& deleter) {
    using body = fiber_body<Entry, Deleter>;
    void* place = place_of_record(memory.span(), sizeof(body), alignof(body));
    body* made =
        ::new (place) body(memory, origin, std::forward<E>(entry), std::forward<D>(deleter));
    return &made->stop;
}

// A stack of the shared depot, given back unless a fiber keeps it.
class depot_stack {
public:
    struct deleter {
        stack taken;
        void operator()(std::span<std::byte>) const noexcept { shared_stacks().give_back(taken); }
    };

    explicit depot_stack(std::size_t record_size);
    depot_stack(const depot_stack&) = delete;
    depot_stack& operator=(const depot_stack&) = delete;
    ~depot_stack() {
        if (taken_) shared_stacks().give_back(taken_);
    }

    [[nodiscard]] const stack& get() const noexcept { return taken_; }
    void keep() noexcept { taken_ = {}; }

private:
    stack taken_;
};

[[noreturn, gnu::cold]] void terminate_for_losing_a_fiber() noexcept;

}  // namespace detail

/// A fiber that is prepared or suspended, or nothing (empty). Move-only; the size of a pointer.
/// Each such fiber has exactly one fiber_context, a running fiber has none, and a thread's own
/// stack is a fiber like another.
///
///     fiber_context f([](fiber_context&& main) {
///         main = std::move(main).resume();        // back to main, until it resumes this fiber
///         return std::move(main);                 // ends the fiber and goes on with main
///     });
///     f = std::move(f).resume();                  // f: the fiber, suspended in its resume()
///     f = std::move(f).resume();                  // f: empty, for the fiber has ended
///
/// Thread-safe: no; one thread at a time may use it, and what suspended it must happen before what
/// resumes it. Any thread may do so, unless the fiber is a thread's own stack.
class fiber_context {
public:
    /// Empty.
    fiber_context() noexcept = default;

    /// Prepares a fiber on a stack of default_stack_size() from shared_stacks(). When first
    /// resumed it calls a copy of `entry` with the fiber_context of its resumer; the one that
    /// `entry` returns goes on when it has ended. If that is empty, or `entry` exits by an
    /// exception: std::terminate.
    /// Suspends: never. From: anywhere. Fails: what stack_source::take() or copying `entry`
    /// throws.
    template <class F>
        requires(!std::same_as<std::remove_cvref_t<F>, fiber_context>)
    explicit fiber_context(F&& entry) {
        using body = detail::fiber_body<std::decay_t<F>, detail::depot_stack::deleter>;
        mandate_entry<F>();
        detail::depot_stack memory(sizeof(body));
        stop_ = detail::prepare_fiber<std::decay_t<F>, detail::depot_stack::deleter>(
            memory.get(), detail::stack_origin::depot, std::forward<F>(entry),
            detail::depot_stack::deleter{memory.get()});
        memory.keep();
    }

    /// The same on the caller's memory; allocates nothing. When the fiber has ended and `entry` is
    /// destroyed, the fiber that goes on calls a copy of `deleter` with `stack`, before its own
    /// resume() returns. The deleter must not throw.
    /// Suspends: never. From: anywhere. Fails: std::length_error if the stack is too small, and
    /// what copying `entry` and `deleter` throws; then the deleter is not called.
    template <class F, class D>
    fiber_context(F&& entry, std::span<std::byte> stack, D&& deleter) {
        mandate_entry<F>();
        static_assert(std::is_constructible_v<std::decay_t<D>, D>);
        static_assert(std::is_move_constructible_v<std::decay_t<D>>);
        static_assert(std::is_invocable_v<std::decay_t<D>, std::span<std::byte>>,
                      "the deleter is called with the stack, a std::span<std::byte>");
        stop_ = detail::prepare_fiber<std::decay_t<F>, std::decay_t<D>>(
            {stack.data(), stack.size()}, detail::stack_origin::user, std::forward<F>(entry),
            std::forward<D>(deleter));
    }

    /// The same on memory that is simply left alone at the end.
    template <class F>
    fiber_context(F&& entry, std::span<std::byte> stack)
        : fiber_context(std::forward<F>(entry), stack, [](std::span<std::byte>) noexcept {}) {}

    fiber_context(fiber_context&& other) noexcept : stop_(std::exchange(other.stop_, nullptr)) {}

    /// Terminates, after a line on stderr, if this one is not empty.
    fiber_context& operator=(fiber_context&& other) noexcept {
        if (stop_ != nullptr) detail::terminate_for_losing_a_fiber();
        stop_ = std::exchange(other.stop_, nullptr);
        return *this;
    }

    /// Terminates, after a line on stderr, if this one is not empty: a fiber ends only by
    /// returning from its entry function.
    ~fiber_context() {
        if (stop_ != nullptr) detail::terminate_for_losing_a_fiber();
    }

    /// Suspends the running fiber and goes on with this one, which becomes empty at once. Returns
    /// when somebody resumes the running fiber again: the fiber_context of that one, or an empty
    /// one if that one ended. Does not allocate.
    /// Suspends: always. From: anywhere; aborts if this is the own stack of another thread.
    /// Fails: what the function given to resume_with() by whoever resumes the running fiber throws.
    fiber_context resume() && { return resume_calling({nullptr, nullptr}); }

    /// The same, but the other fiber first calls `fn` with the fiber_context of this one: on its
    /// own stack, inside its resume(), which then returns or throws what `fn` does. For a fiber
    /// that is only prepared, the result goes to its entry function. `fn` is not copied: it
    /// lives until this fiber goes on. A `fn` that throws must have moved its argument away.
    template <class Fn>
    fiber_context resume_with(Fn&& fn) && {
        static_assert(std::is_invocable_r_v<fiber_context, Fn, fiber_context&&>,
                      "fn takes a fiber_context&& and returns a fiber_context");
        auto call = [&fn](fiber_context&& resumer) -> fiber_context {
            return std::invoke(std::forward<Fn>(fn), std::move(resumer));
        };
        return resume_calling({[](void* function, fiber_context&& resumer) {
                                   return (*static_cast<decltype(call)*>(function))(
                                       std::move(resumer));
                               },
                               std::addressof(call)});
    }

    /// Whether every implementation would let this thread resume it: it is not empty, and it is
    /// prepared or ran on this thread. (A fiber that goes on in another thread may find there what
    /// its compiler kept of thread_local variables. A thread that has ended is not told from a
    /// later one in the same memory.)
    [[nodiscard]] bool can_resume() const noexcept;

    /// Whether it stands for no fiber.
    [[nodiscard]] bool empty() const noexcept { return stop_ == nullptr; }
    [[nodiscard]] explicit operator bool() const noexcept { return stop_ != nullptr; }

    /// Each stands for the other's fiber.
    void swap(fiber_context& other) noexcept { std::swap(stop_, other.stop_); }
    friend void swap(fiber_context& a, fiber_context& b) noexcept { a.swap(b); }

private:
    friend struct detail::fiber_switch;

    template <class F>
    static constexpr void mandate_entry() {
        static_assert(std::is_constructible_v<std::decay_t<F>, F>);
        static_assert(std::is_invocable_r_v<fiber_context, std::decay_t<F>, fiber_context&&>,
                      "an entry function takes a fiber_context&& and returns a fiber_context");
    }

    fiber_context resume_calling(detail::injected_call injected) {
        detail::fiber_stop here;
        here.injected = injected;
        detail::call_switching(&detail::switch_fibers, std::exchange(stop_, nullptr), &here);
        fiber_context who_came;
        who_came.stop_ = here.resumer;
        return who_came;
    }

    detail::fiber_stop* stop_ = nullptr;
};

template <class Entry, class Deleter>
fiber_context detail::fiber_body<Entry, Deleter>::run(fiber_context&& resumer) {
    fiber_context successor = std::invoke(std::move(entry_), std::move(resumer));
    std::destroy_at(std::addressof(entry_));
    return successor;
}

}  // namespace weft::inline v0
