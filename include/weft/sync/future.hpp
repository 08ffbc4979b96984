// future.hpp - the result of something that runs elsewhere: std's future, shared_future, promise.
//
//     promise<int> p;
//     future<int> f = p.get_future();
//     go(s, [&p] { p.set_value(42); });
//     f.get();                              // a fiber suspends, a thread blocks
//
// Members and meaning are the standard library's; the at_thread_exit forms are missing. Waits are
// cancelled by throwing `cancelled`, and the future can be waited for again. async.hpp makes
// futures from functions, when.hpp waits for several.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <future>
#include <memory>
#include <type_traits>
#include <utility>

#include <weft/sync/detail/deadline.hpp>
#include <weft/sync/detail/future_state.hpp>

namespace weft::inline v0 {

using std::future_errc;
using std::future_error;
using std::future_status;
using std::launch;

template <class T>
class shared_future;

namespace detail {

struct future_access;

/// What future and shared_future have in common.
template <class T>
class basic_future {
public:
    [[nodiscard]] bool valid() const noexcept { return state_ != nullptr; }

    /// Suspends: maybe. Cancel: throws `cancelled`; it can be waited for again. From: any fiber or
    /// thread. Fails: std::future_error (no_state).
    void wait() const {
        require_state(state_);
        state_->wait();
    }
    template <class Rep, class Period>
    [[nodiscard]] future_status wait_for(std::chrono::duration<Rep, Period> limit) const {
        require_state(state_);
        return state_->wait_until(deadline_in(limit));
    }
    template <class Clock, class Duration>
    [[nodiscard]] future_status wait_until(std::chrono::time_point<Clock, Duration> when) const {
        require_state(state_);
        return until(when, future_status::timeout,
                     [this](time_point deadline) { return state_->wait_until(deadline); });
    }

protected:
    friend future_access;

    basic_future() noexcept = default;
    explicit basic_future(future_state<T>* state) noexcept : state_(state) {}
    basic_future(const basic_future& other) noexcept : state_(other.state_) {
        if (state_ != nullptr) state_->add_future();
    }
    basic_future(basic_future&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
    basic_future& operator=(const basic_future&) = delete;
    ~basic_future() { drop_for(nullptr); }
    /// Lets go of what it has, last: that may wait.
    void drop_for(future_state<T>* other) noexcept {
        future_state<T>* const old = std::exchange(state_, other);
        if (old != nullptr) old->release_future();
    }
    [[nodiscard]] future_state<T>* give_up() noexcept { return std::exchange(state_, nullptr); }

    future_state<T>* state_ = nullptr;  // one of its futures
};

struct future_access {
    template <class T>
    [[nodiscard]] static future_state<T>* state(const basic_future<T>& of) noexcept {
        return of.state_;
    }
    /// The one and only future of a new state. Fails: future_already_retrieved.
    template <class T, template <class> class Future>
    [[nodiscard]] static Future<T> make(future_state<T>& state) {
        state.retrieve();
        return Future<T>(&state);
    }
};

}  // namespace detail

/// Thread-safe: no. One from async() waits in its destructor; cancellation is ignored there.
template <class T>
class [[nodiscard]] future : public detail::basic_future<T> {
public:
    future() noexcept = default;
    future(future&&) noexcept = default;
    future& operator=(future&& other) noexcept {
        if (this != &other) this->drop_for(other.give_up());
        return *this;
    }
    future(const future&) = delete;
    future& operator=(const future&) = delete;

    /// Waits, and gives up what came: the value, or it throws the exception. Not valid afterwards.
    /// Suspends: maybe. Cancel: throws `cancelled`; it is still valid. From: any fiber or thread.
    /// Fails: std::future_error (no_state, broken_promise).
    T get() {
        this->wait();
        future used(std::move(*this));
        if constexpr (std::is_void_v<T>)
            static_cast<void>(used.state_->result());
        else if constexpr (std::is_reference_v<T>)
            return *used.state_->result();
        else
            return std::move(used.state_->result());
    }
    /// The same result for many; this one is empty then.
    [[nodiscard]] shared_future<T> share() noexcept { return shared_future<T>(std::move(*this)); }

private:
    friend detail::future_access;
    explicit future(detail::future_state<T>* state) noexcept : detail::basic_future<T>(state) {}
};

/// Copies refer to the same result, each for one thread at a time.
template <class T>
class shared_future : public detail::basic_future<T> {
public:
    shared_future() noexcept = default;
    shared_future(const shared_future&) noexcept = default;
    shared_future(shared_future&&) noexcept = default;
    shared_future(future<T>&& other) noexcept
        : detail::basic_future<T>(static_cast<detail::basic_future<T>&&>(other)) {}
    shared_future& operator=(const shared_future& other) noexcept {
        return *this = shared_future(other);
    }
    shared_future& operator=(shared_future&& other) noexcept {
        if (this != &other) this->drop_for(other.give_up());
        return *this;
    }

