// swapped_support.hpp - what tests of swapped coroutines use: buffers that are counted, stack that
// is used.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <weft/coroutine/coroutine.hpp>
#include <weft/coroutine/shared_stack.hpp>

#include <alloca.h>

#include <cstddef>
#include <cstring>
#include <map>
#include <new>
#include <vector>

#include "weft_test.hpp"

namespace weft_test {

/// Hands out buffers and knows each; fails on request, or if one comes back with another size.
class counting_allocator final : public weft::swap_allocator {
public:
    ~counting_allocator() override { EXPECT_TRUE(held_.empty()) << "a buffer was not released"; }

    void* allocate(std::size_t size) override {
        if (failing) throw std::bad_alloc();
        void* const buffer = ::operator new(size);
        sizes.push_back(size);
        held_[buffer] = size;
        return buffer;
    }
    void release(void* buffer, std::size_t size) noexcept override {
        const auto found = held_.find(buffer);
        EXPECT_TRUE(found != held_.end() && found->second == size) << "not a buffer of ours";
        held_.erase(buffer);
        ::operator delete(buffer, size);
    }

    [[nodiscard]] std::size_t held() const { return held_.size(); }
    [[nodiscard]] std::size_t held_bytes() const {
        std::size_t sum = 0;
        for (const auto& [buffer, size] : held_) sum += size;
        return sum;
    }

    bool failing = false;
    std::vector<std::size_t> sizes;  // of all that were ever allocated

private:
    std::map<void*, std::size_t> held_;
};

/// Yields with that many more bytes on the stack; tells whether they are still there afterwards.
[[gnu::noinline]] inline bool yield_holding(std::size_t bytes) {
    auto* const room = static_cast<unsigned char*>(::alloca(bytes));
    std::memset(room, 0x5a, bytes);
    asm volatile("" : : "r"(room) : "memory");
    weft::this_coroutine::yield();
    for (std::size_t i = 0; i < bytes; ++i) {
        if (room[i] != 0x5a) return false;
    }
    return true;
}

}  // namespace weft_test
