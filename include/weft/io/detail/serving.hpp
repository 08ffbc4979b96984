// serving.hpp - what serve() is made of, apart from the types of its streams.
//
// A connection is in one of three states:
//
//   handler                                        whoever stops the server
//   before a request: busy -> idle  (CAS)          each: exchange stopping
//     wait for its first byte                        was idle: interrupt it (it reads the end)
//   idle -> busy                    (CAS)            was busy: it sees it before its next request
//   either fails: stopping
//
// All are acq_rel read-modify-writes of one word. Connections stand in a list; the lock of that is
// held over interrupt(), and a connection leaves the list before it ends.
//
// A place is taken before a connection is accepted and given back when it is closed, so no more
// than the limit are ever open. The server's fiber waits for the last one to say done(), which is
// the last thing that a handler's fiber does to the server.
//
// When the grace is over, each is taken out of the list and cancelled, and one that comes to its
// handler only then cancels itself. Nothing is allocated from the stop on: a server without memory
// ends all the same.
//
// While all places are taken nobody accepts, and yet it must be heard that the listener is closed:
//
//   waits for a place                              gives one back
//   full_ is made            (lock)                  release
//   try_acquire: none?                               full_ made? cancel it      (lock)
//   wait for the listener to be writable,
//     which it never is, till that is cancelled
//
// Either the first finds the place, or the second finds full_.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <exception>
#include <mutex>
#include <optional>
#include <utility>

#include <weft/base/clock_source.hpp>
#include <weft/fiber/cancel.hpp>
#include <weft/fiber/go.hpp>
#include <weft/fiber/this_fiber.hpp>
#include <weft/io/descriptor.hpp>
#include <weft/io/serve_limits.hpp>
#include <weft/scope/deadline.hpp>
#include <weft/sync/semaphore.hpp>
#include <weft/sync/wait_group.hpp>

namespace weft::inline v0::detail {

class serving;

/// A connection, as the server sees it.
class served {
public:
    served(const served&) = delete;
    served& operator=(const served&) = delete;

protected:
    served() noexcept = default;
    ~served() = default;

    [[nodiscard]] bool is_stopping() const noexcept {
        return state_.load(std::memory_order_acquire) == state::stopping;
    }
    /// False: the server stops.
    [[nodiscard]] bool begin_idle() noexcept { return change(state::busy, state::idle); }
    [[nodiscard]] bool end_idle() noexcept { return change(state::idle, state::busy); }

private:
    friend serving;
    enum class state : unsigned char { busy, idle, stopping };

    [[nodiscard]] bool change(state from, state to) noexcept {
        return state_.compare_exchange_strong(from, to, std::memory_order_acq_rel);
    }
    /// It waits for a request that shall not come.
    virtual void interrupt() noexcept = 0;
    void stop() noexcept {
        if (state_.exchange(state::stopping, std::memory_order_acq_rel) == state::idle) interrupt();
    }

    std::atomic<state> state_ = state::busy;
    // Guarded by the server's lock.
    fiber_handle fiber_;  // none: it is not in the list
    served* next_ = nullptr;
    served* previous_ = nullptr;
};

/// A server that runs. It does not lie in the stack of a swapped fiber.
class serving {
public:
    /// Fails: std::invalid_argument.
    explicit serving(const io::serve_limits& wanted);
    serving(const serving&) = delete;
    serving& operator=(const serving&) = delete;
    /// If it did not come to finish(): the same without any grace.
    ~serving();

    // The server's fiber.

    /// From now on a handler that throws cancels the waits of this fiber.
    void begin();
    /// Waits until there is room for one more. False: it stops, also because the listener is
    /// closed, if that is one of the system's.
    template <class Listener>
    [[nodiscard]] bool take_place(Listener& listener) {
        if constexpr (requires { static_cast<io::descriptor&>(listener.get_descriptor()); })
            return take_place_of(&listener.get_descriptor());
        else
            return take_place_of(nullptr);
    }
    /// A fiber for a connection. Fails: as go() does.
    template <class F>
    void start(F&& function) {
        count_one();
        try {
            go(home_, next_options(),
               [this, mine = std::optional<std::decay_t<F>>(std::forward<F>(function))]() mutable {
                   try {
                       (*mine)();
                   } catch (...) { fail(std::current_exception()); }  // it has come to no handler
                   mine.reset();
                   leave();
               });
        } catch (...) {
            leave();
            throw;
        }
    }
    void stop(std::error_code why) noexcept;
    /// Stops, waits, throws what a handler threw.
    io::serve_report finish();

    // A handler's fiber.

    /// For the next wait of its connection.
    [[nodiscard]] time_point idle_deadline() const noexcept;
    /// A read or a write that has no deadline of its own.
    template <class F>
    [[nodiscard]] auto in_idle_time(F function) const {
        if (limits.idle == io::serve_limits::never) return function();
        return with_timeout(limits.idle, function);
    }
    /// Whoever found the connection idle is in interrupt() no more.
    void wait_until_interrupted() noexcept { const std::lock_guard lock(lock_); }
    /// The handler has returned. What it wrote shall arrive, though the client is still sending.
    void linger(io::descriptor& socket) const;
    template <class F>
    void run(served& connection, F handler) {
        enter(connection);
        try {
            if (limits.total == io::serve_limits::never)
                handler();
            else
                static_cast<void>(with_timeout(limits.total, handler));
        } catch (const cancelled&) {
        } catch (...) { fail(std::current_exception()); }
        exit(connection);
    }

    const io::serve_limits limits;

private:
    class filled;
    class deaf;

    [[nodiscard]] bool take_place_of(io::descriptor* listener);
    [[nodiscard]] std::error_code wait_while_full(io::descriptor& listener);
    void count_one() noexcept;
    void leave() noexcept;
    void enter(served& connection) noexcept;
    void exit(served& connection) noexcept;
    // Under the lock.
    void put_in(served& connection) noexcept;
    fiber_handle take_out(served& connection) noexcept;
    void fail(std::exception_ptr error) noexcept;
    void drain(std::chrono::nanoseconds grace);
    void stop_all() noexcept;
    void cancel_all() noexcept;
    [[nodiscard]] fiber_options next_options() noexcept;

    executor& home_;
    counting_semaphore<> places_;
    wait_group connections_;
    unsigned turn_ = 0;  // the server's fiber only
    bool runs_ = false;
    std::optional<cancel_scope> deaf_;  // while it stops

    std::mutex lock_;
    // Guarded by lock_, but that the server's fiber alone makes and destroys the scopes.
    std::optional<cancel_scope> accepting_;
    std::optional<cancel_scope> full_;  // inside of that one
    served* first_ = nullptr;
    std::size_t open_ = 0;  // connections
    bool stopping_ = false;
    bool cancelling_ = false;
    std::exception_ptr failure_;
    io::serve_report report_;
};

}  // namespace weft::inline v0::detail
