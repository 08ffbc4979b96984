// coroutine_block.hpp - what a coroutine is, whatever its back end: state, exceptions, destruction.
//
//            resume            yield
//   fresh ----------> running <------> suspended        done: the body returned, or threw
//                        |      resume
//                        v
//                       done
//
// Destroying a suspended one resumes it once more with `unwinding` set: yield() then throws
// forced_unwind, and the body's destructors run. Users see coroutine.hpp and generator.hpp.
//
// With the own back end, and nothing special, whoever resumes or yields switches in his own frame
// (weft/context/swap_in_frame.hpp), behind a call that does the rest:
//
//   resume()   step_in(): it runs        the switch     ended? step_back(): it is done
//   yield()    step_out(): it is parked  the switch     destroyed? throw
//
// Otherwise both are functions that are called through call_switching(): the first resume, the
// other back ends, other machines, sanitizers, and while an exception is in flight.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <exception>
#include <utility>

#include <weft/base/activity.hpp>
#include <weft/context/call_switching.hpp>
#include <weft/context/swap_in_frame.hpp>
#include <weft/coroutine/backend.hpp>

namespace weft::inline v0 {

/// What unwinds a coroutine that is destroyed while it is suspended. Not a std::exception. A catch
/// (...) that meets it must rethrow: going on, or yielding again, aborts.
class forced_unwind {
public:
    forced_unwind(const forced_unwind&) noexcept = default;

private:
    template <coroutine_backend Backend>
    friend class basic_coroutine_block;
    forced_unwind() noexcept = default;
};

namespace detail {

// By which who finds a coroutine through the thread knows its back end.
template <class Backend>
inline constexpr activity_role role_of = activity_role::own_coroutine;
template <>
inline constexpr activity_role role_of<ucontext_backend> = activity_role::ucontext_coroutine;
template <>
inline constexpr activity_role role_of<thread_backend> = activity_role::thread_coroutine;
template <>
inline constexpr activity_role role_of<swapped_backend> = activity_role::swapped_coroutine;

// The part that does not depend on the back end: what yield() finds through the thread. Parked
// coroutines of the swapped back end are many, so all of it is small (docs/decisions/0017).
struct coroutine_base : activity {
    /// Fails: std::bad_alloc, for the copy of a name.
    coroutine_base(activity_role role, std::string_view given_name);
    coroutine_base(const coroutine_base&) = delete;
    coroutine_base& operator=(const coroutine_base&) = delete;

    enum class state : unsigned char { fresh, suspended, running, done };

    // On its way out of the body. While the body waits: why the one that it resumed on the stack
    // that both share was not entered.
    std::exception_ptr error;
    bool unwinding = false;
    bool measured = false;
    bool started = false;

protected:
    [[noreturn]] void refuse_resume(state found) const noexcept;
    ~coroutine_base();
};

// And what its resumer writes at every resume.
template <class Backend>
struct resumed_coroutine : coroutine_base {
    using coroutine_base::coroutine_base;

    // Relaxed: only so that a misuse from another thread is told and not undefined.
    std::atomic<state> now = state::fresh;
    activity* outer = nullptr;  // what ran where it was resumed last
};

// The body reads what stands above, and the back end behind, at every yield. If they shared a cache
// line with this, each hand-over between two threads would move two lines and not one.
template <>
struct resumed_coroutine<thread_backend> : coroutine_base {
    using coroutine_base::coroutine_base;

    alignas(8) std::byte gap[56];
    std::atomic<state> now = state::fresh;
    activity* outer = nullptr;
    std::byte apart[56];
};

/// Where one that runs was resumed.
struct surroundings {
    const activity* running;  // what ran there
    // The lowest address that the resumer needs of the stack on which it waits; nullptr if that is
    // not known.
    const std::byte* kept;
};

/// From: the thread on which the coroutine runs.
[[nodiscard]] surroundings surroundings_of(const activity& coroutine) noexcept;

/// this_coroutine::yield(), of any back end.
void yield_by_call();

struct coroutine_kind;

}  // namespace detail

/// What is behind a coroutine: its state, its back end, the exception on its way out.
template <coroutine_backend Backend>
class basic_coroutine_block : public detail::resumed_coroutine<Backend>, public Backend {
    using resumed = detail::resumed_coroutine<Backend>;

public:
    using resumed::error;
    using resumed::measured;
    using resumed::name;
    using resumed::now;
    using resumed::outer;
    using resumed::started;
    using resumed::unwinding;
    using typename resumed::state;

