// steal_queue_test.cpp - nothing is lost and nothing comes out twice, whoever takes.
//
// SPDX-License-Identifier: Apache-2.0
#include "exec/steal_queue.hpp"

#include <atomic>
#include <thread>
#include <vector>

#include "test_points.hpp"
#include "weft_test.hpp"

using weft::detail::steal_queue;

namespace {

constexpr auto order = std::memory_order_seq_cst;

template <std::uint32_t Capacity>
void owner_and_thieves(int thieves, std::uint32_t start = 0) {
    const weft_test::with_test_points here;
    const auto count = static_cast<std::size_t>(weft_test::stress_count(1'000'000));
    std::vector<std::atomic<int>> items(count);
    steal_queue<std::atomic<int>, Capacity> queue(start);
    std::atomic<std::size_t> taken = 0;
    const auto take = [&](std::atomic<int>* item) {
        ++*item;
        ++taken;
    };
    std::vector<std::thread> threads;
    for (int i = 0; i < thieves; ++i)
        threads.emplace_back([&] {
            std::array<std::atomic<int>*, Capacity> loot;
            while (taken < count) {
                const std::uint32_t n = queue.steal(loot);
                for (std::uint32_t j = 0; j < n; ++j) take(loot[j]);
                if (n == 0) std::this_thread::yield();
            }
        });
    std::array<std::atomic<int>*, Capacity> half;
    for (std::size_t i = 0; i < count; ++i) {
        while (!queue.push(&items[i], order)) {
            const std::uint32_t n = queue.pop_some(half, Capacity / 2);
            for (std::uint32_t j = 0; j < n; ++j) take(half[j]);
        }
        if (i % 3 == 0)
            if (std::atomic<int>* const item = queue.pop()) take(item);
        if (i % 5 == 0)
            if (std::atomic<int>* const item = queue.take_back()) take(item);
    }
    while (std::atomic<int>* const item = queue.pop()) take(item);
    for (std::thread& one : threads) one.join();
    CHECK(queue.empty());
    for (const std::atomic<int>& item : items) REQUIRE(item == 1);
}

}  // namespace

WEFT_TEST("steal queue: the last one can be taken back") {
    int items[3] = {};
    steal_queue<int, 4> queue(0xffff'ffffU);
    CHECK(queue.take_back() == nullptr);
    for (int& item : items) REQUIRE(queue.push(&item, order));
    CHECK(queue.take_back() == &items[2]);
    CHECK(queue.size() == 2);
    CHECK(queue.pop() == &items[0]);
    CHECK(queue.take_back() == &items[1]);
    CHECK(queue.take_back() == nullptr);
    CHECK(queue.empty());
    REQUIRE(queue.push(&items[0], order));
    CHECK(queue.pop() == &items[0]);
}

WEFT_TEST("steal queue: first in, first out, until it is full") {
    int items[5] = {};
    steal_queue<int, 4> queue;
    CHECK(queue.pop() == nullptr);
    for (int i = 0; i < 4; ++i) CHECK(queue.push(&items[i], order));
    CHECK(!queue.push(&items[4], order));
    CHECK(queue.size() == 4);
    CHECK(queue.pop() == &items[0]);
    CHECK(queue.push(&items[4], order));
    for (int i = 1; i < 5; ++i) CHECK(queue.pop() == &items[i]);
    CHECK(queue.empty());
}

WEFT_TEST("steal queue: a thief takes the elder half, and the one that is alone") {
    int items[5] = {};
    std::array<int*, 8> loot;
    steal_queue<int, 8> queue;
    CHECK(queue.steal(loot) == 0);
    for (int& item : items) CHECK(queue.push(&item, order));
    CHECK(queue.steal(loot) == 3);
    for (int i = 0; i < 3; ++i) CHECK(loot[static_cast<std::size_t>(i)] == &items[i]);
    CHECK(queue.pop() == &items[3]);
    CHECK(queue.steal(loot) == 1);
    CHECK(loot[0] == &items[4]);
    CHECK(queue.empty());
}

WEFT_TEST("steal queue: stress: loses and doubles nothing, capacity 2") { owner_and_thieves<2>(2); }
WEFT_TEST("steal queue: stress: loses and doubles nothing, capacity 8") { owner_and_thieves<8>(3); }
WEFT_TEST("steal queue: stress: loses and doubles nothing, capacity 256") {
    owner_and_thieves<256>(3);
}
WEFT_TEST("steal queue: stress: loses and doubles nothing where its counters wrap") {
    owner_and_thieves<2>(2, 0U - 1'000);
    owner_and_thieves<256>(3, 0U - 1'000);
}
