// biased_lock_test.cpp - the owner of a bias against threads that revoke it: one is inside at a
// time.
//
// The barriers do nothing here: each operation happens as a whole, in the order of the program, and
// that is what they are for.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/sync/detail/biased_lock.hpp>

#include "model_atomic.hpp"
#include "model_test.hpp"

using namespace weft_model;

namespace {

struct model_barrier {
    static bool available() noexcept { return true; }
    static void heavy() noexcept {}
    static void light() noexcept {}
};

using base = weft::detail::basic_biased_lock<model_atomic, model_barrier, model_spin>;

// What tells the actors apart.
const char keys[3] = {};

// Biased to the first actor.
struct model_biased_lock : base {
    model_biased_lock() { owner_.store(&keys[0]); }
};

// Goes in without a second look at who has the bias.
struct looks_once : model_biased_lock {
    void lock(const void* me) {
        if (owner_.load() != me) return lock_shared(me);
        inside_.store(true);
        by_owner_ = true;
    }
};

// Looks before it says that it is inside.
struct says_it_late : model_biased_lock {
    void lock(const void* me) {
        if (owner_.load() != me || owner_.load() != me) return lock_shared(me);
        inside_.store(true);
        by_owner_ = true;
    }
};

// Takes the bias away and does not wait for who is inside.
struct does_not_wait : model_biased_lock {
    void lock(const void* me) {
        if (lock_biased(me)) return;
        if (word_.exchange(1) != 0) lock_contended();
        owner_.store(nullptr);
        by_owner_ = false;
    }
};

template <class Lock, unsigned Times>
struct one_inside : scenario {
    Lock lock;
    unsigned inside = 0;
    model_atomic<unsigned> count{0};

    void act(unsigned actor) override {
        for (unsigned i = 0; i < Times; ++i) {
            lock.lock(&keys[actor]);
            check(++inside == 1, "two are inside");
            count.store(count.load() + 1);  // steps, at which others may come
            --inside;
            lock.unlock();
        }
    }
};

template <class Lock, unsigned Actors, unsigned Times>
struct counted : one_inside<Lock, Times> {
    void at_end() override { check(this->count.peek() == Actors * Times, "a count is lost"); }
};

}  // namespace

WEFT_TEST("biased_lock model: the owner and another are never inside at once") {
    expect_holds<counted<model_biased_lock, 2, 2>>({.actors = 2, .preemptions = 4, .in_soak = 6});
}

WEFT_TEST("biased_lock model: the owner and two others are never inside at once") {
    expect_holds<counted<model_biased_lock, 3, 1>>({.actors = 3, .preemptions = 3, .in_soak = 4});
}

WEFT_TEST("biased_lock model: an owner that does not look twice is caught") {
    expect_caught<one_inside<looks_once, 1>>({.actors = 2, .preemptions = 2}, "two are inside");
}

WEFT_TEST("biased_lock model: an owner that says too late that it is inside is caught") {
    expect_caught<one_inside<says_it_late, 1>>({.actors = 2, .preemptions = 2}, "two are inside");
}

WEFT_TEST("biased_lock model: whoever does not wait for the owner is caught") {
    expect_caught<one_inside<does_not_wait, 1>>({.actors = 2, .preemptions = 2}, "two are inside");
}
