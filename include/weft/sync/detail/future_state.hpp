// future_state.hpp - what a promise and its futures share.
//
// A counted object on the heap: a word (pending, being set, ready) with those who wait, functions
// to be called when it is ready, and the result. Whoever sets it constructs the result while the
// word says "being set", without any lock, for that is user code; then makes it ready.
//
//   setter                                          whoever waits
//   pending -> being set    (under the word's lock) not ready? (acquire) publish: under the lock,
//   construct the value or note the exception       not ready: into the queue
//   claim all; being set -> ready  (release)        woken, or ready: read the result
//   wake them, call the functions
//
// After "ready" the setter touches nothing of the state: the one that waited may have freed it.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <future>
#include <memory>
#include <new>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

#include <weft/sync/detail/wait_word.hpp>

namespace weft::inline v0::detail {

/// Called once, by whoever makes a state ready or finds it so. Must not throw nor wait.
struct continuation {
    void (*run)(continuation& self) noexcept = nullptr;
    continuation* next = nullptr;
};

class future_state_base {
public:
    enum : std::uint64_t { pending, being_set, ready };

    future_state_base() noexcept = default;
    future_state_base(const future_state_base&) = delete;
    future_state_base& operator=(const future_state_base&) = delete;

    void add_reference() noexcept { references_.fetch_add(1, std::memory_order_relaxed); }
    void release() noexcept {
        // acq_rel: what each holder did happens before the end
        if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) destroy();
    }

    // For futures.

    /// Fails: std::future_error (future_already_retrieved).
    void retrieve();
    void add_future() noexcept;
    /// The last one of a state that waits at its end does.
    void release_future() noexcept;
    [[nodiscard]] bool is_ready() const noexcept {
        return word_.load(std::memory_order_acquire) / wait_word::unit == ready;
    }
    /// A deferred function runs in here. Cancel: throws.
    void wait();
    [[nodiscard]] std::future_status wait_until(time_point deadline);
    void wait_firmly() noexcept;
    /// Waits for what async started for it.
    virtual void wait_at_end() noexcept {
        if (waits_at_end) wait_firmly();
    }
    /// Calls it now if it is ready.
    void on_ready(continuation& what) noexcept;

    // For whoever sets it.

    /// Fails: std::future_error (promise_already_satisfied).
    void begin_setting();
    [[nodiscard]] bool try_begin_setting() noexcept;
    /// The construction of the result threw.
    void give_up_setting() noexcept;
    void complete() noexcept;
    void set_exception(std::exception_ptr error);
    /// Nobody will set it any more: broken_promise, unless it is set.
    void abandon() noexcept;

    std::exception_ptr error;
    bool waits_at_end = false;  // async's
    bool deferred = false;

protected:
    virtual ~future_state_base() = default;

private:
    /// Gives its memory back, too.
    virtual void destroy() noexcept { delete this; }
    /// Runs the function and completes; it has begun to set.
    virtual void run_deferred() noexcept {}
    /// Nobody will ask for the result any more.
    virtual void discard() noexcept { wait_at_end(); }
    [[nodiscard]] wait_outcome wait_until_ready(time_point deadline, const wait_reason& why);

    wait_word word_;
    continuation* continuations_ = nullptr;  // guarded by it
    std::atomic<std::uint32_t> references_ = 1;
    std::atomic<std::uint32_t> futures_ = 0;
    std::atomic<bool> retrieved_ = false;
};

template <class T>
struct stored_result {
    using type = T;
};
template <class T>
struct stored_result<T&> {
    using type = T*;
};
template <>
struct stored_result<void> {
    using type = std::monostate;
};

template <class T>
class future_state : public future_state_base {
public:
    using stored = typename stored_result<T>::type;

    /// Fails: as begin_setting(), and as the construction does; then it is not set.
    template <class... Args>
    void set_value(Args&&... args) {
        begin_setting();
        try {
            value.emplace(std::forward<Args>(args)...);
        } catch (...) {
            give_up_setting();
            throw;
        }
        complete();
    }

    /// Stores what function() returns or throws; it has begun to set, and complete() must follow.
    template <class F>
    void store_result_of(F&& function) noexcept {
        try {
            if constexpr (std::is_void_v<T>) {
                std::forward<F>(function)();
                value.emplace();
            } else if constexpr (std::is_reference_v<T>) {
                value.emplace(std::addressof(std::forward<F>(function)()));
            } else {
                value.emplace(std::forward<F>(function)());
            }
        } catch (...) { error = std::current_exception(); }
    }

    /// What it came to; it is ready.
    [[nodiscard]] stored& result() {
        if (error != nullptr) std::rethrow_exception(error);
        return *value;
    }

    std::optional<stored> value;
};

/// One whose memory is an allocator's.
template <class T, class Allocator>
class allocated_state final : public future_state<T> {
public:
    /// Fails: as the allocator does.
    [[nodiscard]] static allocated_state* make(const Allocator& allocator) {
        own_allocator own(allocator);
        const auto memory = own_traits::allocate(own, 1);
        return ::new (static_cast<void*>(std::to_address(memory))) allocated_state(own);
    }

private:
    using own_allocator =
        typename std::allocator_traits<Allocator>::template rebind_alloc<allocated_state>;
    using own_traits = std::allocator_traits<own_allocator>;

    explicit allocated_state(const own_allocator& allocator) noexcept : allocator_(allocator) {}
    ~allocated_state() override = default;
    void destroy() noexcept override {
        own_allocator own(allocator_);
        const auto memory = std::pointer_traits<typename own_traits::pointer>::pointer_to(*this);
        this->~allocated_state();
        own_traits::deallocate(own, memory, 1);
    }

    [[no_unique_address]] own_allocator allocator_;
};

/// Owns one reference to a state; as a future, one of its futures, too.
template <class State>
class state_reference {
public:
    state_reference() noexcept = default;
    /// Takes over a reference.
    explicit state_reference(State* state) noexcept : state_(state) {}
    state_reference(const state_reference& other) noexcept : state_(other.state_) {
        if (state_ != nullptr) state_->add_reference();
    }
    state_reference(state_reference&& other) noexcept
        : state_(std::exchange(other.state_, nullptr)) {}
    state_reference& operator=(state_reference other) noexcept {
        std::swap(state_, other.state_);
        return *this;
    }
    ~state_reference() {
        if (state_ != nullptr) state_->release();
    }
    [[nodiscard]] State* get() const noexcept { return state_; }
    [[nodiscard]] State* operator->() const noexcept { return state_; }
    [[nodiscard]] explicit operator bool() const noexcept { return state_ != nullptr; }

private:
    State* state_ = nullptr;
};

/// Fails: std::future_error (no_state), always.
[[noreturn, gnu::cold]] void throw_no_state();

/// Fails: std::future_error (no_state). Always inlined: g++ warns of the call behind it where it
/// knows that there is no state, and not that this does not come back.
[[gnu::always_inline]] inline void require_state(const void* state) {
    if (state == nullptr) [[unlikely]]
        throw_no_state();
}

}  // namespace weft::inline v0::detail
