// blocking.hpp - calls that block a thread, made from fibers that do not.
//
//     std::string text = io::blocking([path] { return read_with_some_old_library(path); });
//
// The function runs on a thread of a side pool while the fiber waits, and its worker goes on with
// others. A side pool has no threads until it is asked; it makes one whenever none is free, up to
// its limit, and those that were idle for a while end. What is over the limit waits, the eldest
// first. A plain thread may block as it likes, so there the function is simply called.
//
// The callable and its result are kept on the heap. It must not refer to locals of a swapped fiber,
// which are somewhere else while that waits.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <exception>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>

#include <weft/fiber/cancel.hpp>
#include <weft/fiber/this_fiber.hpp>
#include <weft/fiber/waiter.hpp>

namespace weft::inline v0 {

namespace io {

/// How a side pool is made.
struct side_pool_options {
    /// At most so many threads, and so many calls at once.
    unsigned limit = 64;
    /// A thread that had nothing to do for so long ends.
    std::chrono::nanoseconds idle = std::chrono::seconds(10);
    /// Threads are called name-0, name-1, ... (at most 15 characters show).
    std::string name = "weft-side";
};

/// Of one moment.
struct side_pool_counters {
    unsigned threads = 0;      // there are so many
    unsigned running = 0;      // of which so many are in a call
    std::size_t queued = 0;    // calls that wait for a thread
    unsigned most = 0;         // threads that there were at once, so far
    std::size_t started = 0;   // threads that were made, so far
    std::size_t finished = 0;  // calls that have ended, so far
};

}  // namespace io

namespace detail {

class side_pool_core;

/// A call on its way, on the heap. What is not const is guarded by the pool's lock.
struct side_call {
    enum class state : unsigned char { queued, running, done, withdrawn };

    explicit side_call(void (*function)(side_call&) noexcept) noexcept : run(function) {}

    void (*const run)(side_call&) noexcept;
    void (*discard)(side_call&) noexcept = nullptr;  // nobody waits: whoever ends it calls this
    state now = state::queued;
    std::error_code failure;   // no thread could be had for it
    waiter* caller = nullptr;  // who waits for it, once that does
    side_call* next = nullptr;
    side_call* previous = nullptr;
};

template <class F>
class side_call_of final : public side_call {
public:
    using result = std::invoke_result_t<F>;

    template <class G>
    explicit side_call_of(G&& function)
        : side_call(&perform), function_(std::forward<G>(function)) {}

    /// Once it is done.
    result take() {
        if (error_ != nullptr) std::rethrow_exception(std::move(error_));
        if constexpr (!std::is_void_v<result>) return std::move(*value_);
    }

private:
    static void perform(side_call& self) noexcept {
        auto& me = static_cast<side_call_of&>(self);
        try {
            if constexpr (std::is_void_v<result>)
                std::move(me.function_)();
            else
                me.value_.emplace(std::move(me.function_)());
        } catch (...) { me.error_ = std::current_exception(); }
    }

    struct nothing {};
    F function_;
    std::optional<std::conditional_t<std::is_void_v<result>, nothing, result>> value_;
    std::exception_ptr error_;
};

/// For calls that nobody waits for on the spot; see src/io/side_pool.hpp.
struct side_access;

template <class R>
struct side_report {
    using type = std::expected<R, std::error_code>;
};
template <class T>
struct side_report<std::expected<T, std::error_code>> {
    using type = std::expected<T, std::error_code>;
};

}  // namespace detail

namespace io {

/// What may be called elsewhere: it takes nothing, can be moved there, and returns a value or
/// nothing, but no reference.
template <class F>
concept blocking_function =
    std::invocable<std::decay_t<F>> && std::constructible_from<std::decay_t<F>, F> &&
    !std::is_reference_v<std::invoke_result_t<std::decay_t<F>>>;

/// Threads for calls that block. Thread-safe: all but construction and destruction.
class side_pool {
public:
    /// Makes no thread yet. Fails: std::invalid_argument for a limit of 0 or a negative idle time.
    explicit side_pool(side_pool_options options = {});
    side_pool(const side_pool&) = delete;
    side_pool& operator=(const side_pool&) = delete;
    /// Ends its threads and waits for that. Aborts: while somebody waits for a call on it.
    ~side_pool();

