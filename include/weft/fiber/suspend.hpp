// suspend.hpp - the two verbs through which everything that blocks goes.
//
// suspend(callback) is the generic one: the callback runs on the worker's own stack, after the
// fiber is off its stack, and says what the thread runs next. Whoever it gave the fiber to resumes
// it by posting it, exactly once.
//
// wait(reason, deadline, publish) is what primitives use. publish(waiter&) puts the waiter where
// its event will find it, at a moment when nobody can resume it before it has left: on a pool off
// its stack, perhaps on that of the next one; on a loop, whose thread alone resumes it, before it
// leaves. False means that the event has come already, and the fiber goes on, or is the next to
// run. It may be called from a plain thread, too, which then sleeps; but not where a thread runs an
// executor and no fiber, as in a posted callable: what would have to sleep there aborts.
//
// A wait with a deadline, or one that can be cancelled, may end while the waiter is still in the
// primitive's list. wait(reason, deadline, publish, withdraw) calls withdraw(waiter&) then, by
// whoever waited and before the waiter can be gone: only there is it safe to take it out.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>
#include <cstring>
#include <new>
#include <type_traits>
#include <utility>

#include <weft/base/clock_source.hpp>
#include <weft/context/call_switching.hpp>
#include <weft/exec/runnable.hpp>
#include <weft/fiber/detail/straight_wait.hpp>
#include <weft/fiber/waiter.hpp>

namespace weft::inline v0 {

namespace detail {

/// What a fiber asks to be done once it is off its stack. The callable stays where it is (but for
/// swapped fibers, whose stack goes away: it is moved to the worker's scratch) until it is called:
/// then it is moved to the stack that it is called on, for what it publishes may be run by another
/// thread before it returns.
struct departure {
    static constexpr std::size_t scratch_size = 64;

    void* callable;
    void (*relocate)(void* to, void* from) noexcept;
};

template <class F>
void relocate_callable(void* to, void* from) noexcept {
    F& old = *static_cast<F*>(from);
    ::new (to) F(std::move(old));
    old.~F();
}

struct suspend_request : departure {
    runnable* (*call)(void* callable, runnable* self) noexcept;
    bool taken = false;  // the callable is called now, or moved: it is not the fiber's any more
};

/// The callback of suspend(), until whoever goes on takes it.
template <class Callback>
class kept_callback {
public:
    explicit kept_callback(Callback& from) noexcept : callback_(std::move(from)) {
        request_.callable = &callback_;
    }
    kept_callback(const kept_callback&) = delete;
    kept_callback& operator=(const kept_callback&) = delete;
    ~kept_callback() {
        if (!request_.taken) callback_.~Callback();  // a hook threw before the fiber could leave
    }
    [[nodiscard]] suspend_request& request() noexcept { return request_; }

private:
    // Off the fiber's stack. Nothing is left there when the callback has given the fiber away.
    static runnable* call(void* callable, runnable* self) noexcept {
        Callback& kept = *static_cast<Callback*>(callable);
        Callback mine(std::move(kept));
        kept.~Callback();
        return mine(self);
    }

