// reactor.hpp - the seam between descriptors and the kernel: submit, cancel, poll, wake.
//
// One belongs to each worker or loop that has met I/O. Its thread sleeps in poll(), or looks there
// while it is busy; descriptors are submitted, and cancelled, from any thread. It outlives its
// worker as long as descriptors are registered with it.
//
// poll() only collects what the kernel reports; deliver() wakes those who waited. Between the two
// a worker says that it sleeps no more: otherwise it would be woken by what it wakes.
//
//   wakes it                                      sleeps
//   says `woken`             (RMW, acq_rel)       `awake` to `asleep`  (CAS, acq_rel); fails?
//   was it `asleep`? interrupts the kernel          then it only looks
//                                                 poll; then says `awake`  (RMW, acq_rel)
//
// Both change one word: either the CAS fails, or the waker sees that it sleeps.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <system_error>

#include <weft/base/test_point.hpp>
#include <weft/exec/driver.hpp>
#include <weft/exec/worker.hpp>
#include <weft/io/reactor.hpp>

#include "io/watch.hpp"

namespace weft::inline v0::detail {

class reactor {
public:
    reactor(const worker& owner, io::reactor_kind which) noexcept
        : kind(which), home(&owner.home), counts_(owner.may_close), watches(*this) {}
    reactor(const reactor&) = delete;
    reactor& operator=(const reactor&) = delete;
    virtual ~reactor() = default;

    // The seam.

    /// Reports from now on, under this key, each time that the descriptor becomes ready, and once
    /// if it is. From: any thread. Fails: as epoll_ctl(2) does.
    [[nodiscard]] virtual std::error_code submit(int descriptor, std::uint64_t key) noexcept = 0;
    /// Reports no more, but for what poll() has collected already. From: any thread.
    virtual void cancel(int descriptor, std::uint64_t key) noexcept = 0;
    /// Collects what has become ready, waits for that for so long; nanoseconds::max(): without
    /// limit. Whether there is something to deliver. From: its own thread.
    virtual bool poll(std::chrono::nanoseconds limit) noexcept = 0;
    /// Ends a poll() that waits, or the next one. From: any thread.
    virtual void interrupt() noexcept = 0;
    /// Wakes those for whom something was collected. From: its own thread.
    virtual void deliver() noexcept = 0;
    /// Readable when poll() would not wait.
    [[nodiscard]] virtual int descriptor() const noexcept = 0;

    // Sleeping; see above.

    void wake() noexcept {
        if (state_.exchange(woken, std::memory_order_acq_rel) == asleep) interrupt();
    }
    /// False: it was woken meanwhile.
    [[nodiscard]] bool fall_asleep() noexcept {
        int expected = awake;
        const bool sleeps =
            state_.compare_exchange_strong(expected, asleep, std::memory_order_acq_rel);
        WEFT_TEST_POINT("reactor: asleep");
        return sleeps;
    }
    void wake_up() noexcept { state_.exchange(awake, std::memory_order_acq_rel); }

    // Waiting: for watched.cpp.

    /// Somebody begins (1) or ends (-1) to wait. Counted only on a loop that may be closed: there
    /// all happens in one thread, but for what count_taken_out() counts.
    void count(std::ptrdiff_t change) noexcept {
        if (counts_) waiting_ += change;
    }
    /// Somebody ends to wait by what a fiber or thread did, perhaps one whom another of that loop
    /// awaits.
    /// From: any thread.
    void count_taken_out() noexcept {
        if (counts_) taken_out_.fetch_add(1, std::memory_order_relaxed);
    }
    [[nodiscard]] bool is_awaited() const noexcept {
        return waiting_ != taken_out_.load(std::memory_order_relaxed);
    }

    [[nodiscard]] const executor& where() const noexcept { return *home; }
    /// Its worker has ended: whoever waits again, waits elsewhere.
    void retire() noexcept { retired_.store(true, std::memory_order_release); }
    /// Whether descriptors that wait on this executor are at home here.
    [[nodiscard]] bool serves(const executor& where) const noexcept {
        return home == &where && !retired_.load(std::memory_order_acquire);
    }

    const io::reactor_kind kind;

protected:
    /// One report: {index, generation}; which sides are ready; whether nothing more will be read.
    void tell(std::uint64_t key, bool readable, bool writable, bool ended) noexcept;

    /// For report i of several that are told one after another: what later ones touch is fetched,
    /// first the watch, and when that has come, who waits there. key_at(i) gives a key.
    template <class KeyAt>
    void fetch_ahead(std::size_t i, std::size_t count, KeyAt key_at) noexcept {
        if (i + 2 * fetch_distance < count) fetch_watch(key_at(i + 2 * fetch_distance));
        if (i + fetch_distance < count) fetch_waiters(key_at(i + fetch_distance));
    }

    /// Indexes from here on are no watch's: a reactor's own keys have such.
    static constexpr std::uint32_t no_watch = ~std::uint32_t{0} - 1;

private:
    static constexpr std::size_t fetch_distance = 4;
    [[nodiscard, gnu::always_inline]] inline waiter* tell_side(watch::side& side) noexcept;
    void fetch_watch(std::uint64_t key) noexcept;
    void fetch_waiters(std::uint64_t key) noexcept;

    executor* const home;
    const bool counts_;
    std::ptrdiff_t waiting_ = 0;  // began, less those who ended otherwise than by close()
    std::atomic<std::ptrdiff_t> taken_out_ = 0;
    enum : int { awake, asleep, woken };
    std::atomic<int> state_ = awake;
    std::atomic<bool> retired_ = false;

public:
    watch_table watches;
};

/// Fails: std::system_error.
[[nodiscard]] std::shared_ptr<reactor> make_epoll_reactor(const worker& owner);

/// nullptr: this build or this kernel has none, or refuses it.
[[nodiscard]] std::shared_ptr<reactor> make_io_uring_reactor(const worker& owner);
[[nodiscard]] bool io_uring_works() noexcept;

/// The reactor of the worker that runs the caller, attached now if there is none; nullptr: it runs
/// on no worker.
/// Fails: std::system_error, std::bad_alloc.
[[nodiscard]] const std::shared_ptr<reactor>* reactor_here();

}  // namespace weft::inline v0::detail
