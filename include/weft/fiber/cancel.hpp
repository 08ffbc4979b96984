// cancel.hpp - asking a fiber to stop.
//
// Cancellation is level-triggered: once asked, every wait of the fiber that can be cancelled says
// so, until the scope that was cancelled is left. Each wait's contract line names its class: it
// reports by value, it throws `cancelled`, or it ignores.
//
//     cancel_scope scope;             // waits of this fiber obey it until it is destroyed
//     someone_else(scope);            // scope.cancel(), from any thread
//     sleep_for(1h);                  // returns std::errc::operation_canceled
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <optional>
#include <stop_token>
#include <system_error>

#include <weft/base/version.hpp>

namespace weft::inline v0 {

/// Why a fiber was asked to stop. It goes down the tree as it is.
enum class cancel_reason : unsigned char {
    none,         // it was not asked
    requested,    // by request_stop() or cancel()
    timed_out,    // a deadline passed
    shutdown,     // its executor ends
    failed,       // somebody of the same group threw
    parent_left,  // the parent left the group, and needs no more results
};

/// What waits that report say: std::errc::timed_out, or std::errc::operation_canceled.
[[nodiscard]] std::error_code error_code_of(cancel_reason reason) noexcept;

/// Thrown by waits that cannot report otherwise. Not a std::exception, so that a handler of those
/// does not swallow it; swallowing it is harmless, for the next wait says it again.
class cancelled {
public:
    explicit cancelled(cancel_reason reason) noexcept : reason_(reason) {}
    /// Why; it goes down the tree as it is.
    [[nodiscard]] cancel_reason reason() const noexcept { return reason_; }

private:
    cancel_reason reason_;
};

namespace detail {
struct fiber_block;
class deadline_scope;
}  // namespace detail

namespace this_fiber {
/// Of the innermost cancel_scope; of the fiber itself if there is none. Its source is made at the
/// first call. From: a fiber; elsewhere it aborts. Fails: std::bad_alloc.
[[nodiscard]] std::stop_token get_stop_token();
}  // namespace this_fiber

/// Scopes nest in the fiber that made them and are destroyed in reverse order, by that fiber.
class cancel_scope {
public:
    /// Whether what is cancelled outside is seen inside.
    enum class shield : bool {
        no,   // it is
        yes,  // it is not
    };
    /// From: a fiber; elsewhere it aborts, and so it does if it lies in a swapped fiber's stack.
    explicit cancel_scope(shield shielded = shield::no);
    cancel_scope(const cancel_scope&) = delete;
    cancel_scope& operator=(const cancel_scope&) = delete;
    ~cancel_scope();

    /// Suspends: never. From: any thread, while the scope lives. Stop callbacks run in it.
    void cancel(cancel_reason reason = cancel_reason::requested) noexcept;
    /// By itself, or with one around it.
    [[nodiscard]] bool is_cancelled() const noexcept;

private:
    friend class scope_chain;
    friend class detail::deadline_scope;
    friend std::stop_token this_fiber::get_stop_token();

    detail::fiber_block& owner_;
    cancel_scope* const parent_;
    const bool shielded_;
    // Guarded by the owner's lock.
    cancel_reason reason_ = cancel_reason::none;
    std::optional<std::stop_source> source_;
};

namespace this_fiber {

/// Whether a wait that can be cancelled would be. From: a fiber; elsewhere false.
[[nodiscard]] bool stop_requested() noexcept;

/// Why; none if not stop_requested().
[[nodiscard]] cancel_reason stop_reason() noexcept;

/// Throws `cancelled` if stop_requested().
void throw_if_cancelled();

}  // namespace this_fiber

using this_fiber::get_stop_token;

}  // namespace weft::inline v0
