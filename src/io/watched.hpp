// watched.hpp - a descriptor's number, who is inside, and where it is registered.
//
// One word counts who is inside a call, so that the number is not given back to the kernel, and by
// it to somebody else, under the hands of one who is about to use it:
//
//      31   5  4       3          2           1         0
//     +-------+-------+----------+-----------+---------+--------+
//     | users | moved | finished | finishing | dropped | closed |   being open is a user, too
//     +-------+-------+----------+-----------+---------+--------+
//
//   enters a call                                 closes
//   users + 1  (RMW); closed? leave, "closed"     closed  (RMW); was it open: wake all who wait,
//   ...                                             and leave
//   leaves: users - 1; was it the last, for the first time? `finishing` by the same RMW; give the
//   number back; `finished`
//
// The object that owns it says `dropped`. Whoever's change leaves nothing but the lower four bits
// frees the memory: nobody is inside then, and nobody comes. All are read-modify-writes of one word
// (acq_rel at least).
//
// Closing against one who begins to wait:
//
//   closes                                        begins to wait
//   closed                          (seq_cst)     watch_ is set                         (seq_cst)
//   watch_ set? its lock, claim whoever waits     publish: its lock; closed? do not wait (seq_cst)
//
// A watch is read without the lock by those inside, and goes with its reactor, which nobody else
// may keep any more when its executor has ended. So a reactor that was left stays until nobody is
// inside who can have seen its watch:
//
//   moves it elsewhere (with the lock)            is inside
//   keep the former reactor; watch_ = nullptr     users + 1  (RMW); watch_; look there
//   moved  (RMW)                                  leaves, and it was moved: lock; nobody else is
//                                                   inside? not moved  (RMW); let the former go
//
// Whoever enters after the last of these finds the new watch_. Two who leave at once may both see
// the other inside: then whoever leaves next lets it go, or close().
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <forward_list>
#include <memory>

#include <weft/fiber/suspend.hpp>
#include <weft/io/descriptor.hpp>

#include "base/spin_lock.hpp"
#include "io/reactor.hpp"

namespace weft::inline v0::detail {

class watched {
public:
    watched(int number, bool owned) noexcept : number_(number), owned_(owned) {}
    watched(const watched&) = delete;
    watched& operator=(const watched&) = delete;
    /// For one that lies in another object, with nobody inside.
    ~watched() { forget(); }

    /// By whoever made it with new; it is freed when the last has left.
    void drop() noexcept;
    void close() noexcept;
    /// A write does not wait from now on, nor who waits for one: it fails at once.
    void end_writing() noexcept;
    /// With nobody inside; -1: it was closed.
    [[nodiscard]] int release() noexcept;
    [[nodiscard]] int number() const noexcept { return is_closed() ? -1 : number_; }
    [[nodiscard]] bool is_closed() const noexcept {
        return (word_.load(std::memory_order_seq_cst) & closed) != 0;
    }

    [[nodiscard]] io::result<std::size_t> perform(io::direction which, const attempt& tried);
    /// One that never has to wait, and is not cancelled.
    [[nodiscard]] io::result<std::size_t> call(const attempt& asked);
    friend io::result<void> wait_until_ready(watched* waited, io::direction which,
                                             time_point deadline);
    /// The same, for a private one that nobody closes. False: it cannot be waited for.
    [[nodiscard]] bool wait_until_ready(io::direction which, time_point deadline,
                                        const wait_reason& reason);

private:
    class visit;
    class listing;
    class listing_with_call;
    class delisting;

    void leave() noexcept;
    void wake_all() noexcept;
    void forget() noexcept;
    void unregister(watch& left) noexcept;
    void move_out(watch& left);
    void let_former_go() noexcept;
    /// For those inside, without the lock.
    [[nodiscard]] watch* known_watch() const noexcept;
    [[nodiscard]] io::result<watch*> settle();
    struct place {
        watch* where;
        long error;  // without: minus errno
    };
    [[nodiscard]] place settle_or_say() noexcept;
    /// What is done if the end was seen already: the call is worth a try, unless it was tried.
    enum class at_end : bool { wait, go_on };
    /// A wait_outcome, or minus errno.
    [[nodiscard]] long wait_for_edge(io::direction which, time_point deadline,
                                     const wait_reason& reason, at_end ended = at_end::wait);
    [[nodiscard]] long wait_in_list(watch& mine, io::direction which, const wait_reason& reason,
                                    at_end ended);
    [[nodiscard]] long wait_with_call(watch& mine, const attempt& tried, at_end ended,
                                      long& result);
    [[nodiscard]] long wait_until(watch& mine, io::direction which, time_point deadline,
                                  const wait_reason& reason, at_end ended);
    void set_thread_wakes(io::direction which, int wakes) noexcept;
    [[nodiscard]] long wait_in_thread(io::direction which, time_point deadline);
    [[nodiscard]] std::error_code after_wait(long outcome) const noexcept;
    /// Whether a call in that direction fails at once, whatever the kernel tells of it.
    [[nodiscard]] bool has_ended(io::direction which) const noexcept {
        return which == io::direction::write && writing_ended_.load(std::memory_order_relaxed);
    }
    /// 0, 1, or minus errno.
    [[nodiscard]] long is_ready(io::direction which) const noexcept;

    enum : std::uint32_t {
        closed = 1,
        dropped = 2,
        finishing = 4,
        finished = 8,
        moved = 16,
        user = 32
    };
    static constexpr std::uint32_t gone = closed | dropped | finishing | finished;

    std::atomic<std::uint32_t> word_ = user;
    int number_;
    bool owned_;
    std::atomic<watch*> watch_ = nullptr;      // written under the lock; cleared under its own, too
    std::atomic<bool> emptied_ = false;        // by the last read; of the one who reads (relaxed)
    std::atomic<bool> writing_ended_ = false;  // set under the lock, before who waits is woken
    spin_lock settling_;
    // Guarded by the lock; the last by that of the watch as well, if there is one.
    std::shared_ptr<reactor> home_;
    std::forward_list<std::shared_ptr<reactor>> former_;  // not empty: moved
    int thread_wakes_[2] = {-1, -1};  // what a plain thread that waits sleeps on besides
};

}  // namespace weft::inline v0::detail
