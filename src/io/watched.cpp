// watched.cpp - see watched.hpp: entering, waiting, closing.
//
// A call is tried; if the kernel refuses it for now, the caller is put into the watch (listing) and
// leaves; the reactor finds him there (reactor::tell), and may have made the call already when he
// goes on. Whoever is cancelled takes himself out (delisting); close() takes out both sides.
//
// A long file, for these meet in one word and one watch, and share what is known of both.
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

#include "fiber/checkpoint.hpp"
#include "io/system_call.hpp"

namespace weft::inline v0::detail {

namespace {

// Beside the wait_outcomes: an edge came, and the reactor has made the call.
constexpr long call_made = 256;

constexpr wait_reason reasons[] = {{"waits to read"}, {"waits to write"}};

std::unexpected<std::error_code> closed_error() noexcept {
    return std::unexpected(make_error_code(errc::closed));
}

// Whether it is of kind own, on a loop, and nothing is special about it: no hooks, and it is in no
// actor_context. Then its stack stays in its place while it waits, and nobody else may be where its
// buffer lies.
[[gnu::always_inline]] inline bool goes_straight(const fiber_block& me) noexcept {
    return me.attention.load(std::memory_order_relaxed) == 0 && me.isolated.held == nullptr;
}

// Who makes a call: nullptr, a plain thread.
[[gnu::always_inline]] inline fiber_block* caller() noexcept {
    const fiber_worker* const worker = fiber_worker::here();
    return worker != nullptr ? worker->current : nullptr;
}

[[gnu::noinline]] std::error_code pass_checkpoint() {
    detail::yield_if_due_rarely();
    if (!this_fiber::stop_requested()) [[likely]]
        return {};
    return error_code_of(this_fiber::stop_reason());
}

// One whose calls never have to wait lets others run now and then, and hears of its cancellation.
[[gnu::always_inline]] inline bool may_call(const fiber_block* me, std::error_code& stopped) {
    if (me == nullptr || passes_at_once(*fiber_worker::here(), *me)) [[likely]]
        return true;
    stopped = pass_checkpoint();
    return !stopped;
}

timespec* time_left(time_point deadline, timespec& left) noexcept {
    using namespace std::chrono;
    if (deadline == no_deadline) return nullptr;
    const time_point now = steady_clock_source().now();
    const nanoseconds rest = deadline > now ? deadline - now : nanoseconds::zero();
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
    ~visit() {
        // Being open is a user: while it is, this one is not the last.
        std::uint32_t before = host_.word_.load(std::memory_order_relaxed);
        if ((before & (closed | moved)) != 0 ||
            !host_.word_.compare_exchange_strong(before, before - user, std::memory_order_acq_rel,
                                                 std::memory_order_relaxed)) [[unlikely]]
            host_.leave();
    }
    [[nodiscard]] explicit operator bool() const noexcept { return open_; }

private:
    watched& host_;
    const bool open_;
};

// --- the end

void watched::leave() noexcept {
    if ((word_.load(std::memory_order_relaxed) & moved) != 0) let_former_go();
    std::uint32_t before = word_.load(std::memory_order_relaxed);
    std::uint32_t after = 0;
    bool last = false;
    do {
        last = before / user == 1 && (before & finishing) == 0;
        after = last ? ((before - user) | finishing) & ~moved : before - user;
    } while (!word_.compare_exchange_weak(before, after, std::memory_order_acq_rel,
                                          std::memory_order_relaxed));
    if (last) {
        forget();
        former_.clear();
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

namespace {

// Whoever waits there, if he can be claimed. Under the watch's lock.
waiter* take_out(watch& from, watch::side& side) noexcept {
    if (side.waiting() == nullptr) return nullptr;
    from.home->count_taken_out();
    waiter* const one = side.take_waiting();
    return one->claim() ? one : nullptr;
}

}  // namespace

// With the lock, for whoever closes is not inside: it may be moved meanwhile, and the watch be
// gone.
void watched::wake_all() noexcept {
    waiter* woken[2] = {};
    {
        const std::lock_guard guard(settling_);
        if (watch* const mine = watch_.load(std::memory_order_seq_cst)) {
            WEFT_TEST_POINT("watched: closing, nobody claimed");
            const std::lock_guard also(mine->lock);
            for (std::size_t i = 0; i < 2; ++i) woken[i] = take_out(*mine, mine->sides[i]);
            mine->early = nullptr;
        }
        const std::uint64_t one = 1;
        for (const int each : thread_wakes_)
            if (each >= 0) static_cast<void>(!::write(each, &one, sizeof one));
    }
    for (waiter* const one : woken)
        if (one != nullptr) one->wake();
}

// The kernel tells of no room in a local socket that may not send any more: so who waits for that
// is told here. He looks at the flag under the watch's lock, or at its being set under the other:
// one of the two finds the other.
void watched::end_writing() noexcept {
    const visit inside(*this);
    if (!inside) return;
    waiter* woken = nullptr;
    {
        const std::lock_guard guard(settling_);
        constexpr auto write = io::direction::write;
        writing_ended_.store(true, std::memory_order_relaxed);
        if (watch* const mine = watch_.load(std::memory_order_relaxed)) {
            const std::lock_guard also(mine->lock);
            woken = take_out(*mine, mine->of(write));
        }
        const std::uint64_t one = 1;
        if (const int wakes = thread_wakes_[std::to_underlying(write)]; wakes >= 0)
            static_cast<void>(!::write(wakes, &one, sizeof one));
    }
    if (woken != nullptr) woken->wake();
}

// With nobody inside.
void watched::forget() noexcept {
    if (watch* const mine = watch_.exchange(nullptr, std::memory_order_seq_cst)) unregister(*mine);
}

void watched::unregister(watch& left) noexcept {
    home_->cancel(number_, watch_table::retire(left));
    home_->watches.give_back(left);
    home_.reset();
}

// Under the lock, by one who is inside.
void watched::move_out(watch& left) {
    former_.push_front(home_);
    {
        const std::lock_guard also(left.lock);
        for (const watch::side& one : left.sides)
            WEFT_ASSERT(one.waiting() == nullptr,
                        "descriptor: used on another executor while somebody waits on it");
        watch_.store(nullptr, std::memory_order_seq_cst);  // from here on nobody begins to wait
    }
    unregister(left);
    word_.fetch_or(moved, std::memory_order_acq_rel);
    WEFT_TEST_POINT("watched: moved out");
}

// By one who is inside, and no more looks at a watch. If it is closed, the last does it.
void watched::let_former_go() noexcept {
    std::forward_list<std::shared_ptr<reactor>> gone_by;  // freed without the lock
    const std::lock_guard guard(settling_);
    std::uint32_t before = word_.load(std::memory_order_relaxed);
    while ((before & (closed | moved)) == moved && before / user == 2)
        if (word_.compare_exchange_weak(before, before & ~moved, std::memory_order_acq_rel,
                                        std::memory_order_relaxed)) {
            gone_by.swap(former_);
            return;
        }
}

// --- waiting

namespace {

// Whether it is registered where those who run on this worker wait; a guest's worker asks its host.
[[gnu::always_inline]] inline bool is_at_home(const watch& mine, const worker& here) noexcept {
    return here.reactor != nullptr && here.attachment != nullptr && mine.home->serves(here.home);
}

}  // namespace

[[gnu::always_inline]] inline watch* watched::known_watch() const noexcept {
    watch* const known = watch_.load(std::memory_order_acquire);
    WEFT_TEST_POINT("watched: known, not looked at");
    return known;
}

// Where it is registered, for whoever runs here: now, if this is its first wait on this executor.
//
// Mostly it is registered already, and then no lock is taken (is_at_home()):
//
//   registers it (under the lock)                 waits again
//   its watch knows its reactor, then             watch_  (acquire): what stands in the watch is
//   watch_ is set  (seq_cst)                        seen; its reactor serves this executor? done
//
// The lock would not help: whoever moves it to another executor may do so also after this has
// returned. Either he finds one who waits, and aborts, or the other finds that it was moved, both
// under the lock of the watch; then that one tries again, and comes here.
io::result<watch*> watched::settle() {
    const std::shared_ptr<reactor>* const here = reactor_here();
    if (here == nullptr)
        return std::unexpected(std::make_error_code(std::errc::operation_not_supported));
    const std::lock_guard guard(settling_);
    watch* const mine = watch_.load(std::memory_order_relaxed);
    if (mine != nullptr && home_->serves((*here)->where())) return mine;
    if (mine != nullptr) move_out(*mine);
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
    bool operator()(waiter& me) noexcept { return list(me, nullptr); }

protected:
    [[gnu::always_inline]] bool list(waiter& me, early_call* early) noexcept {
        WEFT_TEST_POINT("watched: at home, not listed");
        const std::lock_guard guard(where_->lock);
        if (host_->watch_.load(std::memory_order_relaxed) != where_ || host_->is_closed())
            return false;
        watch::side& side = where_->of(which_);
        if (std::exchange(side.ready, false)) return false;
        if (host_->has_ended(which_)) return false;
        if (side.ended && ended_ == at_end::go_on) return false;
        if (side.waiting() != nullptr || host_->thread_wakes_[std::to_underlying(which_)] >= 0)
            fail(which_ == io::direction::read
                     ? "descriptor: a second fiber waits to read while one does already"
                     : "descriptor: a second fiber waits to write while one does already");
        side.set_waiting(&me);
        if (early != nullptr) where_->early = early;
        where_->home->count(1);
        return true;
    }

private:
    const watched* host_;
    watch* where_;
    io::direction which_;
    at_end ended_;
};

// The same, with what the reactor is to do for him: of one who waits to read.
class watched::listing_with_call : public listing {
public:
    listing_with_call(const watched& host, watch& where, at_end ended, early_call& early) noexcept
        : listing(host, where, io::direction::read, ended), early_(&early) {}
    bool operator()(waiter& me) noexcept { return list(me, early_); }

private:
    early_call* early_;
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
        if (which_ == io::direction::read) where_->early = nullptr;
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

// To read. `result` is that of the call, if the reactor has made it.
[[gnu::noinline]] long watched::wait_with_call(watch& mine, const attempt& tried, at_end ended,
                                               long& result) {
    early_call early{.tried = &tried, .number = number_};
    delisting withdraw(mine, io::direction::read);
    const wait_outcome outcome =
        or_event(wait_endlessly(reasons[std::to_underlying(io::direction::read)],
                                listing_with_call(*this, mine, ended, early), withdraw));
    if (early.made) result = early.result;
    return early.made ? call_made : std::to_underlying(outcome);
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
    const fiber_worker* const worker = fiber_worker::here();
    if (worker == nullptr || worker->current == nullptr) return wait_in_thread(which, deadline);
    watch* mine = known_watch();
    if (mine == nullptr || !is_at_home(*mine, worker->exec)) [[unlikely]] {
        const place found = settle_or_say();
        if (found.where == nullptr) return found.error;
        mine = found.where;
    }
    if (deadline != no_deadline || !reason.cancellable)
        return wait_until(*mine, which, deadline, reason, ended);
    return wait_in_list(*mine, which, reason, ended);
}

// Under both locks, if there is a watch: fibers look at it under that one's.
void watched::set_thread_wakes(io::direction which, int wakes) noexcept {
    int& place = thread_wakes_[std::to_underlying(which)];
    const std::lock_guard guard(settling_);
    WEFT_ASSERT(wakes < 0 || place < 0, "descriptor: a second thread waits while one does already");
    watch* const mine = watch_.load(std::memory_order_relaxed);
    if (mine == nullptr) {
        place = wakes;
        return;
    }
    const std::lock_guard also(mine->lock);
    WEFT_ASSERT(wakes < 0 || mine->of(which).waiting() == nullptr,
                "descriptor: a thread waits while a fiber does already");
    place = wakes;
}

// A plain thread has no reactor: it sleeps in poll(2), and has a descriptor that close() writes to.
[[gnu::noinline]] long watched::wait_in_thread(io::direction which, time_point deadline) {
    const int wakes = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (wakes < 0) return -errno;
    set_thread_wakes(which, wakes);
    WEFT_TEST_POINT("watched: a thread waits");
    pollfd both[] = {{.fd = number_,
                      .events = static_cast<short>(which == io::direction::read ? POLLIN : POLLOUT),
                      .revents = 0},
                     {.fd = wakes, .events = POLLIN, .revents = 0}};
    long count = 0;
    timespec left{};
    if (!is_closed() && !has_ended(which)) do
            count =
                system_call([&] { return ::ppoll(both, 2, time_left(deadline, left), nullptr); });
        while (count == -EINTR);
    set_thread_wakes(which, -1);
    ::close(wakes);
    if (count < 0) return count;
    const bool is_over = is_closed() || has_ended(which);
    return std::to_underlying(count == 0 && !is_over ? wait_outcome::timed_out
                                                     : wait_outcome::event);
}

[[gnu::noinline]] long watched::is_ready(io::direction which) const noexcept {
    if (has_ended(which)) return 1;
    pollfd one{
        .fd = number_,
        .events = static_cast<short>(which == io::direction::read ? POLLIN | POLLRDHUP : POLLOUT),
        .revents = 0};
    const long count = system_call_again([&] { return ::poll(&one, 1, 0); });
    return (one.revents & POLLNVAL) != 0 ? -EBADF : count;
}

// --- calls

// What a wait_for_edge() means for the call around it, if it is not that an edge came.
[[gnu::noinline]] std::error_code watched::after_wait(long outcome) const noexcept {
    if (outcome < 0) return {static_cast<int>(-outcome), std::system_category()};
    if (is_closed()) return make_error_code(errc::closed);
    return report_of(static_cast<wait_outcome>(outcome)).error();
}

io::result<std::size_t> watched::perform(io::direction which, const attempt& tried) {
    const visit inside(*this);
    if (!inside) [[unlikely]]
        return closed_error();
    const fiber_block* const me = caller();
    if (std::error_code stopped; !may_call(me, stopped)) [[unlikely]]
        return std::unexpected(stopped);
    at_end ended = at_end::wait;
    long result = 0;
    if (tried.full != 0 && emptied_.load(std::memory_order_relaxed) && me != nullptr) {
        ended = at_end::go_on;
        result = -EAGAIN;
    } else {
        // Of a read that says nothing: it may leave some, and use up the edge.
        if (which == io::direction::read && tried.full == 0)
            emptied_.store(false, std::memory_order_relaxed);
        result = tried.call(tried.function, number_);
    }
    while (result < 0) {
        if (result == -EAGAIN || result == -EWOULDBLOCK) {
            WEFT_TEST_POINT("watched: not now");
            watch* const mine = known_watch();
            const fiber_worker* const worker = fiber_worker::here();
            const bool leaves_it = tried.anywhere && which == io::direction::read &&
                                   mine != nullptr && me != nullptr && goes_straight(*me) &&
                                   is_at_home(*mine, worker->exec);
            const long outcome =
                leaves_it
                    ? wait_with_call(*mine, tried, ended, result)
                    : wait_for_edge(which, no_deadline, reasons[std::to_underlying(which)], ended);
            ended = at_end::wait;
            if (outcome == call_made) continue;
            if (outcome != std::to_underlying(wait_outcome::event) || is_closed()) [[unlikely]]
                return std::unexpected(after_wait(outcome));
        } else if (result != -EINTR) {
            return system_error_of(result);
        }
        result = tried.call(tried.function, number_);
    }
    const auto count = static_cast<std::size_t>(result);
    if (tried.full != 0)
        emptied_.store(
            count < tried.full && count != 0 && watch_.load(std::memory_order_relaxed) != nullptr,
            std::memory_order_relaxed);
    return count;
}

io::result<std::size_t> watched::call(const attempt& asked) {
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
    const fiber_block* const me = caller();
    if (std::error_code stopped; !may_call(me, stopped)) [[unlikely]]
        return std::unexpected(stopped);
    bool empty = false;
    if (which == io::direction::read) {
        // One that has passed already is a question, and the edge may be on its way.
        empty = deadline == no_deadline && host.emptied_.load(std::memory_order_relaxed) &&
                me != nullptr;
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
        if (outcome != std::to_underlying(wait_outcome::event) || host.is_closed()) [[unlikely]]
            return std::unexpected(host.after_wait(outcome));
    }
}

bool watched::wait_until_ready(io::direction which, time_point deadline,
                               const wait_reason& reason) {
    const visit inside(*this);
    for (;;) {
        const long ready = is_ready(which);
        if (ready != 0) return ready > 0;
        const long outcome = wait_for_edge(which, deadline, reason);
        if (outcome < 0) return false;
        if (outcome != std::to_underlying(wait_outcome::event)) return true;
    }
}

}  // namespace weft::inline v0::detail
