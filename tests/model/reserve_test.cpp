// reserve_test.cpp - what a worker keeps back, under its owner and others that claim it: every item
// once; and nobody sleeps over it.
//
// The barriers do nothing here: each operation happens as a whole, in the order of the program, and
// that is what they are for.
//
// SPDX-License-Identifier: Apache-2.0
#include "exec/reserve.hpp"

#include <array>

#include "exec/parking.hpp"
#include "model_atomic.hpp"
#include "model_test.hpp"

using namespace weft_model;

namespace {

struct model_barrier {
    static void heavy() noexcept {}
    static void light() noexcept {}
};

using model_reserve =
    weft::detail::basic_reserve<const int, 4, model_atomic, model_barrier, model_spin>;
using loot = std::array<const int*, model_reserve::capacity>;

constexpr auto any = [](const int&) { return true; };

// The owner does not look whether somebody is at it.
struct does_not_look : model_reserve {
    template <class Wanted>
    const int* take_back(Wanted) {
        inside_.store(true);
        const std::uint32_t end = end_.load();
        const int* item = nullptr;
        if (end != begin_.load()) {
            item = items_[(end - 1) % capacity];
            end_.store(end - 1);
        }
        leave();
        return item;
    }
};

// Whoever claims it does not wait for the owner.
struct does_not_wait : model_reserve {
    std::uint32_t claim(loot& into) {
        if (claimed_.exchange(true)) return 0;
        const std::uint32_t there = size();
        const std::uint32_t count = take(into, there - there / 2);
        claimed_.store(false);
        return count;
    }
};

// Two may claim it at once.
struct claims_without_exchange : model_reserve {
    std::uint32_t claim(loot& into) {
        claimed_.store(true);
        while (inside_.load()) model_spin().once();
        const std::uint32_t there = size();
        const std::uint32_t count = take(into, there - there / 2);
        claimed_.store(false);
        return count;
    }
};

template <class Reserve>
struct each_once : scenario {
    static constexpr std::array<int, 4> items{0, 1, 2, 3};
    Reserve kept;
    std::array<int, 4> times{};

    each_once() {
        for (int i = 0; i < 2; ++i) push(i);
    }
    void push(int i) { check(kept.push(&items[static_cast<std::size_t>(i)]), "no room"); }
    void note(const int* item) {
        if (item == nullptr) return check(false, wrong);  // which comes back, at the end
        ++times[static_cast<std::size_t>(*item)];
    }
    void note(const loot& into, std::uint32_t count) {
        for (std::uint32_t i = 0; i < count; ++i) note(into[i]);
    }
    void act(unsigned actor) override {
        loot into{};
        if (actor != 0) return note(into, kept.claim(into));
        push(2);
        if (const int* const last = kept.take_back(any)) note(last);
        push(3);
        note(into, kept.take_eldest(into, 1));
        for (int i = 0; i < 2; ++i)
            if (const int* const last = kept.take_back(any)) note(last);
    }
    void at_end() override {
        loot into{};
        note(into, kept.take_eldest(into, 4));
        for (const int count : times) check(count == 1, wrong);
    }
    static constexpr const char* wrong = "an item is lost, or taken twice";
};

// --- against sleep: the steps of pool_worker::start_child_of_group(), find() and sleep()

class model_parking : public weft::detail::basic_parking<model_atomic, model_lock> {
public:
    using basic_parking::basic_parking;
};

struct manners {
    bool keeper_looks = true;
    bool sleeper_looks = true;
    bool says_so_first = true;
};

// The owner keeps one back and then runs something that ends only when that has run.
template <manners How = manners{}>
struct keeps_one : scenario {
    static constexpr int item = 0;
    model_parking parking{2};
    model_sleep sleeper;
    model_atomic<bool> keeps_back{false};
    model_reserve kept;
    model_atomic<std::uint32_t> shown{0};  // in the ring
    bool ran = false;

    void keep() {
        if (How.says_so_first) keeps_back.store(true);
        check(kept.push(&item), "no room");
        if (How.keeper_looks && parking.would_wake()) {
            loot into{};
            shown.fetch_add(kept.take_eldest(into, 4));
            if (parking.to_wake() != model_parking::nobody) sleeper.wake();
        }
        if (!How.says_so_first) keeps_back.store(true);
    }
    bool take() {
        std::uint32_t seen = shown.load();
        while (seen != 0)
            if (shown.compare_exchange_weak(seen, seen - 1)) return true;
        return false;
    }
    bool is_help_needed() {
        if (shown.load() != 0) return true;
        if (!How.sleeper_looks || !keeps_back.load() || kept.empty()) return false;
        loot into{};
        shown.fetch_add(kept.claim(into));
        return true;
    }
    void act(unsigned actor) override {
        if (actor == 0) {
            keep();
            return wait_until("its child to be run", [this] { return ran; });
        }
        for (bool searching = false; !ran;) {
            if (!searching) searching = parking.start_searching();
            if (take()) {
                ran = true;
                continue;
            }
            parking.park(1, searching);
            if (!is_help_needed()) sleeper.wait();
            parking.unpark(1);
            searching = true;
        }
    }
};

}  // namespace

WEFT_TEST("reserve model: with one that claims every item is taken once") {
    expect_holds<each_once<model_reserve>>({.actors = 2, .preemptions = 4, .in_soak = 5});
}

WEFT_TEST("reserve model: with two that claim every item is taken once") {
    expect_holds<each_once<model_reserve>>({.actors = 3, .preemptions = 3, .in_soak = 4});
}

WEFT_TEST("reserve model: nobody sleeps over what is kept back") {
    expect_holds<keeps_one<>>({.actors = 2, .preemptions = 4, .in_soak = 6});
}

WEFT_TEST("reserve model: an owner that does not look is caught") {
    expect_caught<each_once<does_not_look>>({.actors = 2, .preemptions = 3},
                                            each_once<does_not_look>::wrong);
}

WEFT_TEST("reserve model: whoever does not wait for the owner is caught") {
    expect_caught<each_once<does_not_wait>>({.actors = 2, .preemptions = 3},
                                            each_once<does_not_wait>::wrong);
}

WEFT_TEST("reserve model: two that claim at once are caught") {
    expect_caught<each_once<claims_without_exchange>>({.actors = 3, .preemptions = 3},
                                                      each_once<claims_without_exchange>::wrong);
}

WEFT_TEST("reserve model: an owner that does not look for sleepers is caught") {
    expect_caught<keeps_one<manners{.keeper_looks = false}>>({.actors = 2, .preemptions = 3},
                                                             "deadlock");
}

WEFT_TEST("reserve model: a sleeper that does not look at it is caught") {
    expect_caught<keeps_one<manners{.sleeper_looks = false}>>({.actors = 2, .preemptions = 3},
                                                              "deadlock");
}

WEFT_TEST("reserve model: an owner that says too late that it keeps something is caught") {
    expect_caught<keeps_one<manners{.says_so_first = false}>>({.actors = 2, .preemptions = 3},
                                                              "deadlock");
}
