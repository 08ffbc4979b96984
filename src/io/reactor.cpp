// reactor.cpp - attaching a reactor to a worker, and what it does with a report.
//
// SPDX-License-Identifier: Apache-2.0
#include "io/reactor.hpp"

#include <cstdlib>
#include <mutex>
#include <optional>
#include <string_view>

#include <weft/base/assert.hpp>
#include <weft/base/thread_block.hpp>
#include <weft/fiber/this_fiber.hpp>

#include "exec/timer_thread.hpp"
#include "fiber/fiber_worker.hpp"
#include "io/watched.hpp"

namespace weft::inline v0 {

namespace detail {

namespace {

// Several sources may end the wait at once, or it is being published.
[[gnu::noinline]] bool claim_in_steps(waiter& one) noexcept { return one.claim(); }

}  // namespace

// One side has become ready; under the watch's lock. Whoever is returned is to be woken after it.
waiter* reactor::tell_side(watch::side& side) noexcept {
    if (side.waiting() != nullptr) {
        count(-1);
        waiter* const one = side.take_waiting();
        if (one->claim_at_once() || claim_in_steps(*one)) return one;
    }
    side.ready = true;
    return nullptr;
}

void reactor::tell(std::uint64_t key, bool readable, bool writable, bool ended) noexcept {
    watch& told = watches.at(static_cast<std::uint32_t>(key));
    waiter* reader = nullptr;
    waiter* writer = nullptr;
    early_call* early = nullptr;
    {
        const std::lock_guard guard(told.lock);
        if (told.key() != key) return;  // its descriptor was closed, and another has its place
        if (ended) told.of(io::direction::read).ended = true;
        if (readable) {
            reader = tell_side(told.of(io::direction::read));
            early = std::exchange(told.early, nullptr);
        }
        if (writable) writer = tell_side(told.of(io::direction::write));
    }
    if (reader != nullptr) {
        if (early != nullptr) early->make();
        reader->wake();
    }
    if (writer != nullptr) writer->wake();
}

void reactor::fetch_watch(std::uint64_t key) noexcept {
    const auto index = static_cast<std::uint32_t>(key);
    if (index < no_watch) __builtin_prefetch(&watches.at(index), 1);
}

// Of a fiber the two lines that a wake touches (fiber_block.hpp).
void reactor::fetch_waiters(std::uint64_t key) noexcept {
    const auto index = static_cast<std::uint32_t>(key);
    if (index >= no_watch) return;
    for (const watch::side& side : watches.at(index).sides) {
        const waiter* const waits = side.waiting();
        if (waits == nullptr) continue;
        __builtin_prefetch(waits, 1);
        __builtin_prefetch(reinterpret_cast<const std::byte*>(waits) + 128, 1);
    }
}

namespace {

// What a worker with I/O sleeps in.
class reactor_driver final : public driver {
public:
    explicit reactor_driver(std::shared_ptr<reactor> core) noexcept
        : core_(std::move(core)), alarm_(*core_) {}
    ~reactor_driver() override { core_->retire(); }

    void wait(std::chrono::nanoseconds limit) noexcept override {
        const bool sleeps = core_->fall_asleep();
        if (!sleeps) limit = std::chrono::nanoseconds::zero();
        if (this_fiber::get_id())
            wait_in_fiber(limit);
        else
            static_cast<void>(core_->poll(limit));
        core_->wake_up();
    }
    void wake() noexcept override { core_->wake(); }
    void poll() noexcept override {
        if (core_->poll(std::chrono::nanoseconds::zero())) core_->deliver();
    }
    [[nodiscard]] bool is_awaited() const noexcept override { return core_->is_awaited(); }
    [[nodiscard]] int descriptor() const noexcept override { return core_->descriptor(); }

    [[nodiscard]] const std::shared_ptr<reactor>& core() const noexcept { return core_; }

private:
    // Rings by real time.
    struct alarm final : timer_node {
        explicit alarm(reactor& r) noexcept : timer_node(&fire), rings(r) {}
        static runnable* fire(timer_node& node) noexcept {
            static_cast<alarm&>(node).rings.wake();
            return nullptr;
        }
        reactor& rings;
    };

