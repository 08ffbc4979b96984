// watermark_test.cpp - the high-water mark tells the lowest byte that was written.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/stack/watermark.hpp>

#include <algorithm>
#include <vector>

#include "weft_test.hpp"

using weft::high_water_mark;
using weft::stack;

namespace {

constexpr std::size_t size = 4096;

struct painted_memory {
    painted_memory() { weft::paint(whole); }

    alignas(16) std::byte bytes[size];
    stack whole{bytes, size};
};

}  // namespace

WEFT_TEST("watermark: a painted stack on which nothing ran has none") {
    const painted_memory memory;
    CHECK(high_water_mark(memory.whole) == 0);
}

WEFT_TEST("watermark: one byte that was written is found, to the word") {
    for (std::size_t offset = 0; offset < size; ++offset) {
        painted_memory memory;
        memory.bytes[offset] ^= std::byte{1};
        const std::size_t used = size - offset;
        const std::size_t mark = high_water_mark(memory.whole);
        REQUIRE(mark >= used);
        REQUIRE(mark < used + 8);
    }
}

WEFT_TEST("watermark: the lowest byte counts, whatever is untouched above it") {
    painted_memory memory;
    memory.bytes[size - 8] = std::byte{0};
    CHECK(high_water_mark(memory.whole) == 8);
    memory.bytes[1024] = std::byte{0};
    CHECK(high_water_mark(memory.whole) == size - 1024);
    memory.bytes[2048] = std::byte{0};
    CHECK(high_water_mark(memory.whole) == size - 1024);
}

WEFT_TEST("watermark: a stack used to its last byte is used whole") {
    painted_memory memory;
    std::ranges::fill(memory.bytes, std::byte{0});
    CHECK(high_water_mark(memory.whole) == size);
}

WEFT_TEST("watermark: painting again starts anew") {
    painted_memory memory;
    std::ranges::fill(memory.bytes, std::byte{0});
    weft::paint(memory.whole);
    CHECK(high_water_mark(memory.whole) == 0);
}

WEFT_TEST("watermark: painting touches nothing beside the stack") {
    std::vector<std::byte> bytes(3 * size, std::byte{0x5a});
    weft::paint({bytes.data() + size, size});
    const auto is_untouched = [](std::byte byte) { return byte == std::byte{0x5a}; };
    CHECK(std::all_of(bytes.begin(), bytes.begin() + size, is_untouched));
    CHECK(std::none_of(bytes.begin() + size, bytes.begin() + 2 * size, is_untouched));
    CHECK(std::all_of(bytes.begin() + 2 * size, bytes.end(), is_untouched));
}

WEFT_TEST("watermark: a stack of the depot is painted whole") {
    const stack s = weft::shared_stacks().take(weft::default_stack_size());
    weft::paint(s);
    CHECK(high_water_mark(s) == 0);
    *s.low = std::byte{0};
    CHECK(high_water_mark(s) == s.size);
    weft::shared_stacks().give_back(s);
}
