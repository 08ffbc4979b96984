// inbox_test.cpp - posters, and a reader that sleeps: nothing is lost, no wake-up neither.
//
// The reader is a loop's thread: it takes all that came, and if that was nothing, says that it
// sleeps and does so, until it is woken.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/exec/inbox.hpp>

#include <array>

#include "model_atomic.hpp"
#include "model_test.hpp"

using namespace weft_model;

namespace {

using model_inbox = weft::detail::basic_inbox<model_atomic>;

struct letter final : weft::runnable {
    runnable* run() noexcept override { return nullptr; }
    unsigned from = 0;
    unsigned number = 0;
};

// Two posters (b, c), two letters each; a reads until it has them all.
template <class Inbox>
struct posting : scenario {
    static constexpr unsigned posters = 2;
    static constexpr unsigned each = 2;
    Inbox inbox;
    model_sleep sleeper;
    std::array<std::array<letter, each>, posters> letters;
    std::array<unsigned, posters> read{};
    unsigned wakes = 0;
    unsigned sleeps = 0;

    void act(unsigned actor) override {
        if (actor == 0) return reads();
        for (unsigned i = 0; i < each; ++i) {
            letter& one = letters[actor - 1][i];
            one.from = actor - 1;
            one.number = i;
            if (!inbox.push(&one)) continue;
            ++wakes;
            sleeper.wake();
        }
    }

    void reads() {
        while (read[0] + read[1] < posters * each) {
            if (take()) continue;
            if (!inbox.fall_asleep()) continue;
            ++sleeps;
            sleeper.wait();
        }
    }

    bool take() {
        weft::runnable* r = inbox.take_all();
        if (r == nullptr) return false;
        for (; r != nullptr; r = r->next_node) {
            const auto& one = static_cast<const letter&>(*r);
            check(one.number == read[one.from]++, "a letter is out of order, or read twice");
        }
        return true;
    }

    void at_end() override {
        check(wakes <= sleeps, "woken more often than it slept");
        check(!sleeper.is_woken(), "woken after all was read");
    }
};

// A loop that ends when no work is left: b gives up the last unit of work, outside of the loop.
template <class Inbox>
struct rousing : scenario {
    Inbox inbox;
    model_sleep sleeper;
    model_atomic<int> alive{2};

    void act(unsigned actor) override {
        if (actor != 0) {
            alive.fetch_sub(1);
            if (inbox.rouse()) sleeper.wake();
            return;
        }
        while (alive.load() != 0) {
            static_cast<void>(inbox.take_all());
            if (!inbox.fall_asleep()) continue;
            if (alive.load() == 0) break;
            sleeper.wait();
        }
    }
};

// --- mutants

struct sleeps_without_looking : model_inbox {
    bool fall_asleep() {
        if (!empty()) return false;
        newest_.store(asleep());
        return true;
    }
};

struct takes_in_two_steps : model_inbox {
    weft::runnable* take_all() {
        weft::runnable* node = newest_.load();
        if (node == nullptr || node == asleep()) return nullptr;
        newest_.store(nullptr);
        weft::runnable* oldest_first = nullptr;
        while (node != nullptr) {
            weft::runnable* const older = node->next_node;
            node->next_node = oldest_first;
            oldest_first = node;
            node = older;
        }
        return oldest_first;
    }
};

struct looks_at_the_old_value : model_inbox {
    bool push(weft::runnable* r) {
        weft::runnable* seen = newest_.load();
        const bool sleeps = seen == asleep();
        do r->next_node = seen == asleep() ? nullptr : seen;
        while (!newest_.compare_exchange_weak(seen, r));
        return sleeps;
    }
};

// Wakes, then makes known what for.
struct rouses_too_early : rousing<model_inbox> {
    void act(unsigned actor) override {
        if (actor == 0) return rousing::act(actor);
        if (inbox.rouse()) sleeper.wake();
        alive.fetch_sub(1);
    }
};

// Looks whether there is work left, then says that it sleeps: the wrong way round.
struct looks_too_early : rousing<model_inbox> {
    void act(unsigned actor) override {
        if (actor != 0) return rousing::act(actor);
        while (alive.load() != 0)
            if (inbox.fall_asleep()) sleeper.wait();
    }
};

}  // namespace

WEFT_TEST("inbox model: two posters and a reader that sleeps") {
    expect_holds<posting<model_inbox>>({.actors = 3, .preemptions = 3});
}

WEFT_TEST("inbox model: the last unit of work ends a sleep") {
    expect_holds<rousing<model_inbox>>({.actors = 3, .preemptions = 4});
}

WEFT_TEST("inbox model: mutants are caught") {
    const limits three{.actors = 3, .preemptions = 2};
    expect_caught<posting<sleeps_without_looking>>(three, "deadlock: a waits for a wake-up");
    expect_caught<posting<takes_in_two_steps>>(three, "deadlock: a waits for a wake-up");
    expect_caught<posting<looks_at_the_old_value>>(three, "deadlock: a waits for a wake-up");
    expect_caught<rouses_too_early>(three, "deadlock: a waits for a wake-up");
    expect_caught<looks_too_early>(three, "deadlock: a waits for a wake-up");
}