    // A loop that a fiber of another executor runs: that fiber waits, by its own reactor, until
    // this one has something. Without memory for that, the thread waits.
    void wait_in_fiber(std::chrono::nanoseconds limit) noexcept {
        if (core_->poll(std::chrono::nanoseconds::zero()) || limit.count() == 0) return;
        executor& home = this_fiber::executor();
        bool waited = false;
        if (limit == std::chrono::nanoseconds::max()) {
            waited = wait_until(no_deadline);
        } else if (fiber_worker::here()->looks_at_real_time()) {
            waited = wait_until(deadline_after(home.clock().now(), limit));
        } else {
            arm_in_timer_thread(alarm_, deadline_after(steady_clock_source().now(), limit), home);
            waited = wait_until(no_deadline);
            timer_queue::disarm(alarm_);
        }
        if (!waited) static_cast<void>(core_->poll(limit));
    }

    // False: it cannot be waited for.
    [[nodiscard]] bool wait_until(time_point deadline) noexcept {
        static constexpr wait_reason reason{"runs a loop that is idle", false};
        try {
            if (!own_) own_.emplace(core_->descriptor(), false);
            return own_->wait_until_ready(io::direction::read, deadline, reason);
        } catch (const std::exception&) { return false; }
    }

    std::shared_ptr<reactor> core_;
    std::optional<watched> own_;
    alarm alarm_;
};

io::reactor_kind wanted_by_environment() noexcept {
    const char* const set = std::getenv("WEFT_REACTOR");
    if (set == nullptr || *set == '\0') return io::reactor_kind::none;
    if (std::string_view(set) == "epoll") return io::reactor_kind::epoll;
    if (std::string_view(set) == "io_uring") return io::reactor_kind::io_uring;
    fail("io: WEFT_REACTOR is neither epoll nor io_uring");
}

// What was asked for, if it is to be had; else epoll.
std::shared_ptr<reactor> make_reactor(const worker& owner) {
    auto wanted =
        static_cast<io::reactor_kind>(owner.home.reactor_choice_.load(std::memory_order_relaxed));
    if (wanted == io::reactor_kind::none) wanted = wanted_by_environment();
    if (wanted == io::reactor_kind::io_uring)
        if (auto made = make_io_uring_reactor(owner)) return made;
    return make_epoll_reactor(owner);
}

// A guest, of a user's executor, has none of its own: the one around it looks.
worker* worker_with_reactor() noexcept {
    worker* found = this_thread_block().runs_for;
    while (found != nullptr && found->attachment == nullptr) found = found->outer;
    return found;
}

}  // namespace

const std::shared_ptr<reactor>* reactor_here() {
    worker* const here = worker_with_reactor();
    if (here == nullptr) return nullptr;
    if (here->reactor == nullptr &&
        !here->home.attach(std::make_unique<reactor_driver>(make_reactor(*here))))
        return nullptr;
    return &static_cast<reactor_driver&>(*here->reactor).core();
}

}  // namespace detail

namespace io {

void choose_reactor(executor& where, reactor_kind wanted) noexcept {
    where.reactor_choice_.store(static_cast<unsigned char>(wanted), std::memory_order_relaxed);
}

reactor_kind reactor_in_use() noexcept {
    const detail::worker* const here = detail::worker_with_reactor();
    if (here == nullptr || here->reactor == nullptr) return reactor_kind::none;
    return static_cast<const detail::reactor_driver&>(*here->reactor).core()->kind;
}

bool is_available(reactor_kind kind) noexcept {
    return kind != reactor_kind::io_uring || detail::io_uring_works();
}

std::string_view to_string(reactor_kind kind) noexcept {
    switch (kind) {
        case reactor_kind::none:
            return "none";
        case reactor_kind::epoll:
            return "epoll";
        case reactor_kind::io_uring:
            return "io_uring";
    }
    return "";
}

}  // namespace io
}  // namespace weft::inline v0