    union {
        Callback callback_;
    };
    suspend_request request_{{nullptr, &relocate_callable<Callback>}, &call};
};

struct wait_request : departure {
    bool (*call)(void* callable, waiter& self) noexcept;
    const wait_reason* reason;
    time_point deadline;
    wait_outcome outcome;
    bool can_be_withdrawn = false;  // it is a withdrawing_request
};

// A wait without a deadline is in registers: what it costs is mostly what it writes to memory
// (docs/decisions/0014). So a callable that fits into a pointer goes in the place of its address.
template <class F>
inline constexpr bool fits_pointer = std::is_trivially_copyable_v<F> &&
                                     sizeof(F) <= sizeof(void*) && alignof(F) <= alignof(void*);

/// The address of the callable, or what it consists of.
template <class F>
[[nodiscard, gnu::always_inline]] inline void* given(F& callable) noexcept {
    if constexpr (fits_pointer<F>) {
        void* bits = nullptr;
        std::memcpy(&bits, &callable, sizeof callable);
        return bits;
    } else {
        return &callable;
    }
}
/// The callable that was given, moved out of its place.
template <class F>
[[nodiscard, gnu::always_inline]] inline F taken(void* from) noexcept {
    if constexpr (fits_pointer<F>) {
        alignas(F) std::byte bytes[sizeof(F)];
        std::memcpy(bytes, &from, sizeof bytes);
        return std::move(*std::launder(reinterpret_cast<F*>(bytes)));
    } else {
        return std::move(*static_cast<F*>(from));
    }
}

/// What there is to know of the callable of a wait that neither has a deadline nor can be
/// cancelled. Static.
struct firm_operations {
    bool (*call)(void* given, waiter& self) noexcept;
    // Of one that lies in memory.
    bool (*call_at)(void* callable, waiter& self) noexcept;
    void (*relocate)(void* to, void* from) noexcept;
    bool fits;  // it is given in the place of its address
};

/// The same of a wait that has no deadline, and is withdrawn if it is cancelled.
struct endless_operations : firm_operations {
    void (*withdraw)(void* withdrawer, waiter& self) noexcept;
};

struct withdrawing_request : wait_request {
    void* withdrawer;
    void (*withdraw)(void* withdrawer, waiter& self) noexcept;
    bool concluded = false;
};

void suspend_function(void* request, void*);
void wait_function(void* request, void*);
/// A wait that neither has a deadline nor can be cancelled: what was given, its firm_operations and
/// the wait_reason. Returns the wait_outcome.
unsigned char wait_firmly_function(void* given, void* operations, std::uint64_t reason,
                                   std::int64_t);
/// The same for a withdrawing_request.
void wait_withdrawing_function(void* request, void*);
/// The same for one that can be cancelled and withdrawn, with its endless_operations.
unsigned char wait_endlessly_function(void* given, void* operations, std::uint64_t reason,
                                      std::int64_t withdrawer);

template <class Publish>
bool call_publish(void* callable, waiter& self) noexcept {
    Publish mine(std::move(*static_cast<Publish*>(callable)));
    return mine(self);
}
template <class Publish>
bool call_given(void* from, waiter& self) noexcept {
    Publish mine = taken<Publish>(from);
    return mine(self);
}

// Of a wait that can be withdrawn.
template <class Publish>
[[gnu::always_inline]] inline bool list_by(Publish& publish, waiter& self) noexcept {
    self.listed = true;  // from then on only its event may touch it
    if (publish(self)) return true;
    self.listed = false;
    return false;
}
template <class Publish>
bool call_listing(void* callable, waiter& self) noexcept {
    Publish mine(std::move(*static_cast<Publish*>(callable)));
    return list_by(mine, self);
}
template <class Publish>
bool call_given_listing(void* from, waiter& self) noexcept {
    Publish mine = taken<Publish>(from);
    return list_by(mine, self);
}
template <class Withdraw>
void call_withdraw(void* withdrawer, waiter& self) noexcept {
    (*static_cast<Withdraw*>(withdrawer))(self);
}

template <class F>
concept scratch_callable = std::is_nothrow_move_constructible_v<F> &&
                               sizeof(F) <= departure::scratch_size
                           && alignof(F) <= 16;

// Trivially destructible, so that nobody has to be asked where its last copy lies.
template <class F>
concept plain_callable = std::is_trivially_destructible_v<F>;

}  // namespace detail

/// The callback is destroyed off the fiber's stack, when it has returned: perhaps while the fiber
/// goes on already.
/// Suspends: always. Cancel: ignored. From: a fiber; elsewhere it aborts. Fails: never.
template <class Callback>
    requires std::is_nothrow_invocable_r_v<runnable*, Callback&, runnable*>
[[gnu::always_inline]] inline void suspend(Callback callback) {
    static_assert(detail::scratch_callable<Callback>,
                  "suspend: the callback must be nothrow-movable and at most 64 bytes");
    detail::kept_callback<Callback> kept(callback);
    detail::call_switching(&detail::suspend_function, &kept.request());
}

namespace detail {

// What wait() says.
[[nodiscard]] constexpr wait_outcome or_event(wait_outcome outcome) noexcept {
    return outcome == wait_outcome::ready ? wait_outcome::event : outcome;
}

/// The same as wait(); tells apart what it waited for from what was there already (`ready`).
template <class Publish>
    requires std::is_nothrow_invocable_r_v<bool, Publish&, waiter&>
[[gnu::always_inline]] inline wait_outcome wait_or_ready(const wait_reason& reason,
                                                         time_point deadline, Publish publish) {
    static_assert(
        scratch_callable<Publish> && plain_callable<Publish>,
        "wait: publish must be nothrow-movable, trivially destructible, at most 64 bytes");
    if (!reason.cancellable && deadline == no_deadline) {
        if (const straight_fiber fiber = straight_fiber::here()) [[likely]] {
            fiber.me->state.begin_firmly();
            if (!publish(*fiber.me)) [[unlikely]] {
                fiber.me->state.end_firmly();
                return wait_outcome::ready;
            }
            fiber.leave(reason);
            return wait_outcome::event;
        }
        static constexpr firm_operations operations{&call_given<Publish>, &call_publish<Publish>,
                                                    &relocate_callable<Publish>,
                                                    fits_pointer<Publish>};
        return static_cast<wait_outcome>(call_waiting(
            &wait_firmly_function, given(publish), const_cast<firm_operations*>(&operations),
            reinterpret_cast<std::uintptr_t>(&reason), 0));
    }
    wait_request request{{&publish, &relocate_callable<Publish>},
                         &call_publish<Publish>,
                         &reason,
                         deadline,
                         wait_outcome::event};
    call_switching(&wait_function, &request);
    return request.outcome;
}

/// The same without a deadline, for a reason that is cancellable: one who is woken, or cancelled.
/// By a mere call if the function that waits was itself called by call_waiting().
template <bool called = false, class Publish, class Withdraw>
[[gnu::always_inline]] inline wait_outcome wait_endlessly(const wait_reason& reason,
                                                          Publish publish, Withdraw& withdraw) {
    static constexpr endless_operations operations{
        {&call_given_listing<Publish>, &call_listing<Publish>, &relocate_callable<Publish>,
         fits_pointer<Publish>},
        &call_withdraw<Withdraw>};
    void* const known = const_cast<endless_operations*>(&operations);
    const auto why = reinterpret_cast<std::uintptr_t>(&reason);
    const auto withdrawer = reinterpret_cast<std::intptr_t>(&withdraw);
    if constexpr (called)
        return static_cast<wait_outcome>(
            wait_endlessly_function(given(publish), known, why, withdrawer));
    else
        return static_cast<wait_outcome>(
            call_waiting(&wait_endlessly_function, given(publish), known, why, withdrawer));
}

template <class Publish, class Withdraw>
    requires std::is_nothrow_invocable_r_v<bool, Publish&, waiter&> &&
        std::is_nothrow_invocable_v<Withdraw&, waiter&>
[[gnu::always_inline]] inline wait_outcome wait_or_ready(const wait_reason& reason,
                                                         time_point deadline, Publish publish,
                                                         Withdraw withdraw) {
    static_assert(
        scratch_callable<Publish> && plain_callable<Publish>,
        "wait: publish must be nothrow-movable, trivially destructible, at most 64 bytes");
    if (!reason.cancellable && deadline == no_deadline)
        return wait_or_ready(reason, deadline, publish);
    if (deadline == no_deadline) return wait_endlessly(reason, std::move(publish), withdraw);
    withdrawing_request request{{{&publish, &relocate_callable<Publish>},
                                 &call_listing<Publish>,
                                 &reason,
                                 deadline,
                                 wait_outcome::event,
                                 true},
                                &withdraw,
                                &call_withdraw<Withdraw>};
    call_switching(&wait_withdrawing_function, &request);
    return request.outcome;
}

}  // namespace detail

/// If publish returns false, then the event has come, whatever else happens at that moment: it may
/// take what it waits for.
/// Suspends: unless it is cancelled already or publish returns false; also if the deadline has
/// passed. Cancel: reported, unless the reason says that this wait ignores it. From: any fiber or
/// thread. Fails: never.
template <class Publish>
    requires std::is_nothrow_invocable_r_v<bool, Publish&, waiter&>
[[gnu::always_inline]] inline wait_outcome wait(const wait_reason& reason, time_point deadline,
                                                Publish publish) {
    return detail::or_event(detail::wait_or_ready(reason, deadline, publish));
}

/// The same; if it ends otherwise than by its event after publish has returned true, then
/// withdraw(waiter&) is called before it returns.
template <class Publish, class Withdraw>
    requires std::is_nothrow_invocable_r_v<bool, Publish&, waiter&> &&
        std::is_nothrow_invocable_v<Withdraw&, waiter&>
[[gnu::always_inline]] inline wait_outcome wait(const wait_reason& reason, time_point deadline,
                                                Publish publish, Withdraw withdraw) {
    return detail::or_event(detail::wait_or_ready(reason, deadline, publish, withdraw));
}

}  // namespace weft::inline v0
