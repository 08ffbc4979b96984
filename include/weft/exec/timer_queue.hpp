// timer_queue.hpp - deadlines of one worker or loop, the earliest first; of equal ones the one that
// was armed first.
//
// A pairing heap through the nodes themselves: arming and disarming allocate nothing, and a node
// that is disarmed is out of the queue at once, so a million deadlines that were armed and disarmed
// leave nothing behind.
//
// The lock is needed because whoever disarms may be on another thread than the queue's owner (a
// fiber that moved). fire() is called with it held: so after disarm() returned false, a fire() that
// was under way is over, and the node may be destroyed.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include <weft/base/clock_source.hpp>
#include <weft/exec/runnable.hpp>

namespace weft::inline v0 {

class executor;
class timer_queue;

/// A deadline, as a member of what waits for it.
class timer_node {
public:
    /// Called when the deadline has passed, once, with the queue's lock held. Returns what is to
    /// run because of it, or nullptr: with the queue's owner, or where arm() was told to.
    using function = runnable* (*)(timer_node&) noexcept;

    explicit timer_node(function fire) noexcept : fire_(fire) {}
    timer_node(const timer_node&) = delete;
    timer_node& operator=(const timer_node&) = delete;

private:
    friend class timer_queue;

    function fire_;
    time_point deadline_{};
    std::uint64_t turn_ = 0;        // among those of the same deadline
    timer_queue* queue_ = nullptr;  // the queue that it was last armed in
    executor* post_to_ = nullptr;
    timer_node* child_ = nullptr;
    timer_node* sibling_ = nullptr;
    timer_node* before_ = nullptr;  // elder sibling, or parent of a first child; itself: the root
};

class timer_queue {
public:
    /// `shared`: whether nodes are disarmed from other threads than the owner's.
    explicit timer_queue(bool shared) noexcept : shared_(shared) {}
    timer_queue(const timer_queue&) = delete;
    timer_queue& operator=(const timer_queue&) = delete;
    ~timer_queue();

    /// The node must not be armed. What it gives is posted to post_to, if that is not nullptr.
    /// From: any thread if shared, else the owner's.
    void arm(timer_node& node, time_point deadline, executor* post_to = nullptr) noexcept;

    /// True: the node was armed and is no more; it will not fire. From: as arm().
    static bool disarm(timer_node& node) noexcept;

    /// Fires everything that is due and hands what is to run to take(runnable*). From: the owner.
    template <class Take>
    void expire(time_point now, Take take) noexcept {
        if (earliest() > now) return;
        runnable* due = collect(now);
        while (due != nullptr) {
            auto* const following = due->next_node;
            take(due);
            due = following;
        }
    }

    /// no_deadline if nothing is armed. From: the owner.
    [[nodiscard]] time_point earliest() const noexcept {
        return time_point(time_point::duration(earliest_.load(std::memory_order_relaxed)));
    }
    /// How many are armed. From: any thread; elsewhere than in the owner it is a guess.
    [[nodiscard]] std::size_t size() const noexcept {
        return size_.load(std::memory_order_relaxed);
    }

private:
    class guard;

    [[nodiscard]] runnable* collect(time_point now) noexcept;
    [[nodiscard]] static bool is_before(const timer_node& a, const timer_node& b) noexcept;
    static timer_node* join(timer_node* a, timer_node* b) noexcept;
    static timer_node* join_siblings(timer_node* first) noexcept;
    void remove(timer_node& node) noexcept;
    void note_earliest() noexcept;

    timer_node* root_ = nullptr;
    std::uint64_t turns_ = 0;
    const bool shared_;
    std::atomic<bool> locked_ = false;
    // For the owner to read without the lock. Written under it.
    std::atomic<time_point::rep> earliest_ = no_deadline.time_since_epoch().count();
    std::atomic<std::size_t> size_ = 0;
};

}  // namespace weft::inline v0
