// weft_parked.cpp - what a parked swapped coroutine holds, beside the bytes of stack that it uses.
//
// How much it uses is read from a shared stack that was painted before: from its high end down to
// the lowest word that was written, the frames of yield() included. The ABI keeps the stack pointer
// at a multiple of 16 wherever a call may be, so the last frame goes down to the next such address.
//
// SPDX-License-Identifier: Apache-2.0
#include <malloc.h>

#include <vector>

#include <weft/coroutine/coroutine.hpp>
#include <weft/coroutine/shared_stack.hpp>
#include <weft/stack/watermark.hpp>

#include "support/row.hpp"

namespace {

// A body with that many bytes of locals, which it still knows after it was parked.
template <std::size_t Locals>
struct body {
    void operator()() const {
        std::byte locals[Locals];
        locals[0] = locals[Locals - 1] = std::byte{42};
        bench::keep(locals);
        weft::this_coroutine::yield();
        bench::keep(locals);
        bench::require(locals[0] == std::byte{42} && locals[Locals - 1] == std::byte{42},
                       "locals survive");
    }
};

std::size_t stack_in_use(const weft::stack& painted) {
    constexpr std::size_t alignment = 16;
    return (weft::high_water_mark(painted) + alignment - 1) / alignment * alignment;
}

std::size_t heap_in_use() {
    const auto heap = ::mallinfo2();
    return heap.uordblks + heap.hblkhd;
}

/// Somebody else runs on the stack, so that the last one to use it is copied out.
void displace(weft::shared_stack& shared) {
    weft::swapped_coroutine other({.shared = &shared}, [] {});
    other.resume();
}

template <std::size_t Locals>
void measure(const bench::settings& how, std::string_view at) {
    weft::shared_stack shared;
    displace(shared);  // the first switch of a thread does more than others, and deeper
    weft::paint(shared.where());
    weft::swapped_coroutine one({.shared = &shared}, body<Locals>());
    one.resume();
    bench::report({"stack in use", "B", at}, static_cast<double>(stack_in_use(shared.where())));
    displace(shared);
    bench::require(shared.counters().copies_out == 1, "the parked one was copied out");
    bench::report({"its buffer", "B", at}, static_cast<double>(one.backend().buffer_size()));

    const std::size_t count = how.quick ? 100 : 10'000;
    std::vector<weft::swapped_coroutine> parked;
    parked.reserve(count);
    const std::size_t before = heap_in_use();
    for (std::size_t i = 0; i < count; ++i) {
        parked.emplace_back(weft::coroutine_options{.shared = &shared}, body<Locals>());
        parked.back().resume();
    }
    displace(shared);
    bench::report({"its heap in all", "B", at},
                  static_cast<double>(heap_in_use() - before) / static_cast<double>(count));
    for (weft::swapped_coroutine& c : parked) c.resume();
    one.resume();
}

}  // namespace

int main(int argc, char** argv) {
    const bench::settings how = bench::read_arguments(argc, argv);
    measure<8>(how, "8 B of locals");
    measure<1'000>(how, "1,000 B");
    measure<10'000>(how, "10,000 B");
}
