// region_test.cpp - the overflow handler's question: whose guard holds this address?
//
// SPDX-License-Identifier: Apache-2.0
#include "stack/region.hpp"

#include <weft/stack/stack_depot.hpp>

#include <sys/mman.h>

#include <atomic>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "stack/guard.hpp"
#include "weft_test.hpp"

using weft::stack;
using weft::detail::add_region;
using weft::detail::guard_size;
using weft::detail::is_in_region;
using weft::detail::region;
using weft::detail::remove_region;
using weft::detail::stack_guarded_at;

namespace {

constexpr std::size_t stride = 3 * guard_size;
constexpr std::size_t slots = 4;

// Addresses that belong to nobody else, nor do their neighbours, and that are never touched.
class addresses {
public:
    addresses() {
        if (reserved_ == MAP_FAILED) throw std::runtime_error("mmap");
        base = static_cast<std::byte*>(reserved_) + stride;
    }
    addresses(const addresses&) = delete;
    addresses& operator=(const addresses&) = delete;
    ~addresses() { ::munmap(reserved_, size_); }

    std::byte* base;

private:
    static constexpr std::size_t size_ = (slots + 2) * stride;
    void* reserved_ =
        ::mmap(nullptr, size_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
};

}  // namespace

WEFT_TEST("region: an address in a guard leads to the stack above it") {
    const addresses some;
    region* const added = add_region(some.base, slots * stride, stride);
    for (std::size_t slot = 0; slot < slots; ++slot) {
        std::byte* const low = some.base + slot * stride + guard_size;
        for (const std::byte* address : {low - guard_size, low - guard_size / 2, low - 1}) {
            const stack found = stack_guarded_at(address);
            CHECK(found.low == low);
            CHECK(found.size == stride - guard_size);
        }
    }
    remove_region(added);
}

WEFT_TEST("region: an address in a stack, or outside, is no overflow") {
    const addresses some;
    region* const added = add_region(some.base, slots * stride, stride);
    for (std::size_t slot = 0; slot < slots; ++slot) {
        std::byte* const low = some.base + slot * stride + guard_size;
        CHECK(!stack_guarded_at(low));
        CHECK(!stack_guarded_at(low + (stride - guard_size) - 1));
    }
    CHECK(!stack_guarded_at(some.base - 1));
    CHECK(!stack_guarded_at(some.base + slots * stride));
    CHECK(!stack_guarded_at(nullptr));
    remove_region(added);
}

WEFT_TEST("region: every address in it is in one, and none outside") {
    const addresses some;
    region* const added = add_region(some.base, slots * stride, stride);
    for (const std::size_t offset : {std::size_t{0}, guard_size, stride, slots * stride - 1})
        CHECK(is_in_region(some.base + offset));
    CHECK(!is_in_region(some.base - 1));
    CHECK(!is_in_region(some.base + slots * stride));
    remove_region(added);
}

WEFT_TEST("region: one that was removed is not found any more") {
    const addresses some;
    region* const added = add_region(some.base, slots * stride, stride);
    CHECK(stack_guarded_at(some.base));
    remove_region(added);
    CHECK(!stack_guarded_at(some.base));
    CHECK(!is_in_region(some.base));
}

WEFT_TEST("region: the place of one that was removed is used again") {
    const addresses some;
    std::set<region*> places;
    for (int i = 0; i < 100; ++i) {
        region* const added = add_region(some.base, slots * stride, stride);
        places.insert(added);
        remove_region(added);
    }
    CHECK(places.size() == 1);
}

WEFT_TEST("region: several are told apart, also when they are used again with another stride") {
    const addresses one;
    const addresses two;
    region* const first = add_region(one.base, slots * stride, stride);
    region* const second = add_region(two.base, slots * stride, stride);
    CHECK(first != second);
    CHECK(stack_guarded_at(one.base + stride).low == one.base + stride + guard_size);
    CHECK(stack_guarded_at(two.base + stride).low == two.base + stride + guard_size);
    remove_region(first);
    CHECK(stack_guarded_at(two.base));
    region* const again = add_region(one.base, slots * stride, 2 * stride);
    CHECK(!stack_guarded_at(one.base + stride));
    CHECK(stack_guarded_at(one.base + 2 * stride).size == 2 * stride - guard_size);
    remove_region(again);
    remove_region(second);
}

WEFT_TEST("region: the guards of a depot's stacks are known as long as it exists") {
    std::vector<stack> taken;
    {
        weft::stack_depot depot;
        for (const std::size_t size : {std::size_t{4096}, weft::default_stack_size(),
                                       std::size_t{512} * 1024, std::size_t{9} << 20})
            taken.push_back(depot.take(size));
        for (const stack& s : taken) {
            CHECK(stack_guarded_at(s.low - 1).low == s.low);
            CHECK(stack_guarded_at(s.low - 1).size == s.size);
            CHECK(stack_guarded_at(s.low - guard_size).low == s.low);
            CHECK(!stack_guarded_at(s.low));
        }
        depot.give_back(taken.back());
        CHECK(!stack_guarded_at(taken.back().low - 1));
        taken.pop_back();
        for (const stack& s : taken) depot.give_back(s);
        for (const stack& s : taken) CHECK(stack_guarded_at(s.low - 1).low == s.low);
    }
    for (const stack& s : taken) CHECK(!stack_guarded_at(s.low - 1));
}

WEFT_TEST("region: one that stays is found under stress by others that come and go") {
    const long rounds = weft_test::stress_count(1'000'000);
    const addresses lasting;
    region* const added = add_region(lasting.base, slots * stride, stride);
    std::atomic<int> running = 2;
    const auto come_and_go = [&] {
        const addresses own;
        for (long i = 0; i < rounds; ++i) {
            region* const a = add_region(own.base, slots * stride, stride);
            region* const b = add_region(own.base, stride, stride);
            remove_region(a);
            remove_region(b);
        }
        --running;
    };
    std::thread one(come_and_go);
    std::thread two(come_and_go);
    bool right = true;
    do {
        for (std::size_t slot = 0; slot < slots; ++slot) {
            std::byte* const guard = lasting.base + slot * stride;
            if (stack_guarded_at(guard).low != guard + guard_size) right = false;
        }
    } while (running > 0);
    one.join();
    two.join();
    CHECK(right);
    remove_region(added);
}