    explicit basic_coroutine_block(const coroutine_options& options);
    /// The body must have ended, or not have started: destroy() sees to it.
    virtual ~basic_coroutine_block();

    /// Unwinds the body if it is suspended, then deletes the block.
    static void destroy(basic_coroutine_block* block) noexcept;

    // Always inlined, like whoever calls them: a call in between would have a `ret` to mispredict
    // (call_switching.hpp).
    /// As basic_coroutine's.
    [[gnu::always_inline]] void resume() {
        if constexpr (switches_in_frame) {
            const detail::return_to_frame at =
                detail::swap_in_frame(&backend().resumer(), step_in());
            if (at.mine != nullptr) [[likely]] {
                if (at.left == nullptr) [[unlikely]]
                    step_back();
                return;
            }
        }
        const state before = now.load(std::memory_order_relaxed);
        if (before != state::suspended && before != state::fresh) [[unlikely]]
            this->refuse_resume(before);
        detail::call_switching(&switch_in, base());
        if (error != nullptr) [[unlikely]]
            std::rethrow_exception(std::exchange(error, nullptr));
    }
    /// From the body: back to the resumer.
    [[gnu::always_inline]] void yield() {
        if constexpr (switches_in_frame) {
            if (detail::swap_in_frame(&backend().body(), step_out()).mine != nullptr) [[likely]] {
                if (unwinding) [[unlikely]]
                    unwind();
                return;
            }
        }
        detail::call_switching(&switch_out, base());
    }
    /// this_coroutine::yield().
    [[gnu::always_inline]] static void yield_here() {
        if constexpr (switches_in_frame) {
            const way_out way = step_out_here();
            if (detail::swap_in_frame(way.from, way.to).mine != nullptr) [[likely]] {
                if (unwinds_here()) [[unlikely]]
                    unwind();
                return;
            }
        }
        detail::yield_by_call();
    }
    /// As basic_coroutine's.
    [[nodiscard]] bool done() const noexcept {
        return now.load(std::memory_order_relaxed) == state::done;
    }
    /// As basic_coroutine's.
    [[nodiscard]] std::size_t stack_high_water() const noexcept;
    /// What it runs on.
    [[nodiscard]] Backend& backend() noexcept { return *this; }

protected:
    /// The user's function.
    virtual void run() = 0;

private:
    friend Backend;
    friend struct detail::coroutine_kind;
    static constexpr bool switches_in_frame =
        WEFT_SWITCH_IN_FRAME && std::derived_from<Backend, own_backend>;

    // What is to be done before a switch in the frame of who asks, and where that goes; nullptr: it
    // has to be a call, and nothing was done.
    [[nodiscard, WEFT_CALL_BEFORE_SWITCH]] context* step_in() noexcept;
    [[nodiscard, WEFT_CALL_BEFORE_SWITCH]] context* step_out() noexcept;
    // The same for the one that runs here, if there is one.
    struct way_out {
        context* from;
        context* to;
    };
    [[nodiscard, WEFT_CALL_BEFORE_SWITCH]] static way_out step_out_here() noexcept;
    [[nodiscard, gnu::always_inline]] static bool unwinds_here() noexcept {
        return static_cast<detail::coroutine_base*>(detail::running_on_this_thread())->unwinding;
    }
    [[nodiscard]] bool part() noexcept;
    // For the resumer, after the body's end.
    void step_back();
    [[noreturn]] static void unwind();

    WEFT_NO_SANITIZE static void entry(void* block);  // left by a jump: see its definition
    static void switch_in(void* base, void*);
    static void switch_out(void* base, void*);
    static detail::surroundings outside_of(const detail::coroutine_base& base) noexcept;
    [[nodiscard]] detail::coroutine_base* base() noexcept { return this; }
    void live() noexcept;
    void run_and_keep_exception() noexcept;
    void note_parked() noexcept;
    void end() noexcept;
};

extern template class basic_coroutine_block<own_backend>;
extern template class basic_coroutine_block<ucontext_backend>;
extern template class basic_coroutine_block<thread_backend>;
extern template class basic_coroutine_block<swapped_backend>;

}  // namespace weft::inline v0
