// future_state.cpp - see future_state.hpp for the protocol.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/sync/detail/future_state.hpp>

#include <weft/base/test_point.hpp>
#include <weft/fiber/suspend.hpp>

namespace weft::inline v0::detail {

namespace {

constexpr wait_reason waits{"waits for a future"};
constexpr wait_reason waits_in_destructor{"waits for an async function, in a destructor", false};

}  // namespace

void throw_no_state() { throw std::future_error(std::future_errc::no_state); }

// --- futures

void future_state_base::retrieve() {
    if (retrieved_.exchange(true, std::memory_order_relaxed))
        throw std::future_error(std::future_errc::future_already_retrieved);
    add_future();
}

void future_state_base::add_future() noexcept {
    futures_.fetch_add(1, std::memory_order_relaxed);
    add_reference();
}

void future_state_base::release_future() noexcept {
    if (futures_.fetch_sub(1, std::memory_order_acq_rel) == 1) discard();
    release();
}

wait_outcome future_state_base::wait_until_ready(time_point deadline, const wait_reason& why) {
    if (is_ready()) return wait_outcome::event;
    return weft::wait(
        why, deadline,
        [word = &word_](waiter& me) noexcept {
            const std::uint64_t number = word->enter();
            if (number != ready) word->queue().push_back(me);
            word->leave(number);
            return number != ready;
        },
        [word = &word_](waiter& me) noexcept { word->withdraw(me); });
}

void future_state_base::wait() {
    if (deferred && !is_ready() && try_begin_setting()) return run_deferred();
    if (wait_until_ready(no_deadline, waits) == wait_outcome::cancelled) throw_cancelled();
}

std::future_status future_state_base::wait_until(time_point deadline) {
    if (deferred && word_.load(std::memory_order_acquire) / wait_word::unit == pending)
        return std::future_status::deferred;
    switch (wait_until_ready(deadline, waits)) {
        case wait_outcome::ready:
        case wait_outcome::event:
            return std::future_status::ready;
        case wait_outcome::timed_out:
            return std::future_status::timeout;
        case wait_outcome::cancelled:
            break;
    }
    throw_cancelled();
}

void future_state_base::wait_firmly() noexcept {
    static_cast<void>(wait_until_ready(no_deadline, waits_in_destructor));
}

void future_state_base::on_ready(continuation& what) noexcept {
    const std::uint64_t number = word_.enter();
    if (number != ready) {
        what.next = continuations_;
        continuations_ = &what;
    }
    word_.leave(number);
    if (number == ready) what.run(what);
}

// --- setting

bool future_state_base::try_begin_setting() noexcept {
    const std::uint64_t number = word_.enter();
    word_.leave(number == pending ? static_cast<std::uint64_t>(being_set) : number);
    return number == pending;
}

void future_state_base::begin_setting() {
    if (!try_begin_setting()) throw std::future_error(std::future_errc::promise_already_satisfied);
    WEFT_TEST_POINT("future: being set");
}

void future_state_base::give_up_setting() noexcept {
    static_cast<void>(word_.enter());
    word_.leave(pending);
}

void future_state_base::complete() noexcept {
    woken_list woken;
    static_cast<void>(word_.enter());
    word_.queue().claim_all(woken);
    continuation* called = std::exchange(continuations_, nullptr);
    word_.leave(ready);
    woken.wake();
    while (called != nullptr) {
        continuation& one = *std::exchange(called, called->next);
        one.run(one);
    }
}

void future_state_base::set_exception(std::exception_ptr thrown) {
    begin_setting();
    error = std::move(thrown);
    complete();
}

void future_state_base::abandon() noexcept {
    if (!try_begin_setting()) return;
    error = std::make_exception_ptr(std::future_error(std::future_errc::broken_promise));
    complete();
}

}  // namespace weft::inline v0::detail
