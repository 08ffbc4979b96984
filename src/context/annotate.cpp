// annotate.cpp - the record that a context keeps for the sanitizers: made with it, gone with it.
//
// SPDX-License-Identifier: Apache-2.0
#include "context/annotate.hpp"

#include <new>
#include <utility>

#include "base/valgrind.hpp"

namespace weft::inline v0::detail {

void make_plain_memory([[maybe_unused]] std::span<std::byte> memory) noexcept {
    static_cast<void>(VALGRIND_MAKE_MEM_UNDEFINED(memory.data(), memory.size()));
}

#if WEFT_ASAN

// A stack is often used again: the red zones of frames that were left and never unwound are lifted.
switch_record::switch_record(std::span<std::byte> stack, void*)
    : stack_low(stack.data()), stack_size(stack.size()) {
    __asan_unpoison_memory_region(stack.data(), stack.size());
}

switch_record::~switch_record() = default;

#elif WEFT_TSAN

switch_record::switch_record(std::span<std::byte> stack, void* pooled_tsan_fiber)
    : stack_low(stack.data()), stack_size(stack.size()), tsan_fiber(pooled_tsan_fiber) {
    if (tsan_fiber != nullptr) return;
    tsan_fiber = __tsan_create_fiber(0);
    if (tsan_fiber == nullptr) throw std::bad_alloc();
    own_tsan_fiber = tsan_fiber;
}

switch_record::~switch_record() {
    if (own_tsan_fiber != nullptr) __tsan_destroy_fiber(own_tsan_fiber);
}

#endif

#if WEFT_ASAN || WEFT_TSAN

switch_record::switch_record(switch_record&& other) noexcept { *this = std::move(other); }

switch_record& switch_record::operator=(switch_record&& other) noexcept {
    std::swap(stack_low, other.stack_low);
    std::swap(stack_size, other.stack_size);
    std::swap(tsan_fiber, other.tsan_fiber);
    std::swap(own_tsan_fiber, other.own_tsan_fiber);
    return *this;
}

#endif

}  // namespace weft::inline v0::detail
