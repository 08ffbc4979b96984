// timer_thread.cpp - see timer_thread.hpp.
//
//   who arms                                  the thread
//   puts its node into the queue              seen = bell                          (acquire)
//   is it the earliest one?                   fires what is due
//     bell + 1 (release), wakes the thread    sleeps while bell == seen, until the earliest
//
// One that is not the earliest need not ring: whoever armed an earlier one rings, or has rung, so
// the thread looks at the queue again at that one's deadline or before, also if that one was
// disarmed meanwhile.
//
// SPDX-License-Identifier: Apache-2.0
#include "exec/timer_thread.hpp"

#include <pthread.h>

#include <csignal>
#include <cstdint>
#include <exception>
#include <thread>

#include <weft/base/assert.hpp>
#include <weft/base/test_point.hpp>

#include "base/futex.hpp"

namespace weft::inline v0::detail {

namespace {

class timer_thread {
public:
    timer_thread() {
        // The program's signals are for its own threads.
        sigset_t all;
        sigset_t before;
        ::sigfillset(&all);
        ::pthread_sigmask(SIG_SETMASK, &all, &before);
        std::thread thread([this] { watch(); });
        ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
        ::pthread_setname_np(thread.native_handle(), "weft-timers");
        thread.detach();
    }

    void arm(timer_node& node, time_point deadline, executor& post_to) noexcept {
        queue_.arm(node, deadline, &post_to);
        WEFT_TEST_POINT("timer_thread: armed");
        if (queue_.earliest() != deadline) return;
        bell_.fetch_add(1, std::memory_order_release);
        futex_wake_one(&bell_);
    }

private:
    [[noreturn]] void watch() noexcept {
        for (;;) {
            const std::uint32_t seen = bell_.load(std::memory_order_acquire);
            queue_.expire(steady_clock_source().now(), [](runnable*) noexcept {
                fail("timer_thread: something came due that is posted nowhere");
            });
            WEFT_TEST_POINT("timer_thread: about to sleep");
            const time_point next = queue_.earliest();
            futex_wait_for(bell_, seen,
                           next == no_deadline ? std::chrono::nanoseconds::max()
                                               : next - steady_clock_source().now());
        }
    }

    timer_queue queue_{true};
    std::atomic<std::uint32_t> bell_ = 0;
};

}  // namespace

void arm_in_timer_thread(timer_node& node, time_point deadline, executor& post_to) noexcept {
    // Never destroyed: it is needed as long as any executor is.
    static timer_thread* const one = [] {
        try {
            return new timer_thread;
        } catch (const std::exception&) {
            fail("wait: a deadline on an executor without timers, and no thread can be had for it");
        }
    }();
    one->arm(node, deadline, post_to);
}

}  // namespace weft::inline v0::detail
