// steal_queue_test.cpp - a worker's ring under an owner and thieves: every item once, in order.
//
// The rings are small and their counters begin just below 2^32, so slots are used again and the
// counters wrap within a run. Whatever is taken is noted in the same step as the CAS that takes it,
// so it must come in the order in which it was pushed, whoever takes it.
//
// SPDX-License-Identifier: Apache-2.0
#include "exec/steal_queue.hpp"

#include <array>
#include <atomic>

#include "model_atomic.hpp"
#include "model_test.hpp"

using namespace weft_model;

namespace {

template <std::uint32_t Capacity>
using queue_of = weft::detail::steal_queue<const int, Capacity, model_atomic>;

// What all scenarios share: items 0, 1, 2... go in, and must come out so.
template <class Queue>
struct ring_scenario : scenario {
    static constexpr std::array<int, 8> items{0, 1, 2, 3, 4, 5, 6, 7};
    using loot = std::array<const int*, Queue::capacity>;
    Queue queue{0xffff'fffeU};
    int pushed = 0;
    int taken = 0;

    bool push() {
        if (!queue.push(&items[static_cast<std::size_t>(pushed)], std::memory_order_release))
            return false;
        ++pushed;
        return true;
    }
    void note(const int* item) { check(item == &items[static_cast<std::size_t>(taken++)], wrong); }
    bool pop() {
        const int* const item = queue.pop();
        if (item != nullptr) note(item);
        return item != nullptr;
    }
    void note(const loot& into, std::uint32_t count) {
        for (std::uint32_t i = 0; i < count; ++i) note(into[i]);
    }
    void steal() {
        loot into{};
        note(into, queue.steal(into));
    }
    void at_end() override {
        check(queue.size() == static_cast<std::uint32_t>(pushed - taken), "the size is wrong");
        while (pop()) {}
        check(taken == pushed, "an item is lost");
    }
    static constexpr const char* wrong = "an item is lost, or taken twice, or out of order";
};

// Slots are written again while a thief may have read them already.
template <class Queue>
struct one_thief : ring_scenario<Queue> {
    void act(unsigned actor) override {
        if (actor == 1) {
            this->steal();
            this->steal();
            return;
        }
        this->push();
        this->push();
        this->pop();
        this->push();
        this->pop();
        this->push();
        this->push();
        this->pop();
    }
};

template <class Queue>
struct two_thieves : ring_scenario<Queue> {
    void act(unsigned actor) override {
        if (actor != 0) return this->steal();
        for (int i = 0; i < 3; ++i) this->push();
        this->pop();
        this->push();
        this->pop();
    }
};

// What a worker does whose ring is full: some of it goes elsewhere, and then there is room.
template <class Queue>
struct overflows : ring_scenario<Queue> {
    void act(unsigned actor) override {
        if (actor != 0) return this->steal();
        for (int i = 0; i < 4; ++i) {
            if (this->push()) continue;
            typename ring_scenario<Queue>::loot into{};
            this->note(into, this->queue.pop_some(into, 1));
            check(this->push(), "no room after some were taken out");
        }
    }
};

// Emptiness may be asked by anybody; it is never said of a queue that holds something throughout.
template <class Queue>
struct is_never_empty : ring_scenario<Queue> {
    is_never_empty() { this->push(); }
    void act(unsigned actor) override {
        if (actor == 1) return check(!this->queue.empty(), "empty, while it held something");
        for (int i = 0; i < 3; ++i) {
            this->push();
            this->pop();
        }
    }
};

// The owner takes back what it pushed last, while thieves take half from the other end.
template <class Queue>
struct takes_back : scenario {
    static constexpr std::array<int, 4> items{0, 1, 2, 3};
    Queue queue{0xffff'fffeU};
    std::array<int, 4> times{};

    void note(const int* item) { ++times[static_cast<std::size_t>(*item)]; }
    void act(unsigned actor) override {
        if (actor != 0) {
            std::array<const int*, Queue::capacity> into{};
            const std::uint32_t count = queue.steal(into);
            for (std::uint32_t i = 0; i < count; ++i) note(into[i]);
            return;
        }
        for (const int first : {0, 2}) {
            for (int i = first; i < first + 2; ++i)
                check(queue.push(&items[static_cast<std::size_t>(i)], std::memory_order_release),
                      "no room");
            if (const int* const last = queue.take_back()) note(last);
            if (const int* const last = queue.take_back()) note(last);
        }
    }
    void at_end() override {
        while (const int* const left = queue.pop()) note(left);
        for (const int count : times) check(count == 1, "an item is lost, or taken twice");
    }
};

// --- mutants

// A thief that read the longer tail is not stopped.
struct takes_back_without_a_mark : queue_of<4> {
    using queue_of<4>::queue_of;
    const int* take_back() {
        const std::uint32_t tail = tail_.load();
        if (place(head_.load()) == tail) return nullptr;
        const int* const item = slot(tail - 1).load();
        tail_.store(tail - 1);
        if (place(head_.load()) != tail) return item;
        tail_.store(tail);
        return nullptr;
    }
};

// A thief that comes after the mark still sees it.
struct takes_back_and_shortens_later : queue_of<4> {
    using queue_of<4>::queue_of;
    const int* take_back() {
        const std::uint32_t tail = tail_.load();
        std::uint64_t head = head_.load();
        const int* const item = slot(tail - 1).load();
        while (place(head) != tail)
            if (head_.compare_exchange_strong(head, head + one_taken_back)) {
                tail_.store(tail - 1);
                return item;
            }
        return nullptr;
    }
};

struct publishes_before_it_writes : queue_of<2> {
    using queue_of<2>::queue_of;
    bool push(const int* item, std::memory_order) {
        const std::uint32_t tail = tail_.load();
        if (tail - place(head_.load()) == capacity) return false;
        tail_.store(tail + 1);
        slot(tail).store(item);
        return true;
    }
};

struct takes_without_cas : queue_of<2> {
    using queue_of<2>::queue_of;
    std::uint32_t steal(std::array<const int*, 2>& into) {
        const std::uint64_t head = head_.load();
        if (tail_.load() == place(head)) return 0;
        into[0] = slot(place(head)).load();
        if (head_.load() != head) return 0;  // looks again, but not in one step with the store
        head_.store(advanced(head, 1));
        return 1;
    }
};

struct reads_after_its_cas : queue_of<2> {
    using queue_of<2>::queue_of;
    std::uint32_t steal(std::array<const int*, 2>& into) {
        std::uint64_t head = head_.load();
        if (tail_.load() == place(head)) return 0;
        if (!head_.compare_exchange_strong(head, advanced(head, 1))) return 0;
        into[0] = slot(place(head)).load();
        return 1;
    }
};

struct believes_any_size : queue_of<2> {
    using queue_of<2>::queue_of;
    bool empty() const { return tail_.load() == place(head_.load()); }
};

}  // namespace

WEFT_TEST("steal_queue model: one thief, slots used again, counters that wrap") {
    expect_holds<one_thief<queue_of<2>>>({.preemptions = 3});
}

WEFT_TEST("steal_queue model: two thieves") {
    expect_holds<two_thieves<queue_of<4>>>({.actors = 3, .preemptions = 3});
    expect_holds<two_thieves<queue_of<2>>>({.actors = 3, .preemptions = 2});
}

WEFT_TEST("steal_queue model: a full ring gives up some of itself under a thief") {
    expect_holds<overflows<queue_of<2>>>({.preemptions = 4});
}

WEFT_TEST("steal_queue model: one that holds something is never called empty") {
    expect_holds<is_never_empty<queue_of<2>>>({.preemptions = 4});
}

WEFT_TEST("steal_queue model: what was pushed last is taken back under thieves") {
    expect_holds<takes_back<queue_of<4>>>({.actors = 2, .preemptions = 4});
    expect_holds<takes_back<queue_of<4>>>({.actors = 3, .preemptions = 3});
}

WEFT_TEST("steal_queue model: mutants are caught") {
    expect_caught<takes_back<takes_back_without_a_mark>>({.preemptions = 3}, "an item is lost");
    expect_caught<takes_back<takes_back_and_shortens_later>>({.preemptions = 3}, "an item is lost");
    expect_caught<one_thief<publishes_before_it_writes>>({.preemptions = 2}, "an item is lost");
    expect_caught<one_thief<takes_without_cas>>({.preemptions = 2}, "an item is lost");
    expect_caught<one_thief<reads_after_its_cas>>({.preemptions = 3}, "an item is lost");
    expect_caught<is_never_empty<believes_any_size>>({.preemptions = 2}, "empty, while");
}
