// parked_bytes.cpp - see parked_bytes.hpp.
//
// SPDX-License-Identifier: Apache-2.0
#include "coroutine/parked_bytes.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include <weft/base/assert.hpp>

#include "base/valgrind.hpp"

#if WEFT_ASAN
#include <sanitizer/asan_interface.h>
#endif

namespace weft::inline v0::detail {

namespace {

// How much of the stack below parked bytes a function may use without moving its stack pointer.
[[maybe_unused, nodiscard]] std::size_t red_zone(std::span<std::byte> whole_stack,
                                                 std::span<std::byte> parked) noexcept {
    return std::min<std::size_t>(128, static_cast<std::size_t>(parked.data() - whole_stack.data()));
}

}  // namespace

#if WEFT_ASAN || WEFT_TSAN

void claim_bytes(std::span<std::byte>, std::span<std::byte>) noexcept {}

// A loop that the compiler does not turn back into a call of the sanitizer's memcpy.
WEFT_NO_SANITIZE void copy_bytes(std::byte* to, const std::byte* from, std::size_t size) noexcept {
    auto* const target = reinterpret_cast<volatile std::uint64_t*>(to);
    const auto* const source = reinterpret_cast<const volatile std::uint64_t*>(from);
    for (std::size_t i = 0; i < size / 8; ++i) target[i] = source[i];
}

#else

namespace {
const bool on_valgrind = [] { return RUNNING_ON_VALGRIND != 0; }();
}

void claim_bytes(std::span<std::byte> whole_stack, std::span<std::byte> parked) noexcept {
    if (!on_valgrind) [[likely]]
        return;
    const std::size_t below = red_zone(whole_stack, parked);
    static_cast<void>(VALGRIND_MAKE_MEM_UNDEFINED(parked.data() - below, parked.size() + below));
    const std::byte* const above = parked.data() + parked.size();
    const std::byte* const high = whole_stack.data() + whole_stack.size();
    static_cast<void>(VALGRIND_MAKE_MEM_DEFINED(above, static_cast<std::size_t>(high - above)));
}

void copy_bytes(std::byte* to, const std::byte* from, std::size_t size) noexcept {
    std::memcpy(to, from, size);
}

#endif

#if WEFT_ASAN

namespace {

// One byte of shadow says what is poisoned in 2^scale bytes of memory.
struct shadow_map {
    shadow_map() noexcept { __asan_get_shadow_mapping(&scale, &offset); }
    [[nodiscard]] std::byte* of(const std::byte* address) const noexcept {
        return reinterpret_cast<std::byte*>((reinterpret_cast<std::uintptr_t>(address) >> scale) +
                                            offset);
    }
    std::size_t scale = 0;
    std::size_t offset = 0;
};

WEFT_NO_SANITIZE void copy_shadow(std::byte* to, const std::byte* from, std::size_t size) noexcept {
    auto* const target = const_cast<volatile std::byte*>(to);
    const auto* const source = const_cast<const volatile std::byte*>(from);
    for (std::size_t i = 0; i < size; ++i) target[i] = source[i];
}

}  // namespace

// The shadow of the frames, with their red zones, is kept aside. So is a copy of the bytes, for
// LSan alone: it looks for pointers neither in poisoned memory nor in a buffer of the user's.
std::uintptr_t hide_bytes(std::span<std::byte> whole_stack, std::span<std::byte> parked) noexcept {
    const shadow_map map;
    const std::size_t size = parked.size() >> map.scale;
    auto* const kept = static_cast<std::byte*>(std::malloc(parked.size() + size + 1));
    WEFT_ASSERT(kept != nullptr, "coroutine: no memory for ASan's shadow of a parked one");
    copy_bytes(kept, parked.data(), parked.size());
    copy_shadow(kept + parked.size(), map.of(parked.data()), size);
    close_stack(whole_stack);
    return reinterpret_cast<std::uintptr_t>(kept);
}

bool show_bytes(std::span<std::byte> whole_stack, std::span<std::byte> parked,
                std::uintptr_t hidden) noexcept {
    const shadow_map map;
    auto* const kept = reinterpret_cast<std::byte*>(hidden);
    open_stack(whole_stack);
    copy_shadow(map.of(parked.data()), kept + parked.size(), parked.size() >> map.scale);
    std::free(kept);
    return true;
}

void close_stack(std::span<std::byte> whole_stack) noexcept {
    __asan_poison_memory_region(whole_stack.data(), whole_stack.size());
}

void open_stack(std::span<std::byte> whole_stack) noexcept {
    __asan_unpoison_memory_region(whole_stack.data(), whole_stack.size());
}

#elif WEFT_CHECKS

namespace {

// Inverts every word and returns a sum over what the words are, or were, while they are usable.
WEFT_NO_SANITIZE std::uintptr_t invert(std::span<std::byte> parked, bool usable_before) noexcept {
    auto* const words = reinterpret_cast<volatile std::uint64_t*>(parked.data());
    std::uintptr_t sum = 0;
    for (std::size_t i = 0; i < parked.size() / 8; ++i) {
        const std::uint64_t word = words[i];
        sum = sum * 31 + (usable_before ? word : ~word);
        words[i] = ~word;
    }
    static_cast<void>(VALGRIND_MAKE_MEM_DEFINED(&sum, sizeof sum));  // frames have holes
    return sum;
}

}  // namespace

std::uintptr_t hide_bytes(std::span<std::byte>, std::span<std::byte> parked) noexcept {
    return invert(parked, true);
}

// What lies below the stack pointer was not kept (context::lowest_kept()); nobody may expect it.
bool show_bytes(std::span<std::byte> whole_stack, std::span<std::byte> parked,
                std::uintptr_t hidden) noexcept {
    const std::size_t room = red_zone(whole_stack, parked);
    auto* const below = const_cast<volatile std::byte*>(parked.data() - room);
    static_cast<void>(VALGRIND_MAKE_MEM_UNDEFINED(parked.data() - room, room));
    for (std::size_t i = 0; i < room; ++i) below[i] = std::byte{0xa5};
    return invert(parked, false) == hidden;
}

#else

std::uintptr_t hide_bytes(std::span<std::byte>, std::span<std::byte>) noexcept { return 0; }

bool show_bytes(std::span<std::byte>, std::span<std::byte>, std::uintptr_t) noexcept {
    return true;
}

#endif

#if !WEFT_ASAN

void close_stack(std::span<std::byte>) noexcept {}
void open_stack(std::span<std::byte>) noexcept {}

#endif

}  // namespace weft::inline v0::detail
