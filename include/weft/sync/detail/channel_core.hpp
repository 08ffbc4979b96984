// channel_core.hpp - a channel without the type of its items.
//
// Items lie in nodes of a list; waiters of either side stand in two more lists. All is guarded by
// one spin lock (biased_lock.hpp), which is held for a few instructions and never over a move of an
// item: that is user code, which may throw or wait. So an item that is not plain bytes changes
// hands in steps (src/sync/channel_core.cpp has them, both sides of each).
//
// channel.hpp puts the type on top; select.hpp waits on several of these at once.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>

#include <weft/base/clock_source.hpp>
#include <weft/fiber/waiter.hpp>
#include <weft/sync/detail/biased_lock.hpp>

namespace weft::inline v0::detail {

class channel_core;
class claimed_waiters;

/// What the core knows of its items.
struct item_type {
    std::size_t size;
    std::size_t alignment;
    /// Its bytes may be copied under the lock: no user code, nothing to destroy.
    bool plain;
    /// Its move does not throw, so one can be put by and brought back.
    bool nothrow;
    /// Constructs one at `to` from the one at `from`, which stays alive.
    void (*move)(void* to, void* from);
    void (*destroy)(void* item) noexcept;
};

/// Where one item lies inside a channel. The item stands behind it.
struct item_node {
    item_node* next = nullptr;
};

/// What whoever claimed a waiter did for it.
enum class verdict : unsigned char {
    none,
    passed,  // its item was taken, or lies in its place
    item,    // to a receiver: a node with an item in it
    room,    // to a sender: a node to put its item in
    closed,
    again,  // the other side's move threw: nothing happened
    ready,  // it need not wait: to be tried again
};

/// Somebody who sends or receives, as a channel sees it. Others touch it during a wait, so it must
/// not lie on the stack of a swapped fiber then. The links, `who`, `what`, `queued` are guarded by
/// the channel's lock; a claimed one belongs to who claimed it until the wake.
struct channel_waiter {
    channel_core* where;
    void* place;  // a sender's item; where a plain item goes to; nullptr: nothing others can reach
    bool sends;
    bool first = false;  // it was in the queue before, and comes back to the head
    bool queued = false;
    verdict what = verdict::none;
    item_node* item = nullptr;
    waiter* who = nullptr;
    /// Of a select: set by the first who takes one of its cases. The others must not even look at
    /// `who`, which in a plain thread ends with the wait; the cases end only when all are unlinked.
    std::atomic<bool>* taken = nullptr;
    channel_waiter* next = nullptr;
    channel_waiter* previous = nullptr;
};

/// First in, first out; anyone may leave.
class channel_waiters {
public:
    [[nodiscard]] bool empty() const noexcept { return first_ == nullptr; }
    void push_back(channel_waiter& one) noexcept {
        one.next = nullptr;
        one.previous = last_;
        (last_ != nullptr ? last_->next : first_) = &one;
        last_ = &one;
    }
    void push_front(channel_waiter& one) noexcept {
        one.next = first_;
        one.previous = nullptr;
        (first_ != nullptr ? first_->previous : last_) = &one;
        first_ = &one;
    }
    void remove(channel_waiter& one) noexcept {
        (one.previous != nullptr ? one.previous->next : first_) = one.next;
        (one.next != nullptr ? one.next->previous : last_) = one.previous;
    }
    /// The first whose wait had not ended otherwise; it is claimed. nullptr: there is none.
    [[nodiscard]] channel_waiter* claim_first() noexcept {
        while (first_ != nullptr) {
            channel_waiter* const one = first_;
            first_ = one->next;
            (first_ != nullptr ? first_->previous : last_) = nullptr;
            one->queued = false;
            if (claim(*one)) return one;
        }
        return nullptr;
    }
    /// The first, if it can be claimed in one step. nullptr: nothing was done.
    [[nodiscard, gnu::always_inline]] channel_waiter* claim_first_at_once() noexcept {
        channel_waiter* const one = first_;
        if (one == nullptr || one->taken != nullptr || !one->who->claim_at_once()) [[unlikely]]
            return nullptr;
        first_ = one->next;
        (first_ != nullptr ? first_->previous : last_) = nullptr;
        one->queued = false;
        return one;
    }

private:
    // relaxed: it decides who comes first, and orders nothing.
    static bool claim(channel_waiter& one) noexcept {
        if (one.taken != nullptr && one.taken->exchange(true, std::memory_order_relaxed))
            return false;
        return one.who->claim();
    }