    /// Waits, and shows what came: a reference to the value, or it throws the exception.
    /// Suspends: maybe. Cancel: throws `cancelled`. From: any fiber or thread. Fails:
    /// std::future_error (no_state, broken_promise).
    decltype(auto) get() const {
        this->wait();
        if constexpr (std::is_void_v<T>)
            static_cast<void>(this->state_->result());
        else if constexpr (std::is_reference_v<T>)
            return static_cast<T>(*this->state_->result());
        else
            return std::as_const(this->state_->result());
    }
};

namespace detail {

/// All of promise but its set_value().
template <class T>
class basic_promise {
public:
    /// Fails: std::bad_alloc.
    basic_promise() : state_(new future_state<T>) {}
    /// What it shares with its futures is the allocator's memory. Fails: as the allocator does.
    template <class Allocator>
    basic_promise(std::allocator_arg_t, const Allocator& allocator)
        : state_(allocated_state<T, Allocator>::make(allocator)) {}
    basic_promise(basic_promise&&) noexcept = default;
    basic_promise& operator=(basic_promise&& other) noexcept {
        basic_promise taken(std::move(other));
        std::swap(state_, taken.state_);
        return *this;
    }
    ~basic_promise() {
        if (state_) state_->abandon();
    }

    /// Once. Fails: std::future_error (no_state, future_already_retrieved).
    [[nodiscard]] future<T> get_future() {
        require_state(state_.get());
        return future_access::make<T, future>(*state_.get());
    }
    /// Suspends: never. From: any fiber or thread. Fails: std::future_error (no_state,
    /// promise_already_satisfied).
    void set_exception(std::exception_ptr error) {
        require_state(state_.get());
        state_->set_exception(std::move(error));
    }

protected:
    template <class... Args>
    void set(Args&&... args) {
        require_state(state_.get());
        state_->set_value(std::forward<Args>(args)...);
    }
    void swap_states(basic_promise& other) noexcept { std::swap(state_, other.state_); }

private:
    state_reference<future_state<T>> state_;
};

}  // namespace detail

/// Its result may be taken, and the promise destroyed, as soon as it is set. Without a result in
/// the end the futures get future_errc::broken_promise.
template <class T>
class promise : public detail::basic_promise<T> {
public:
    using detail::basic_promise<T>::basic_promise;
    /// Suspends: never, but for the value's own constructor. From: any fiber or thread. Fails:
    /// std::future_error (no_state, promise_already_satisfied); throws what the constructor throws,
    /// and it is not set then.
    void set_value(const T& value) { this->set(value); }
    void set_value(T&& value) { this->set(std::move(value)); }
    /// Each has the other's state.
    void swap(promise& other) noexcept { this->swap_states(other); }
};

/// For a reference.
template <class T>
class promise<T&> : public detail::basic_promise<T&> {
public:
    using detail::basic_promise<T&>::basic_promise;
    /// As that of promise<T>, for a reference.
    void set_value(T& value) { this->set(std::addressof(value)); }
    /// Each has the other's state.
    void swap(promise& other) noexcept { this->swap_states(other); }
};

/// For nothing but the end.
template <>
class promise<void> : public detail::basic_promise<void> {
public:
    using detail::basic_promise<void>::basic_promise;
    /// As that of promise<T>, for no value.
    void set_value() { this->set(); }
    /// Each has the other's state.
    void swap(promise& other) noexcept { this->swap_states(other); }
};

/// a.swap(b).
template <class T>
void swap(promise<T>& a, promise<T>& b) noexcept {
    a.swap(b);
}

}  // namespace weft::inline v0

/// As std's: it takes an allocator behind std::allocator_arg.
template <class T, class Allocator>
struct std::uses_allocator<weft::promise<T>, Allocator> : std::true_type {};
