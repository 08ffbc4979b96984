// timer_queue.cpp - see timer_queue.hpp.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/exec/timer_queue.hpp>

#include <sched.h>

#include <utility>

#include <weft/base/assert.hpp>
#include <weft/base/test_point.hpp>
#include <weft/exec/executor.hpp>

namespace weft::inline v0 {

// Held for some tens of nanoseconds, hardly ever contended.
class timer_queue::guard {
public:
    explicit guard(timer_queue& queue) noexcept : queue_(queue) { lock(); }
    guard(const guard&) = delete;
    guard& operator=(const guard&) = delete;
    ~guard() { unlock(); }

    void lock() noexcept {
        if (!queue_.shared_) return;
        while (queue_.locked_.exchange(true, std::memory_order_acquire))
            while (queue_.locked_.load(std::memory_order_relaxed)) ::sched_yield();
    }
    void unlock() noexcept {
        if (queue_.shared_) queue_.locked_.store(false, std::memory_order_release);
    }

private:
    timer_queue& queue_;
};

timer_queue::~timer_queue() {
    WEFT_ASSERT(root_ == nullptr, "timer_queue: destroyed while a timer is armed");
}

void timer_queue::arm(timer_node& node, time_point deadline, executor* post_to) noexcept {
    const guard lock(*this);
    WEFT_CHECK(node.before_ == nullptr, "timer_node: armed twice");
    node.queue_ = this;
    node.deadline_ = deadline;
    node.turn_ = turns_++;
    node.post_to_ = post_to;
    node.child_ = node.sibling_ = nullptr;
    root_ = root_ == nullptr ? &node : join(root_, &node);
    root_->before_ = root_;
    note_earliest();
    size_.store(size_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

bool timer_queue::disarm(timer_node& node) noexcept {
    if (node.queue_ == nullptr) return false;
    timer_queue& queue = *node.queue_;
    WEFT_TEST_POINT("timer_queue: about to disarm");
    const guard lock(queue);
    if (node.before_ == nullptr) return false;
    queue.remove(node);
    queue.note_earliest();
    return true;
}

// In the order of their deadlines, linked by next_node. What is posted is posted without the lock:
// that is somebody else's code.
runnable* timer_queue::collect(time_point now) noexcept {
    guard lock(*this);
    runnable* first = nullptr;
    runnable** end = &first;
    while (root_ != nullptr && root_->deadline_ <= now) {
        timer_node& due = *root_;
        remove(due);
        executor* const post_to = due.post_to_;
        runnable* const r = due.fire_(due);
        if (r == nullptr) continue;
        if (post_to != nullptr) {
            lock.unlock();
            post_to->post(r);
            lock.lock();
            continue;
        }
        r->next_node = nullptr;
        *end = r;
        end = &r->next_node;
    }
    note_earliest();
    return first;
}

void timer_queue::note_earliest() noexcept {
    const time_point earliest = root_ != nullptr ? root_->deadline_ : no_deadline;
    earliest_.store(earliest.time_since_epoch().count(), std::memory_order_relaxed);
}

// --- the heap

// A heap alone keeps no order among equal deadlines.
bool timer_queue::is_before(const timer_node& a, const timer_node& b) noexcept {
    return a.deadline_ != b.deadline_ ? a.deadline_ < b.deadline_ : a.turn_ < b.turn_;
}

// The one that fires first becomes the parent.
timer_node* timer_queue::join(timer_node* a, timer_node* b) noexcept {
    if (is_before(*b, *a)) std::swap(a, b);
    b->sibling_ = a->child_;
    if (b->sibling_ != nullptr) b->sibling_->before_ = b;
    b->before_ = a;
    a->child_ = b;
    return a;
}

// Two passes: pairs from left to right, then all of them from right to left.
timer_node* timer_queue::join_siblings(timer_node* first) noexcept {
    timer_node* pairs = nullptr;  // linked by sibling_, the last pair first
    while (first != nullptr) {
        timer_node* const a = first;
        timer_node* const b = a->sibling_;
        first = b != nullptr ? b->sibling_ : nullptr;
        timer_node* const pair = b != nullptr ? join(a, b) : a;
        pair->sibling_ = pairs;
        pairs = pair;
    }
    timer_node* whole = pairs;
    if (whole == nullptr) return nullptr;
    pairs = whole->sibling_;
    while (pairs != nullptr) {
        timer_node* const following = pairs->sibling_;
        whole = join(pairs, whole);
        pairs = following;
    }
    whole->sibling_ = nullptr;
    return whole;
}

void timer_queue::remove(timer_node& node) noexcept {
    timer_node* const below = join_siblings(node.child_);
    if (root_ == &node) {
        root_ = below;
    } else {
        if (node.before_->child_ == &node)
            node.before_->child_ = node.sibling_;
        else
            node.before_->sibling_ = node.sibling_;
        if (node.sibling_ != nullptr) node.sibling_->before_ = node.before_;
        if (below != nullptr) root_ = join(root_, below);
    }
    if (root_ != nullptr) {
        root_->before_ = root_;
        root_->sibling_ = nullptr;
    }
    node.before_ = node.child_ = node.sibling_ = nullptr;
    size_.store(size_.load(std::memory_order_relaxed) - 1, std::memory_order_relaxed);
}

}  // namespace weft::inline v0