    /// As they are now. Suspends: never. From: any fiber or thread. Fails: never.
    [[nodiscard]] side_pool_counters counters() const;
    /// At most so many threads. Suspends: never. From: any fiber or thread. Fails: never.
    [[nodiscard]] unsigned limit() const noexcept;
    /// More: what waits may begin at once. Fewer: threads that are over it end when they are free.
    /// Fails: std::invalid_argument for 0.
    void set_limit(unsigned limit);

    /// Ends the threads that are idle, and waits until they have. Calls that run go on.
    void end_idle() noexcept;

private:
    template <blocking_function F>
    friend typename detail::side_report<std::invoke_result_t<std::decay_t<F>>>::type try_blocking(
        side_pool& on, F&& function);
    template <blocking_function F>
    friend std::invoke_result_t<std::decay_t<F>> blocking(side_pool& on, F&& function);

    friend side_pool& shared_side_pool();
    friend side_pool& file_side_pool();
    friend detail::side_access;

    /// Runs it on one of the threads while this fiber waits. The error says that it did not run.
    [[nodiscard]] std::error_code perform(detail::side_call& call);

    std::unique_ptr<detail::side_pool_core> core_;
};

/// The one of blocking() that is told no other. It is made at the first call and is never
/// destroyed; at the program's exit its idle threads end, and a call that still runs then ends with
/// the program.
[[nodiscard]] side_pool& shared_side_pool();
/// The one on which files, and programs, are opened and used. Calls of a program that take long, or
/// that wait for what a fiber will do, keep no file waiting. As shared_side_pool() otherwise.
[[nodiscard]] side_pool& file_side_pool();

/// What the function returns or throws, on a thread where it may block.
/// Suspends: always, in a fiber. Cancel: a call that has not begun is withdrawn, and this throws
/// `cancelled`; one that has begun is waited for, and its result returned. From: any fiber or
/// thread. Fails: std::bad_alloc; std::system_error when there is no thread and none can be made.
template <blocking_function F>
std::invoke_result_t<std::decay_t<F>> blocking(side_pool& on, F&& function) {
    if (!this_fiber::get_id()) return std::decay_t<F>(std::forward<F>(function))();
    const auto call =
        std::make_unique<detail::side_call_of<std::decay_t<F>>>(std::forward<F>(function));
    if (const std::error_code error = on.perform(*call)) {
        this_fiber::throw_if_cancelled();
        throw std::system_error(error, "weft: blocking");
    }
    return call->take();
}
template <blocking_function F>
std::invoke_result_t<std::decay_t<F>> blocking(F&& function) {
    return blocking(shared_side_pool(), std::forward<F>(function));
}

/// The same, and says by value that it was cancelled before it began, or that there was no thread.
/// If the function returns an expected (with std::error_code) itself, then the error is in that.
/// Suspends, From: as blocking(). Cancel: reported, if it has not begun. Fails:
/// std::errc::operation_canceled, std::errc::timed_out,
/// std::errc::resource_unavailable_try_again; std::bad_alloc is thrown.
template <blocking_function F>
[[nodiscard]] typename detail::side_report<std::invoke_result_t<std::decay_t<F>>>::type
try_blocking(side_pool& on, F&& function) {
    using result = std::invoke_result_t<std::decay_t<F>>;
    using report = typename detail::side_report<result>::type;
    if (!this_fiber::get_id()) {
        if constexpr (std::is_void_v<result>) {
            std::decay_t<F>(std::forward<F>(function))();
            return {};
        } else {
            return std::decay_t<F>(std::forward<F>(function))();
        }
    }
    const auto call =
        std::make_unique<detail::side_call_of<std::decay_t<F>>>(std::forward<F>(function));
    if (const std::error_code error = on.perform(*call)) return report(std::unexpect, error);
    if constexpr (std::is_void_v<result>) {
        call->take();
        return {};
    } else {
        return call->take();
    }
}
template <blocking_function F>
[[nodiscard]] typename detail::side_report<std::invoke_result_t<std::decay_t<F>>>::type
try_blocking(F&& function) {
    return try_blocking(shared_side_pool(), std::forward<F>(function));
}

}  // namespace io
}  // namespace weft::inline v0
