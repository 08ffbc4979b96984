// biased_lock_test.cpp - a bias that is given, used and revoked.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/sync/detail/biased_lock.hpp>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include <weft/fiber/go.hpp>
#include <weft/sync/channel.hpp>

#include "crowd.hpp"

using namespace weft;
using detail::biased_lock;

namespace {

const char keys[2] = {};
constexpr std::uint32_t enough = biased_lock::first_patience + 1;

bool lock_and_ask(biased_lock& lock, const void* me) {
    lock.lock(me);
    const bool biased = lock.is_biased();
    lock.unlock();
    return biased;
}

void lock_often(biased_lock& lock, const void* me, std::uint32_t times) {
    for (std::uint32_t i = 0; i < times; ++i) {
        lock.lock(me);
        lock.unlock();
    }
}

}  // namespace

WEFT_TEST("biased_lock: whoever locks it often gets a bias, which another revokes") {
    if (!detail::process_barrier::available())
        GTEST_SKIP() << "without membarrier(2) no lock is ever biased";
    biased_lock lock;
    lock_often(lock, &keys[0], enough);
    CHECK(lock_and_ask(lock, &keys[0]));
    CHECK(!lock_and_ask(lock, &keys[1]));
    CHECK(!lock_and_ask(lock, &keys[0]));
    lock_often(lock, &keys[0], enough);
    CHECK(!lock_and_ask(lock, &keys[0]));
}

WEFT_TEST("biased_lock: a bias is given twice and no more") {
    if (!detail::process_barrier::available())
        GTEST_SKIP() << "without membarrier(2) no lock is ever biased";
    biased_lock lock;
    lock_often(lock, &keys[0], enough);
    CHECK(!lock_and_ask(lock, &keys[1]));
    lock_often(lock, &keys[1], biased_lock::second_patience + 1);
    CHECK(lock_and_ask(lock, &keys[1]));
    CHECK(!lock_and_ask(lock, &keys[0]));
    lock_often(lock, &keys[0], 2 * biased_lock::second_patience);
    CHECK(!lock_and_ask(lock, &keys[0]));
}

WEFT_TEST("biased_lock: those who take turns get no bias") {
    biased_lock lock;
    for (std::uint32_t i = 0; i < 4 * enough; ++i)
        CHECK(!lock_and_ask(lock, &keys[i / biased_lock::first_patience % 2]));
}

// One has the bias and goes on locking, another comes.
WEFT_TEST("biased_lock: stress, a bias is revoked while its owner goes in and out") {
    const long rounds = weft_test::stress_count(20'000);
    for (long round = 0; round < rounds; ++round) {
        biased_lock lock;
        long count = 0;
        std::atomic<bool> has_bias = false;
        std::atomic<bool> over = false;
        long locked = 0;
        std::thread owner([&] {
            while (!over.load(std::memory_order_relaxed)) {
                lock.lock(&keys[0]);
                ++count;
                lock.unlock();
                if (++locked == 2 * enough) has_bias = true;
            }
        });
        while (!has_bias) std::this_thread::yield();
        for (int i = 0; i < 20; ++i) {
            lock.lock(&keys[1]);
            ++count;
            lock.unlock();
        }
        over = true;
        owner.join();
        ASSERT_EQ(count, locked + 20);
    }
}

namespace {

struct alignas(128) lock_with_bias : biased_lock {
    lock_with_bias() { owner_.store(&keys[0], std::memory_order_relaxed); }
    /// Brings its line here, to be shared with whoever else looks.
    void look() const { static_cast<void>(inside_.load(std::memory_order_acquire)); }
    std::atomic<int> guests = 0;
};

}  // namespace

// Each stores, then looks at what the other stores. Without the heavy barrier both looks may come
// first, and both are inside: so in one of 160 rounds here, on two processors with nothing else to
// do and with optimisation (-O0 is too slow between the store and the look).
WEFT_TEST("biased_lock: stress, its owner and another come at the same moment") {
    if (!detail::process_barrier::available())
        GTEST_SKIP() << "without membarrier(2) no lock is ever biased";
    constexpr long batch = 1000;
    std::atomic<bool> met = false;
    for (long left = weft_test::stress_count(200'000); left > 0; left -= batch) {
        const auto locks = std::make_unique<lock_with_bias[]>(batch);
        std::atomic<long> arrived = 0;
        const auto come = [&](int me) {
            for (long i = 0; i < batch; ++i) {
                lock_with_bias& lock = locks[static_cast<std::size_t>(i)];
                lock.look();
                ++arrived;
                for (int looks = 0; arrived.load(std::memory_order_relaxed) < 2 * (i + 1); ++looks)
                    if (looks > 1000) std::this_thread::yield();
                for (volatile long before = me == 0 ? i / 8 % 8 : i % 8; before > 0;)
                    before = before - 1;
                lock.lock(&keys[me]);
                if (++lock.guests != 1) met = true;
                for (volatile int inside = 0; inside < 20;) inside = inside + 1;
                --lock.guests;
                lock.unlock();
            }
        };
        std::thread other(come, 1);
        come(0);
        other.join();
    }
    CHECK(!met);
}

// Of each channel the main thread has the bias.
CROWD_TEST("channel: stress, channels that one thread had to itself are used by all") {
    const weft_test::with_test_points points;
    std::vector<std::unique_ptr<channel<long>>> all;
    for (long round = rounds(4'000); round > 0; --round) {
        auto& c = *all.emplace_back(std::make_unique<channel<long>>(16));
        for (long i = 0; i < 300; ++i) {
            CHECK(c.try_send(i).has_value());
            CHECK(c.try_receive() == i);
        }
    }
    std::atomic<long> sum = 0;
    crowd(4, [&](int i) {
        for (const auto& c : all)
            for (long j = 0; j < 20; ++j) {
                if (i % 2 == 0)
                    CHECK(c->send(j).has_value());
                else
                    sum += c->receive().value_or(-1'000'000);
            }
    });
    CHECK(sum == static_cast<long>(all.size()) * 2 * 190);
}