    channel_waiter* first_ = nullptr;
    channel_waiter* last_ = nullptr;
};

/// Whether to wait, and how long.
struct patience {
    bool waits;
    time_point deadline;
};
inline constexpr patience not_at_all{false, no_deadline};

enum class channel_result : unsigned char {
    done,
    closed,
    would_block,
    timed_out,
    cancelled,
    again,  // inside only
};

/// An item on its way to its receiver: still in its node, or with the sender, who waits.
struct taken_item {
    void* from = nullptr;
    item_node* node = nullptr;
    channel_waiter* sender = nullptr;
};

class alignas(64) channel_core {
public:
    static constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();

    /// Fails: std::bad_alloc.
    channel_core(const item_type& type, std::size_t capacity);
    channel_core(const channel_core&) = delete;
    channel_core& operator=(const channel_core&) = delete;
    /// Aborts: if somebody waits on it.
    ~channel_core();

    // Plain items.
    /// Copies *value. Fails: std::bad_alloc.
    [[nodiscard]] channel_result send_plain(const void* value, patience how);
    /// Copies one to `to`.
    [[nodiscard]] channel_result receive_plain(void* to, patience how);

    // The others.
    /// Moves from *value, or not at all. Fails: as the move does, std::bad_alloc.
    [[nodiscard]] channel_result send_moved(void* value, patience how);
    /// Done means that finish() or put_back() must follow.
    [[nodiscard]] channel_result take(taken_item& taken, patience how);
    /// It was moved from.
    void finish(const taken_item& taken) noexcept;
    /// The move threw: it stays the channel's first, or with its sender.
    void put_back(const taken_item& taken) noexcept;

    void close() noexcept;
    [[nodiscard]] bool is_closed() const noexcept;
    [[nodiscard]] std::size_t size() const noexcept;
    [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }
    [[nodiscard]] const item_type& type() const noexcept { return type_; }

    // For select.

    /// Whether it is worth a try: no means that it could not be done a moment ago.
    [[nodiscard]] bool may_be_ready(bool sends) const noexcept {
        return (can_.load(std::memory_order_relaxed) & (sends ? can_send : can_receive)) != 0;
    }
    /// What it came to, after a wait with a verdict. A receiver's item is in `taken`.
    [[nodiscard]] channel_result conclude(channel_waiter& me, taken_item& taken);
    /// Under the lock: whether a try would do something.
    [[nodiscard]] bool is_ready(const channel_waiter& me) const noexcept {
        if (me.sends) return closed_ || !receivers_.empty() || size_ < capacity_;
        return first_ != nullptr || (capacity_ == 0 && !senders_.empty()) ||
               (closed_ && moving_ == 0);
    }
    void enqueue(channel_waiter& me, waiter& who) noexcept {
        me.who = &who;
        me.queued = true;
        channel_waiters& queue = me.sends ? senders_ : receivers_;
        if (me.first) [[unlikely]]
            queue.push_front(me);
        else
            queue.push_back(me);
    }
    void dequeue(channel_waiter& me) noexcept {
        if (me.queued) (me.sends ? senders_ : receivers_).remove(me);
        me.queued = false;
    }
    // src/sync/channel_lock.hpp
    void lock() const noexcept;
    void unlock() const noexcept;

private:
    // easy: with a free node or an item, nobody to be woken, bytes that one instruction copies.
    enum : std::uint32_t { can_send = 1, can_receive = 2, easy_send = 4, easy_receive = 8 };
    static constexpr std::uint32_t easy = easy_send | easy_receive;

    struct chunk {
        chunk* next;
        std::size_t bytes;
    };

    [[nodiscard]] bool publish(channel_waiter& me, waiter& who) noexcept;
    template <bool sends>
    [[nodiscard]] bool publish_shortly(channel_waiter& me, waiter& who) noexcept;
    void withdraw(channel_waiter& me) noexcept;
    [[nodiscard]] channel_result wait_for(channel_waiter& me, time_point deadline,
                                          taken_item& taken);
    [[nodiscard]] wait_outcome wait_here(channel_waiter& me, time_point deadline);
    template <bool sends>
    [[nodiscard]] wait_outcome wait_shortly(channel_waiter& me, time_point deadline);
    [[nodiscard]] wait_outcome wait_otherwise(channel_waiter& me, time_point deadline);
    [[nodiscard]] channel_result after_wait(channel_waiter& me, wait_outcome ended,
                                            taken_item& taken);
    struct step {
        verdict what;
        waiter* woken;  // to be woken without the lock; or nullptr
    };
    [[nodiscard]] step step_plain(const channel_waiter& me) noexcept;
    [[nodiscard]] step send_step(const void* value) noexcept;
    [[nodiscard]] step receive_step(void* to) noexcept;
    [[nodiscard]] channel_result send_slowly(const void* value, patience how);
    [[nodiscard]] channel_result receive_slowly(void* to, patience how);
    [[nodiscard]] static unsigned char send_waiting(void* core, void* value, std::uint64_t waits,
                                                    std::int64_t deadline);
    [[nodiscard]] static unsigned char receive_waiting(void* core, void* to, std::uint64_t waits,
                                                       std::int64_t deadline);
    [[nodiscard]] channel_result send_otherwise(const void* value, patience how);
    [[nodiscard]] channel_result receive_otherwise(void* to, patience how);
    [[nodiscard]] channel_result send_in_turn(const void* value, patience how);
    [[nodiscard]] channel_result receive_in_turn(void* to, patience how);
    [[nodiscard]] channel_result send_once_more(channel_waiter& me, wait_outcome ended,
                                                patience how);
    [[nodiscard]] waiter* meet(channel_waiters& others, void* to, const void* value) noexcept;
    [[nodiscard]] bool send_easily(const void* value) noexcept;
    [[nodiscard]] bool receive_easily(void* to) noexcept;
    [[nodiscard]] std::uint32_t what_can_be_done() const noexcept;
    [[nodiscard]] channel_result try_send(void* value);
    [[nodiscard]] channel_result try_take(taken_item& taken) noexcept;
    void fill(item_node* node, void* value, channel_waiter* receiver);
    void commit(item_node* node) noexcept;
    void abandon(item_node* node, channel_waiter* receiver) noexcept;

