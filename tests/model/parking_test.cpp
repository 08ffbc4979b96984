// parking_test.cpp - workers that park and posters that wake: work never waits while a worker
// sleeps.
//
// The workers do what pool_worker::find() and sleep() do, step by step, around the very
// basic_parking; the work is a counter, or the ring or the slot of one of them. Every unit of work
// holds its worker until all units run: so one that nobody comes for while a worker sleeps is a
// deadlock, and not only late.
//
// SPDX-License-Identifier: Apache-2.0
#include "exec/parking.hpp"

#include <array>

#include <weft/exec/inbox.hpp>

#include "exec/steal_queue.hpp"
#include "exec/steal_slot.hpp"
#include "model_atomic.hpp"
#include "model_test.hpp"

using namespace weft_model;

namespace {

class model_parking : public weft::detail::basic_parking<model_atomic, model_lock> {
public:
    using basic_parking::basic_parking;
    /// No step.
    [[nodiscard]] bool says_all_sleep() const { return word_.peek() == workers_ * one_parked; }
};

/// The order in which a mutant does things; the pool's is the default.
struct manners {
    bool looks_after_parking = true;
    bool last_searcher_looks = true;
    bool publishes_first = true;
};

template <class Parking, unsigned Workers, unsigned Units, manners How = manners{}>
struct pool_scenario : scenario {
    Parking parking{Workers};
    std::array<model_sleep, Workers> sleepers;
    model_atomic<unsigned> published{0};
    unsigned started = 0;
    unsigned done = 0;
    bool over = false;

    // --- one that posts

    void post() {
        if (How.publishes_first) published.fetch_add(1);
        notify();
        if (!How.publishes_first) published.fetch_add(1);
    }
    void notify() {
        const unsigned woken = parking.to_wake();
        if (woken != Parking::nobody) sleepers[woken].wake();
    }

    // --- a worker

    virtual bool is_work_visible() { return published.load() != 0; }
    virtual bool take() {
        unsigned seen = published.load();
        while (seen != 0)
            if (published.compare_exchange_weak(seen, seen - 1)) return true;
        return false;
    }

    void work(unsigned me, bool searching) {
        while (!over) {
            bool found = take();
            if (!found && !searching) searching = parking.start_searching();
            if (!found && searching) found = take();
            if (!found) {
                parking.park(me, searching);
                sleep(me, may_sleep());
                searching = true;  // however it was woken
                continue;
            }
            if (searching && parking.stop_searching() && How.last_searcher_looks &&
                is_work_visible())
                notify();
            searching = false;
            run_one();
        }
    }
    virtual bool may_sleep() { return !How.looks_after_parking || !is_work_visible(); }
    void sleep(unsigned me, bool now) {
        if (now) sleepers[me].wait();
        if (!over) parking.unpark(me);
    }
    virtual void run_one() {
        ++started;
        wait_until("another unit to be run", [this] { return started == Units; });
        ++done;
    }

    bool at_rest() override {
        if (done != Units || over) return false;
        check(parking.says_all_sleep(), "all sleep, and the word does not say so");
        over = true;
        for (model_sleep& one : sleepers) one.wake_at_rest();
        return true;
    }
};

// A poster (the last actor) while the workers go to sleep.
template <class Parking, unsigned Workers, unsigned Units, manners How = manners{}>
struct falling_asleep : pool_scenario<Parking, Workers, Units, How> {
    void act(unsigned actor) override {
        if (actor < Workers) return this->work(actor, false);
        for (unsigned i = 0; i < Units; ++i) this->post();
    }
};

// Posters, one unit each, and workers that sleep.
template <class Parking, unsigned Workers, unsigned Units, manners How = manners{}>
struct asleep : pool_scenario<Parking, Workers, Units, How> {
    asleep() {
        for (unsigned i = 0; i < Workers; ++i) this->parking.park(i, false);
    }
    void act(unsigned actor) override {
        if (actor >= Workers) return this->post();
        this->sleep(actor, true);
        this->work(actor, true);
    }
};

// A worker (the first) that posts to its own ring and runs on; others sleep or go to sleep, and
// take from the ring.
template <unsigned Workers, bool Asleep>
struct stealing : pool_scenario<model_parking, Workers, Workers> {
    using base = pool_scenario<model_parking, Workers, Workers>;
    weft::detail::steal_queue<const int, 4, model_atomic> ring{0xffff'ffffU};
    static constexpr int unit = 0;

    stealing() {
        for (unsigned i = 1; Asleep && i < Workers; ++i) this->parking.park(i, false);
    }
    bool is_work_visible() override { return !ring.empty(); }
    bool take() override {
        if (ring.size() == 0) return false;
        std::array<const int*, 4> loot{};
        const std::uint32_t count = ring.steal(loot);
        check(count <= 1 || Workers > 2, "more was stolen than was there");
        return count != 0;
    }
    void act(unsigned actor) override {
        if (actor != 0) {
            if (Asleep) this->sleep(actor, true);
            return this->work(actor, Asleep);
        }
        check(ring.push(&unit, std::memory_order_seq_cst), "the ring is full");
        this->notify();
        this->run_one();
        this->work(0, false);
    }
};

// The first posts to its ring and yields: it takes what is there, which nobody else may have seen
// yet, and only then comes back to the ring itself. Tells: and says so.
template <bool Asleep, bool Tells>
struct yielding : stealing<2, Asleep> {
    void act(unsigned actor) override {
        if (actor != 0) return stealing<2, Asleep>::act(actor);
        push();
        this->notify();
        if (this->ring.pop() != nullptr) {
            push();
            if (Tells) this->notify();
        }
        this->run_one();
        this->work(0, false);
    }
    void push() {
        check(this->ring.push(&this->unit, std::memory_order_seq_cst), "the ring is full");
    }
};

/// What the owner of a slot does before it runs something that holds it: fills the slot; fills it
/// twice, so that the first goes to the ring, and takes the second; or takes back what is there,
/// and does not want it.
enum class in_slot : std::uint8_t { one, two, one_back };

using model_slot = weft::detail::steal_slot<const int, model_atomic>;

// A worker (the first) with a slot; the other sleeps, or goes to sleep. Looks: it looks at the slot
// then, too. Tells: whoever put something there, or back, says so.
template <in_slot What, bool Asleep, class Slot = model_slot, bool Looks = true, bool Tells = true>
struct filling_slot : stealing<2, Asleep> {
    using base = stealing<2, Asleep>;
    Slot slot;

