// stack_leak.cpp - objects that only the stack of a suspended coroutine knows, for LeakSanitizer.
//
//     stack_leak kept|lost
//
// Kept: nothing is lost, and the program ends with status 0. Lost: the coroutines forget what they
// know before they are suspended, and LeakSanitizer says so.
//
// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

#include <weft/coroutine/coroutine.hpp>
#include <weft/stack/stack_depot.hpp>

#include "program_support.hpp"

namespace {

struct object {
    long numbers[100] = {};
    std::unique_ptr<object> next;
};

// Reachable to the end, and never destroyed.
struct everything {
    std::vector<weft::coroutine> coroutines;
    weft::stack_depot other_stacks;
};
everything* all = nullptr;

[[gnu::noinline]] std::unique_ptr<object> make_two() {
    auto made = std::make_unique<object>();
    made->next = std::make_unique<object>();
    return made;
}

void keep_two() {
    const auto two = make_two();
    weft::this_coroutine::yield();
    weft_test::require(two->next != nullptr);
}

[[gnu::noinline]] void lose_two() { static_cast<void>(make_two().release()); }

// Writes over what earlier calls left on the stack.
[[gnu::noinline]] void wipe() {
    volatile std::byte bytes[8192];
    for (volatile std::byte& byte : bytes) byte = std::byte{0};
}

}  // namespace

int main(int argc, char** argv) {
    weft_test::require(argc == 2);
    const bool lose = std::string_view(argv[1]) == "lost";
    all = new everything;
    const auto body = [lose] {
        if (!lose) return keep_two();
        for (int i = 0; i < 10; ++i) lose_two();
        wipe();
        weft::this_coroutine::yield();
    };
    for (int i = 0; i < 100; ++i) all->coroutines.emplace_back(body);
    for (const std::size_t size : {std::size_t{16} << 10, std::size_t{16} << 20})
        all->coroutines.emplace_back(
            weft::coroutine_options{.stack_size = size, .stacks = &all->other_stacks}, body);
    for (weft::coroutine& c : all->coroutines) c.resume();
}