    // With the lock held.
    [[nodiscard]] waiter* hand_to_receiver(item_node* node) noexcept;
    [[nodiscard]] waiter* hand_to_sender() noexcept;
    void tell_if_drained(claimed_waiters& told) noexcept;
    void append(item_node* node) noexcept {
        node->next = nullptr;
        (last_ != nullptr ? last_->next : first_) = node;
        last_ = node;
    }
    [[nodiscard]] item_node* pop() noexcept {
        item_node* const node = first_;
        first_ = node->next;
        if (first_ == nullptr) last_ = nullptr;
        return node;
    }
    [[nodiscard]] item_node* take_free() noexcept {
        item_node* const node = free_;
        free_ = node->next;
        ++size_;
        return node;
    }
    void recycle(item_node* node) noexcept {
        node->next = free_;
        free_ = node;
        --size_;
    }

    void grow();
    void add_chunk(std::size_t count);
    void copy(void* to, const void* from) const noexcept {
        if (item_size_ == 8)
            std::memcpy(to, from, 8);
        else
            std::memcpy(to, from, item_size_);
    }
    // Not by memcpy: clang makes one call of both.
    [[gnu::always_inline]] void copy_easily(void* to, const void* from) const noexcept {
        using eight [[gnu::may_alias, gnu::aligned(1)]] = std::uint64_t;
        using four [[gnu::may_alias, gnu::aligned(1)]] = std::uint32_t;
        if (item_size_ == 8) [[likely]]
            *static_cast<eight*>(to) = *static_cast<const eight*>(from);
        else
            *static_cast<four*>(to) = *static_cast<const four*>(from);
    }
    [[nodiscard]] void* item_in(item_node* node) const noexcept {
        return reinterpret_cast<std::byte*>(node) + item_offset_;
    }

    mutable biased_lock lock_;
    mutable std::atomic<std::uint32_t> can_ = 0;  // written under the lock, elsewhere a hint
    // Guarded by the lock.
    bool closed_ = false;
    const bool meets_;          // items pass from hand to hand, by one instruction
    const std::uint32_t easy_;  // which of these bits there may be
    item_node* first_ = nullptr;
    item_node* last_ = nullptr;
    item_node* free_ = nullptr;
    std::size_t size_ = 0;  // nodes that are not free
    channel_waiters senders_;
    channel_waiters receivers_;
    std::size_t moving_ = 0;  // nodes that are in no list: somebody moves in or out
    std::size_t nodes_ = 0;
    chunk* chunks_ = nullptr;

    const std::size_t capacity_;
    const item_type& type_;
    const std::size_t item_size_;
    const std::size_t item_offset_;
    std::size_t node_size_;
    std::size_t node_alignment_;
};

/// Puts the waiting halves of a swapped fiber on the heap for the time of a wait, with what they
/// point to. Where the move of an item may throw it stays, and others cannot reach it.
class heap_parking {
public:
    /// Fails: std::bad_alloc, and nothing was moved.
    explicit heap_parking(std::span<channel_waiter*> mine);
    heap_parking(const heap_parking&) = delete;
    heap_parking& operator=(const heap_parking&) = delete;
    ~heap_parking();

    /// In the order of `mine`.
    [[nodiscard]] channel_waiter** waiters() noexcept { return parked_; }
    /// After the wait: verdicts and items are back where they belong.
    void bring_back() noexcept;

private:
    void release() noexcept;

    std::span<channel_waiter*> mine_;
    channel_waiter** parked_ = nullptr;
    bool is_back_ = false;
};

}  // namespace weft::inline v0::detail