    bool is_work_visible() override {
        return this->published.load() != 0 || !this->ring.empty() || slot.is_seen_filled();
    }
    // `published` is the thief's own ring.
    bool take() override { return base::base::take() || base::take(); }
    bool may_sleep() override {
        return this->published.load() == 0 && this->ring.empty() && (!Looks || !is_stuck());
    }
    bool is_stuck() {
        if (!slot.is_seen_filled()) return false;
        const std::uint64_t seen = slot.changes();
        if (slot.changes() != seen || slot.is_empty() || slot.steal() == nullptr) return false;
        this->published.fetch_add(1);
        return true;
    }
    void run_one() override {
        check(this->started < 2, "a unit was run twice");
        base::run_one();
    }

    void act(unsigned actor) override {
        if (actor != 0) return base::act(actor);
        put();
        if (What == in_slot::two) {
            put();
            if (slot.take() == nullptr) return this->work(0, false);
        }
        if (What == in_slot::one_back)
            if (const int* const taken = slot.take()) {
                slot.put_back(taken);
                if (Tells) this->notify();
            }
        this->run_one();
        this->work(0, false);
    }
    void put() {
        if (const int* const displaced = slot.put(&this->unit))
            check(this->ring.push(displaced, std::memory_order_seq_cst), "the ring is full");
        if (Tells || What == in_slot::one_back) this->notify();
    }
};

// Workers that take all that is there, keep one unit and put the others back, as from the overflow
// list: for a moment nobody sees them. Tells: whoever put something back says so.
template <bool Tells>
struct taking_batches : pool_scenario<model_parking, 2, 2> {
    bool take() override {
        const unsigned batch = published.exchange(0);
        if (batch > 1) {
            published.fetch_add(batch - 1);
            if (Tells) notify();
        }
        return batch != 0;
    }
    void act(unsigned actor) override {
        if (actor < 2) return work(actor, false);
        published.fetch_add(2);
        notify();
        notify();
    }
};

// A worker to which one unit is posted, and one sent that no other may run: two ways to be woken,
// perhaps at once.
template <bool Asleep>
struct with_mail : pool_scenario<model_parking, 1, 2> {
    using base = pool_scenario<model_parking, 1, 2>;
    struct letter final : weft::runnable {
        runnable* run() noexcept override { return nullptr; }
    };
    weft::detail::basic_inbox<model_atomic> mail;
    letter sent;

