// side_pool.cpp - see side_pool.hpp, which has the protocol.
//
// SPDX-License-Identifier: Apache-2.0
#include "io/side_pool.hpp"

#include <unistd.h>

#include <algorithm>
#include <new>
#include <stdexcept>
#include <utility>

#include <weft/base/assert.hpp>
#include <weft/base/test_point.hpp>
#include <weft/base/thread_block.hpp>
#include <weft/exec/worker.hpp>
#include <weft/fiber/suspend.hpp>

namespace weft::inline v0 {

namespace {

constexpr wait_reason waits{"waits for a blocking call"};
constexpr wait_reason waits_firmly{"waits for a blocking call that has begun", false};

io::side_pool_options checked(io::side_pool_options options) {
    if (options.limit == 0) throw std::invalid_argument("weft: side_pool_options::limit is 0");
    if (options.idle < std::chrono::nanoseconds::zero())
        throw std::invalid_argument("weft: side_pool_options::idle is negative");
    return options;
}

}  // namespace

namespace detail {

// --- the fiber's side

std::error_code side_pool_core::submit(side_call& call) {
    lock_type lock(mutex_);
    push(call);
    provide_thread(lock);
    if (!lock.owns_lock()) lock.lock();
    return call.failure;
}

void side_pool_core::launch(side_call& call) noexcept {
    lock_type lock(mutex_);
    push(call);
    provide_thread(lock);
}

bool side_pool_core::publish(side_call& call, waiter& me) noexcept {
    const lock_type lock(mutex_);
    if (call.now == side_call::state::done) return false;
    call.caller = &me;
    return true;
}

void side_pool_core::forget_caller(side_call& call) noexcept {
    const lock_type lock(mutex_);
    call.caller = nullptr;
}

bool side_pool_core::withdraw(side_call& call) noexcept {
    const lock_type lock(mutex_);
    if (call.now != side_call::state::queued) return false;
    remove(call);
    call.now = side_call::state::withdrawn;
    return true;
}

// --- threads come and go

void side_pool_core::provide_thread(lock_type& lock) noexcept {
    if (wake_idle()) return;
    const unsigned on_their_way = counters_.threads - counters_.running;  // each looks at the queue
    if (counters_.queued > on_their_way && counters_.threads < options_.limit) start_thread(lock);
}

bool side_pool_core::wake_idle() noexcept {
    if (idle_ == nullptr) return false;
    side_thread& one = *idle_;
    leave_idle(one);
    one.woken = true;
    one.woken_up.notify_one();
    return true;
}

// The thread is counted before it is made, for it is made without the lock.
bool side_pool_core::start_thread(lock_type& lock) noexcept {
    ++counters_.threads;
    counters_.most = std::max(counters_.most, counters_.threads);
    const std::size_t number = counters_.started++;
    lock.unlock();
    auto* const made = new (std::nothrow) side_thread{*this, number};
    pthread_t unused;
    if (made != nullptr && ::pthread_create(&unused, nullptr, &enter, made) == 0) return true;
    delete made;
    lock.lock();
    --counters_.threads;
    --counters_.started;
    if (counters_.threads == 0)
        fail_all(lock);
    else
        lock.unlock();
    return false;
}

void* side_pool_core::enter(void* argument) noexcept {
    auto& me = *static_cast<side_thread*>(argument);
    me.id = ::pthread_self();
    const std::string name = me.pool.options_.name.substr(0, 10) + "-" + std::to_string(me.number);
    ::pthread_setname_np(me.id, name.substr(0, 15).c_str());
    me.pool.work(me);
    return nullptr;
}

// There is no thread that could ever run them.
void side_pool_core::fail_all(lock_type& lock) noexcept {
    waiter* woken = nullptr;
    side_call* discarded = nullptr;
    while (first_ != nullptr) {
        side_call& call = *first_;
        remove(call);
        call.now = side_call::state::done;
        if (call.discard != nullptr) {
            call.next = discarded;
            discarded = &call;
            continue;
        }
        call.failure = std::make_error_code(std::errc::resource_unavailable_try_again);
        if (call.caller == nullptr || !call.caller->claim()) continue;
        call.caller->next = woken;
        woken = call.caller;
    }
    lock.unlock();
    while (discarded != nullptr) {
        side_call& call = *std::exchange(discarded, discarded->next);
        call.discard(call);
    }
    while (woken != nullptr) {
        waiter* const next = std::exchange(woken->next, nullptr);
        woken->wake();
        woken = next;
    }
}

void side_pool_core::work(side_thread& me) noexcept {
    while (side_call* const call = next_call(me)) {
        call->run(*call);
        WEFT_TEST_POINT("side pool: the call has returned");
        finish(*call);
    }
}

// nullptr: the thread ends, and `me` may be gone.
side_call* side_pool_core::next_call(side_thread& me) noexcept {
    lock_type lock(mutex_);
    for (;;) {
        const bool too_many = counters_.threads > options_.limit;
        if (side_call* const call = too_many ? nullptr : first_) {
            remove(*call);
            call->now = side_call::state::running;
            ++counters_.running;
            if (enders_ != 0) changed_.notify_all();
            return call;
        }
        if (ending_ || enders_ != 0 || too_many || !sleep(lock, me)) {
            retire(lock, me);
            return nullptr;
        }
    }
}

bool side_pool_core::sleep(lock_type& lock, side_thread& me) noexcept {
    me.next = idle_;
    if (idle_ != nullptr) idle_->previous = &me;
    idle_ = &me;
    const auto now = std::chrono::steady_clock::now();
    const auto most = std::chrono::steady_clock::time_point::max() - now;
    const auto until = now + std::min<std::chrono::nanoseconds>(options_.idle, most);
    if (me.woken_up.wait_until(lock, until, [&me] { return me.woken; })) {
        me.woken = false;
        return true;
    }
    leave_idle(me);
    return first_ != nullptr;
}

// Leaves itself to be joined by the next one that ends. After the last call at the exit of the
// program, with something that was still running then, there is no next one.
void side_pool_core::retire(lock_type& lock, side_thread& me) noexcept {
    const bool is_last = ending_ && enders_ == 0;
    side_thread* const before = std::exchange(ended_, is_last ? nullptr : &me);
    --counters_.threads;
    if (first_ != nullptr) wake_idle();  // there were too many, and it was woken for that
    if (enders_ != 0) changed_.notify_all();
    lock.unlock();
    if (is_last) {
        ::pthread_detach(me.id);
        delete &me;
    }
    if (before == nullptr) return;
    ::pthread_join(before->id, nullptr);
    delete before;
}

void side_pool_core::finish(side_call& call) noexcept {
    const auto discard = call.discard;
    waiter* woken = nullptr;
    {
        const lock_type lock(mutex_);
        --counters_.running;
        ++counters_.finished;
        call.now = side_call::state::done;
        if (call.caller != nullptr && call.caller->claim()) woken = call.caller;
    }
    WEFT_TEST_POINT("side pool: claimed, about to wake");
    if (woken != nullptr) woken->wake();
    if (discard != nullptr) discard(call);
}

// --- the end

void side_pool_core::end() noexcept {
    const lock_type lock(mutex_);
    ending_ = true;
}

void side_pool_core::end_idle() noexcept {
    lock_type lock(mutex_);
    wait_until_idle_ended(lock);
}

void side_pool_core::wait_until_idle_ended(lock_type& lock) noexcept {
    ++enders_;
    while (wake_idle()) {}
    changed_.wait(lock, [this] { return counters_.threads <= counters_.running; });
    --enders_;
    side_thread* const last = std::exchange(ended_, nullptr);
    lock.unlock();
    if (last == nullptr) return;
    ::pthread_join(last->id, nullptr);
    delete last;
}

side_pool_core::~side_pool_core() {
    lock_type lock(mutex_);
    WEFT_ASSERT(first_ == nullptr && counters_.running == 0,
                "side_pool: destroyed while somebody waits for a call");
    ending_ = true;
    wait_until_idle_ended(lock);
}

// --- small things

io::side_pool_counters side_pool_core::counters() const {
    const lock_type lock(mutex_);
    return counters_;
}

unsigned side_pool_core::limit() const noexcept {
    const lock_type lock(mutex_);
    return options_.limit;
}

void side_pool_core::set_limit(unsigned limit) {
    lock_type lock(mutex_);
    options_.limit = limit;
    std::size_t missing = counters_.queued;
    while (missing-- != 0 && counters_.threads < options_.limit) {
        if (!start_thread(lock)) return;
        lock.lock();
    }
}

void side_pool_core::push(side_call& call) noexcept {
    call.previous = last_;
    (last_ != nullptr ? last_->next : first_) = &call;
    last_ = &call;
    ++counters_.queued;
}

void side_pool_core::remove(side_call& call) noexcept {
    (call.previous != nullptr ? call.previous->next : first_) = call.next;
    (call.next != nullptr ? call.next->previous : last_) = call.previous;
    call.next = call.previous = nullptr;
    --counters_.queued;
}

void side_pool_core::leave_idle(side_thread& one) noexcept {
    (one.previous != nullptr ? one.previous->next : idle_) = one.next;
    if (one.next != nullptr) one.next->previous = one.previous;
    one.next = one.previous = nullptr;
}

}  // namespace detail

namespace io {

// --- side_pool

side_pool::side_pool(side_pool_options options)
    : core_(std::make_unique<detail::side_pool_core>(checked(std::move(options)))) {}
side_pool::~side_pool() = default;

side_pool_counters side_pool::counters() const { return core_->counters(); }
unsigned side_pool::limit() const noexcept { return core_->limit(); }
void side_pool::set_limit(unsigned limit) {
    if (limit == 0) throw std::invalid_argument("weft: side_pool::set_limit: 0");
    core_->set_limit(limit);
}
void side_pool::end_idle() noexcept { core_->end_idle(); }

std::error_code side_pool::perform(detail::side_call& call) {
    if (this_fiber::stop_requested()) return error_code_of(this_fiber::stop_reason());
    detail::side_pool_core* const core = core_.get();
    detail::side_call* const mine = &call;
    if (const std::error_code error = core->submit(call)) return error;
    const detail::awaits_others posts(detail::worker_of_this_thread());
    const auto publish = [core, mine](waiter& me) noexcept { return core->publish(*mine, me); };
    const wait_outcome outcome =
        weft::wait(waits, no_deadline, publish,
                   [core, mine](waiter&) noexcept { core->forget_caller(*mine); });
    if (outcome == wait_outcome::cancelled) {
        WEFT_TEST_POINT("side pool: about to withdraw");
        if (core->withdraw(call)) return error_code_of(this_fiber::stop_reason());
        static_cast<void>(weft::wait(waits_firmly, no_deadline, publish));
    }
    return call.failure;
}

namespace {

// At the exit of the program. Not in a child that was forked off and has none of the threads.
class last_call {
public:
    explicit last_call(detail::side_pool_core& core) noexcept : core_(core), process_(::getpid()) {}
    last_call(const last_call&) = delete;
    last_call& operator=(const last_call&) = delete;
    ~last_call() {
        if (::getpid() != process_) return;
        core_.end();
        core_.end_idle();
    }

private:
    detail::side_pool_core& core_;
    const pid_t process_;
};

}  // namespace

side_pool& shared_side_pool() {
    static auto* const pool = new side_pool;
    static const last_call at_exit(*pool->core_);
    return *pool;
}

side_pool& file_side_pool() {
    static auto* const pool = new side_pool({.name = "weft-files"});
    static const last_call at_exit(*pool->core_);
    return *pool;
}

}  // namespace io

namespace detail {

io::side_pool& side_access::for_names() {
    static auto* const pool = new io::side_pool({.limit = 8, .name = "weft-names"});
    static const io::last_call at_exit(*pool->core_);
    return *pool;
}

}  // namespace detail
}  // namespace weft::inline v0
