// side_pool.hpp - the threads that calls block on, and the calls that wait for one.
//
//   fiber                                         a side thread
//   queue the call; wake an idle thread, or       take the eldest call: running
//   make one if there are fewer than the limit    run it (without the lock)
//   publish: done? go on. else caller = me        done; claim the caller, if there is one yet
//   cancelled: caller = nobody                    wake it (without the lock)
//     still queued? take it out: withdrawn        nothing queued? into the idle list, sleep
//     else wait again, deaf
//
// All of it is under one lock, held for a few instructions, but for running, waking and the making
// and joining of threads. A call may begin, and even end, before its fiber waits: so the thread's
// start and the fiber's stop overlap. After the lock is dropped that says `done`, the thread
// touches nothing of the call, for the fiber may free it.
//
// No call is forgotten: one is queued under the lock, and every thread looks at the queue under the
// lock before it goes to sleep or ends. At that moment there is an idle thread, which is woken; or
// as many are on their way to look as calls are queued; or one is made; or as many are busy as the
// limit allows, each of which looks again.
//
// A call may be launched without anybody who waits for it: then the thread discards it, or whoever
// found that there is no thread. What it refers to must keep itself alive. Who has kept it alive
// may withdraw it, and then it is not discarded.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>

#include <condition_variable>
#include <cstddef>
#include <mutex>

#include <weft/io/blocking.hpp>

namespace weft::inline v0::detail {

class side_pool_core {
public:
    explicit side_pool_core(io::side_pool_options options) : options_(std::move(options)) {}
    side_pool_core(const side_pool_core&) = delete;
    side_pool_core& operator=(const side_pool_core&) = delete;
    ~side_pool_core();

    /// Queues the call, which may begin at once. The error: there is no thread for it, and it will
    /// not run.
    [[nodiscard]] std::error_code submit(side_call& call);
    /// The same for a call with `discard`, by which it may be gone when this returns.
    void launch(side_call& call) noexcept;
    /// For a publish function: false if the call is done.
    [[nodiscard]] bool publish(side_call& call, waiter& me) noexcept;
    /// Nobody waits for it now.
    void forget_caller(side_call& call) noexcept;
    /// True: it has not begun, and will not.
    [[nodiscard]] bool withdraw(side_call& call) noexcept;

    [[nodiscard]] io::side_pool_counters counters() const;
    [[nodiscard]] unsigned limit() const noexcept;
    void set_limit(unsigned limit);
    /// From now on a thread without a call ends.
    void end() noexcept;
    void end_idle() noexcept;

private:
    using lock_type = std::unique_lock<std::mutex>;

    struct side_thread {
        side_pool_core& pool;
        const std::size_t number;
        pthread_t id{};  // written by itself
        std::condition_variable woken_up = {};
        bool woken = false;
        side_thread* next = nullptr;  // in the idle list, or in the list of those that ended
        side_thread* previous = nullptr;
    };

    static void* enter(void* me) noexcept;
    void work(side_thread& me) noexcept;
    [[nodiscard]] side_call* next_call(side_thread& me) noexcept;
    /// False: the time is over.
    [[nodiscard]] bool sleep(lock_type& lock, side_thread& me) noexcept;
    void retire(lock_type& lock, side_thread& me) noexcept;
    void finish(side_call& call) noexcept;
    /// A thread for what was queued: an idle one or a new one.
    void provide_thread(lock_type& lock) noexcept;
    bool wake_idle() noexcept;
    /// Drops the lock. False: none could be made.
    bool start_thread(lock_type& lock) noexcept;
    void fail_all(lock_type& lock) noexcept;
    void wait_until_idle_ended(lock_type& lock) noexcept;
    void push(side_call& call) noexcept;
    void remove(side_call& call) noexcept;
    void leave_idle(side_thread& one) noexcept;

    io::side_pool_options options_;
    mutable std::mutex mutex_;
    // Guarded by mutex_.
    side_call* first_ = nullptr;  // the eldest call that waits for a thread
    side_call* last_ = nullptr;
    side_thread* idle_ = nullptr;   // the one that became idle last is woken first
    side_thread* ended_ = nullptr;  // at most one: whoever ends joins the one before
    io::side_pool_counters counters_;
    bool ending_ = false;
    unsigned enders_ = 0;  // those that wait for idle threads to end
    std::condition_variable changed_;
};

struct side_access {
    /// Launches function() and leaves it alone. It is destroyed on the thread that ran it, or by
    /// whoever found that there is no thread for it.
    template <io::blocking_function F>
    static void launch(io::side_pool& on, F&& function) {
        using call = side_call_of<std::decay_t<F>>;
        auto made = std::make_unique<call>(std::forward<F>(function));
        made->discard = [](side_call& self) noexcept { delete static_cast<call*>(&self); };
        on.core_->launch(*made.release());
    }
    static void launch(io::side_pool& on, side_call& call) noexcept { on.core_->launch(call); }
    /// True: it has not begun, and will not.
    [[nodiscard]] static bool withdraw(io::side_pool& on, side_call& call) noexcept {
        return on.core_->withdraw(call);
    }

    /// For the system's look-ups of names, which may take long: however many do, they keep nothing
    /// else waiting. As shared_side_pool() otherwise.
    [[nodiscard]] static io::side_pool& for_names();
};

}  // namespace weft::inline v0::detail