    with_mail() {
        if (!Asleep) return;
        parking.park(0, false);
        static_cast<void>(mail.fall_asleep());
    }
    bool take() override { return mail.take_all() != nullptr || base::take(); }
    bool may_sleep() override { return mail.fall_asleep() && base::may_sleep(); }
    void run_one() override { ++done; }
    void act(unsigned actor) override {
        if (actor == 1) return post();
        if (actor == 2) {
            if (mail.push(&sent)) sleepers[0].wake();
            return;
        }
        if (Asleep) sleep(0, true);
        work(0, Asleep);
    }
};

// --- mutants

// Says that it sleeps, and sleeps, without a look at its mail.
struct forgets_its_mail : with_mail<false> {
    bool may_sleep() override {
        static_cast<void>(mail.fall_asleep());
        return !is_work_visible();
    }
};

// Takes from the slot in two steps.
struct two_step_slot : model_slot {
    const int* take() {
        const int* const item = place_.load();
        if (item == nullptr) return nullptr;
        place_.store(nullptr);
        count();
        return item;
    }
    const int* steal() { return take(); }
};

// Wakes without counting the woken one as searching.
struct forgets_who_it_woke : model_parking {
    using model_parking::model_parking;
    unsigned to_wake() {
        if (searching(word_.load()) != 0 || parked(word_.load()) == 0) return nobody;
        const std::lock_guard guard(lock_);
        if (list_.empty()) return nobody;
        const unsigned woken = list_.back();
        list_.pop_back();
        word_.fetch_sub(one_parked);
        return woken;
    }
};

}  // namespace

WEFT_TEST("parking model: work that comes while the only worker falls asleep") {
    expect_holds<falling_asleep<model_parking, 1, 1>>({.actors = 2, .preemptions = 5});
}

WEFT_TEST("parking model: two units come while two workers fall asleep") {
    expect_holds<falling_asleep<model_parking, 2, 2>>({.actors = 3, .preemptions = 3});
}

WEFT_TEST("parking model: two posters wake two workers") {
    expect_holds<asleep<model_parking, 2, 2>>({.actors = 4, .preemptions = 2, .in_soak = 3});
}

WEFT_TEST("parking model: what a worker posts to its ring is stolen") {
    expect_holds<stealing<2, true>>({.actors = 2, .preemptions = 3, .in_soak = 5});
    expect_holds<stealing<2, false>>({.actors = 2, .preemptions = 3, .in_soak = 5});
}

WEFT_TEST("parking model: one that yields is stolen while the one it left for runs") {
    expect_holds<yielding<true, true>>({.actors = 2, .preemptions = 3, .in_soak = 5});
    expect_holds<yielding<false, true>>({.actors = 2, .preemptions = 3, .in_soak = 5});
}

WEFT_TEST("parking model: what stands in the slot of a worker that is held is taken") {
    const limits two{.actors = 2, .preemptions = 3, .in_soak = 4};
    expect_holds<filling_slot<in_slot::one, true>>(two);
    expect_holds<filling_slot<in_slot::one, false>>(two);
}

WEFT_TEST("parking model: what is displaced from a slot, or put back there, is taken") {
    const limits two{.actors = 2, .preemptions = 2, .in_soak = 4};
    expect_holds<filling_slot<in_slot::two, true>>(two);
    expect_holds<filling_slot<in_slot::two, false>>(two);
    expect_holds<filling_slot<in_slot::one_back, true>>(two);
    expect_holds<filling_slot<in_slot::one_back, false>>(two);
}

WEFT_TEST("parking model: a worker is woken by a post and by its mail") {
    expect_holds<with_mail<true>>({.actors = 3, .preemptions = 3});
    expect_holds<with_mail<false>>({.actors = 3, .preemptions = 3});
}

WEFT_TEST("parking model: what is out of sight while a batch is taken is not forgotten") {
    expect_holds<taking_batches<true>>({.actors = 3, .preemptions = 2, .in_soak = 3});
}

WEFT_TEST("parking model: mutants of the slot are caught") {
    const limits two{.actors = 2, .preemptions = 2};
    const char* const stuck = "waits for another unit to be run";
    expect_caught<filling_slot<in_slot::one, false, model_slot, false>>(two, stuck);
    expect_caught<filling_slot<in_slot::one, true, model_slot, true, false>>(two, stuck);
    expect_caught<filling_slot<in_slot::one_back, false, model_slot, true, false>>(two, stuck);
    expect_caught<filling_slot<in_slot::two, false, two_step_slot>>(two, "a unit was run twice");
}

WEFT_TEST("parking model: mutants are caught") {
    const limits two{.actors = 2, .preemptions = 2};
    const limits three{.actors = 3, .preemptions = 2};
    const limits four{.actors = 4, .preemptions = 2};
    expect_caught<falling_asleep<model_parking, 1, 1, manners{.looks_after_parking = false}>>(
        two, "deadlock: a waits for a wake-up");
    expect_caught<falling_asleep<model_parking, 1, 1, manners{.publishes_first = false}>>(
        two, "deadlock: a waits for a wake-up");
    expect_caught<asleep<model_parking, 2, 2, manners{.last_searcher_looks = false}>>(
        four, "waits for another unit to be run");
    expect_caught<falling_asleep<model_parking, 2, 2, manners{.last_searcher_looks = false}>>(
        three, "waits for another unit to be run");
    expect_caught<asleep<forgets_who_it_woke, 2, 2>>(four, "deadlock");
    expect_caught<yielding<true, false>>(two, "waits for another unit to be run");
    expect_caught<yielding<false, false>>(two, "waits for another unit to be run");
    expect_caught<taking_batches<false>>(three, "waits for another unit to be run");
    expect_caught<forgets_its_mail>(three, "deadlock: a waits for a wake-up");
}
