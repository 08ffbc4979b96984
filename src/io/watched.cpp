// watched.cpp - see watched.hpp: entering, waiting, closing.
//
// SPDX-License-Identifier: Apache-2.0
#include "io/watched.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <new>

#include <weft/base/assert.hpp>
#include <weft/base/test_point.hpp>
#include <weft/fiber/cancel.hpp>
#include <weft/fiber/this_fiber.hpp>
#include <weft/sync/detail/deadline.hpp>

#include "io/system_call.hpp"

namespace weft::inline v0::detail {

namespace {

constexpr wait_reason reasons[] = {{"waits to read"}, {"waits to write"}};

std::unexpected<std::error_code> closed_error() noexcept {
    return std::unexpected(make_error_code(errc::closed));
}

// One whose calls never have to wait lets others run now and then, and hears of its cancellation.
std::error_code before_call() {
    if (!this_fiber::get_id()) return {};
    detail::yield_if_due_rarely();
    if (!this_fiber::stop_requested()) [[likely]]
        return {};
    return error_code_of(this_fiber::stop_reason());
}

timespec* time_left(time_point deadline, timespec& left) noexcept {
    using namespace std::chrono;
    if (deadline == no_deadline) return nullptr;
    const nanoseconds rest = std::max<nanoseconds>(deadline - steady_clock_source().now(), {});
    left = {.tv_sec = std::min<time_t>(duration_cast<seconds>(rest).count(), 1'000'000),
            .tv_nsec = (rest % seconds(1)).count()};
    return &left;
}

}  // namespace

// Inside while it lives, unless it was closed already.
class watched::visit {
public:
    explicit visit(watched& host) noexcept
        : host_(host),
          open_((host.word_.fetch_add(user, std::memory_order_seq_cst) & closed) == 0) {}
    visit(const visit&) = delete;
    visit& operator=(const visit&) = delete;
    ~visit() { host_.leave(); }
    [[nodiscard]] explicit operator bool() const noexcept { return open_; }

private:
    watched& host_;
    const bool open_;
};

// --- the end

void watched::leave() noexcept {
    std::uint32_t before = word_.load(std::memory_order_relaxed);
    std::uint32_t after = 0;
    bool last = false;
    do {
        last = before / user == 1 && (before & finishing) == 0;
        after = last ? (before - user) | finishing : before - user;
    } while (!word_.compare_exchange_weak(before, after, std::memory_order_acq_rel,
                                          std::memory_order_relaxed));
    if (last) {
        forget();
        if (owned_) ::close(number_);
        WEFT_TEST_POINT("watched: given back, not finished");
        after = word_.fetch_or(finished, std::memory_order_acq_rel) | finished;
    }
    if (after == gone) delete this;
}

void watched::close() noexcept {
    if ((word_.fetch_or(closed, std::memory_order_seq_cst) & closed) != 0) return;
    WEFT_TEST_POINT("watched: closed, nobody woken");
    wake_all();
    leave();
}

void watched::drop() noexcept {
    close();
    if ((word_.fetch_or(dropped, std::memory_order_acq_rel) | dropped) == gone) delete this;
}

int watched::release() noexcept {
    if (is_closed()) return -1;
    owned_ = false;
    close();
    return number_;
}

void watched::wake_all() noexcept {
    waiter* woken[2] = {};
    if (watch* const mine = watch_.load(std::memory_order_seq_cst)) {
        const std::lock_guard guard(mine->lock);
        for (std::size_t i = 0; i < 2; ++i) {
            watch::side& side = mine->sides[i];
            if (side.waiting() == nullptr) continue;
            mine->home->count(-1);
            waiter* const one = side.take_waiting();
            if (one->claim()) woken[i] = one;
        }
    }
    for (waiter* const one : woken)
        if (one != nullptr) one->wake();
    const std::lock_guard guard(settling_);
    const std::uint64_t one = 1;
    for (const int each : thread_wakes_)
        if (each >= 0) static_cast<void>(!::write(each, &one, sizeof one));
}

// With nobody inside, or under the lock and with nobody waiting.
void watched::forget() noexcept {
    watch* const mine = watch_.exchange(nullptr, std::memory_order_seq_cst);
    if (mine == nullptr) return;
    home_->cancel(number_, watch_table::retire(*mine));
    home_->watches.give_back(*mine);
    home_.reset();
}

// --- waiting

// Where it is registered, for whoever runs here: now, if this is its first wait on this executor.
//
// Mostly it is registered already, and then no lock is taken:
//
//   registers it (under the lock)                 waits again
//   its watch knows its reactor, then             watch_  (acquire): what stands in the watch is
//   watch_ is set  (seq_cst)                        seen; its reactor serves this executor? done
//
// The lock would not help: whoever moves it to another executor meanwhile aborts, or finds nobody
// who waits, and may do so also after this has returned.
io::result<watch*> watched::settle() {
    const std::shared_ptr<reactor>* const here = reactor_here();
    if (here == nullptr)
        return std::unexpected(std::make_error_code(std::errc::operation_not_supported));
    watch* mine = watch_.load(std::memory_order_acquire);
    if (mine != nullptr && mine->home->serves((*here)->where())) [[likely]]
        return mine;
    const std::lock_guard guard(settling_);
    mine = watch_.load(std::memory_order_relaxed);
    if (mine != nullptr && home_->serves((*here)->where())) return mine;
    if (mine != nullptr) {
        {
            const std::lock_guard also(mine->lock);
            for (const watch::side& one : mine->sides)
                WEFT_ASSERT(one.waiting() == nullptr,
                            "descriptor: used on another executor while somebody waits on it");
        }
        forget();
    }
    watch& fresh = (*here)->watches.take();
    if (const std::error_code refused = (*here)->submit(number_, fresh.key())) {
        static_cast<void>(watch_table::retire(fresh));
        (*here)->watches.give_back(fresh);
        return std::unexpected(refused);
    }
    home_ = *here;
    watch_.store(&fresh, std::memory_order_seq_cst);
    return &fresh;
}

// Not inlined, as all that is over before the fiber leaves: what waits has few and small frames,
// for a swapped fiber keeps them.
[[gnu::noinline]] watched::place watched::settle_or_say() noexcept {
    try {
        const io::result<watch*> found = settle();
        if (found) return {*found, 0};
        return {nullptr, -found.error().value()};
    } catch (const std::bad_alloc&) {
        return {nullptr, -ENOMEM};
    } catch (const std::system_error& refused) { return {nullptr, -refused.code().value()}; }
}

// Puts the one who waits where the reactor finds him.
class watched::listing {
public:
    listing(const watched& host, watch& where, io::direction which, at_end ended) noexcept
        : host_(&host), where_(&where), which_(which), ended_(ended) {}
    bool operator()(waiter& me) noexcept {
        const std::lock_guard guard(where_->lock);
        if (host_->is_closed()) return false;
        watch::side& side = where_->of(which_);
        if (std::exchange(side.ready, false)) return false;
        if (side.ended && ended_ == at_end::go_on) return false;
        if (side.waiting() != nullptr)
            fail(which_ == io::direction::read
                     ? "descriptor: a second fiber waits to read while one does already"
                     : "descriptor: a second fiber waits to write while one does already");
        side.set_waiting(&me);
        where_->home->count(1);
        return true;
    }

private:
    const watched* host_;
    watch* where_;
    io::direction which_;
    at_end ended_;
};

// Takes him out again.
class watched::delisting {
public:
    delisting(watch& where, io::direction which) noexcept : where_(&where), which_(which) {}
    void operator()(waiter& me) noexcept {
        const std::lock_guard guard(where_->lock);
        watch::side& side = where_->of(which_);
        if (side.waiting() != &me) return;
        side.set_waiting(nullptr);
        where_->home->count(-1);
    }

private:
    watch* where_;
    io::direction which_;
};

[[gnu::noinline]] long watched::wait_in_list(watch& mine, io::direction which,
                                             const wait_reason& reason, at_end ended) {
    delisting withdraw(mine, which);
    return std::to_underlying(
        or_event(wait_endlessly(reason, listing(*this, mine, which, ended), withdraw)));
}

// With a deadline, or for a reason that is not cancellable.
[[gnu::noinline]] long watched::wait_until(watch& mine, io::direction which, time_point deadline,
                                           const wait_reason& reason, at_end ended) {
    return std::to_underlying(
        weft::wait(reason, deadline, listing(*this, mine, which, ended), delisting(mine, which)));
}

// What it calls last takes its frame.
long watched::wait_for_edge(io::direction which, time_point deadline, const wait_reason& reason,
                            at_end ended) {
    if (!this_fiber::get_id()) return wait_in_thread(which, deadline);
    const place found = settle_or_say();
    if (found.where == nullptr) return found.error;
    if (deadline != no_deadline || !reason.cancellable)
        return wait_until(*found.where, which, deadline, reason, ended);
    return wait_in_list(*found.where, which, reason, ended);
}

// A plain thread has no reactor: it sleeps in poll(2), and has a descriptor that close() writes to.
[[gnu::noinline]] long watched::wait_in_thread(io::direction which, time_point deadline) {
    const int wakes = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (wakes < 0) return -errno;
    int& place = thread_wakes_[std::to_underlying(which)];
    {
        const std::lock_guard guard(settling_);
        WEFT_ASSERT(place < 0, "descriptor: a second thread waits while one does already");
        place = wakes;
    }
    pollfd both[] = {{.fd = number_,
                      .events = static_cast<short>(which == io::direction::read ? POLLIN : POLLOUT),
                      .revents = 0},
                     {.fd = wakes, .events = POLLIN, .revents = 0}};
    long count = 0;
    timespec left{};
    if (!is_closed()) do
            count =
                system_call([&] { return ::ppoll(both, 2, time_left(deadline, left), nullptr); });
        while (count == -EINTR);
    {
        const std::lock_guard guard(settling_);
        place = -1;
    }
    ::close(wakes);
    if (count < 0) return count;
    return std::to_underlying(count == 0 && !is_closed() ? wait_outcome::timed_out
                                                         : wait_outcome::event);
}

[[gnu::noinline]] long watched::is_ready(io::direction which) const noexcept {
    pollfd one{
        .fd = number_,
        .events = static_cast<short>(which == io::direction::read ? POLLIN | POLLRDHUP : POLLOUT),
        .revents = 0};
    const long count = system_call_again([&] { return ::poll(&one, 1, 0); });
    return (one.revents & POLLNVAL) != 0 ? -EBADF : count;
}

// --- calls

// What a wait_for_edge() that came back means for the call around it; none: it goes on.
[[gnu::noinline]] std::error_code watched::after_wait(long outcome) const noexcept {
    if (outcome < 0) return {static_cast<int>(-outcome), std::system_category()};
    if (is_closed()) return make_error_code(errc::closed);
    if (outcome == std::to_underlying(wait_outcome::event)) return {};
    return report_of(static_cast<wait_outcome>(outcome)).error();
}

io::result<std::size_t> watched::perform(io::direction which, attempt tried) {
    const visit inside(*this);
    if (!inside) return closed_error();
    if (const std::error_code stopped = before_call()) return std::unexpected(stopped);
    if (which == io::direction::read && tried.full == 0)  // it may leave some, and use up the edge
        emptied_.store(false, std::memory_order_relaxed);
    bool empty =
        tried.full != 0 && emptied_.load(std::memory_order_relaxed) && bool(this_fiber::get_id());
    for (;;) {
        const long result = empty ? -EAGAIN : tried.call(tried.function, number_);
        if (result >= 0) {
            const auto count = static_cast<std::size_t>(result);
            if (tried.full != 0)
                emptied_.store(count < tried.full && count != 0 &&
                                   watch_.load(std::memory_order_relaxed) != nullptr,
                               std::memory_order_relaxed);
            return count;
        }
        if (result == -EINTR) continue;
        if (result != -EAGAIN && result != -EWOULDBLOCK) return system_error_of(result);
        WEFT_TEST_POINT("watched: not now");
        const long outcome = wait_for_edge(which, no_deadline, reasons[std::to_underlying(which)],
                                           empty ? at_end::go_on : at_end::wait);
        empty = false;
        if (const std::error_code otherwise = after_wait(outcome))
            return std::unexpected(otherwise);
    }
}

io::result<std::size_t> watched::call(attempt asked) {
    const visit inside(*this);
    if (!inside) return closed_error();
    long result = -EINTR;
    while (result == -EINTR) result = asked.call(asked.function, number_);
    if (result < 0) return system_error_of(result);
    return static_cast<std::size_t>(result);
}

io::result<void> wait_until_ready(watched* waited, io::direction which, time_point deadline) {
    if (waited == nullptr)
        return std::unexpected(std::make_error_code(std::errc::bad_file_descriptor));
    watched& host = *waited;
    const watched::visit inside(host);
    if (!inside) return closed_error();
    if (const std::error_code stopped = before_call()) return std::unexpected(stopped);
    bool empty = false;
    if (which == io::direction::read) {
        // One that has passed already is a question, and the edge may be on its way.
        empty = deadline == no_deadline && host.emptied_.load(std::memory_order_relaxed) &&
                bool(this_fiber::get_id());
        // The edge is used up here: the read that follows has to try.
        host.emptied_.store(false, std::memory_order_relaxed);
    }
    for (;;) {
        if (!empty) {
            const long ready = host.is_ready(which);
            if (ready > 0) return {};
            if (ready < 0) return system_error_of(ready);
        }
        const long outcome =
            host.wait_for_edge(which, deadline, reasons[std::to_underlying(which)],
                               empty ? watched::at_end::go_on : watched::at_end::wait);
        empty = false;
        if (const std::error_code otherwise = host.after_wait(outcome))
            return std::unexpected(otherwise);
    }
}

bool watched::wait_until_ready(io::direction which, time_point deadline,
                               const wait_reason& reason) {
    for (;;) {
        const long ready = is_ready(which);
        if (ready != 0) return ready > 0;
        const long outcome = wait_for_edge(which, deadline, reason);
        if (outcome < 0) return false;
        if (outcome != std::to_underlying(wait_outcome::event)) return true;
    }
}

}  // namespace weft::inline v0::detail
