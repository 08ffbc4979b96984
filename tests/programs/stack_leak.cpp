// stack_leak.cpp - objects that only a stack knows, for LeakSanitizer.
//
//     stack_leak depot|user kept|lost|ended
//     stack_leak depot trimmed
//     stack_leak user fibers
//
// Kept: what suspended coroutines know is not lost, and the program ends with status 0. Lost: they
// forget it before they are suspended, and LeakSanitizer says so. Fibers: as kept, for fibers of
// every kind. Ended: only the stacks of coroutines that have ended know, and those went back.
// Trimmed: as kept, on stacks that the depot had trimmed before.
//
// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

#include <weft/coroutine/coroutine.hpp>
#include <weft/coroutine/shared_stack.hpp>
#include <weft/exec/loop.hpp>
#include <weft/fiber/go.hpp>
#include <weft/fiber/this_fiber.hpp>
#include <weft/stack/stack_depot.hpp>

#include "arena_stacks.hpp"
#include "program_support.hpp"

#if WEFT_ASAN
#include <sanitizer/lsan_interface.h>
#endif

namespace {

struct object {
    long numbers[100] = {};
    std::unique_ptr<object> next;
};

// Reachable to the end, and never destroyed.
struct everything {
    std::vector<weft::coroutine> coroutines;
    std::vector<weft::ucontext_coroutine> portable;
    std::vector<weft::swapped_coroutine> swapped;
    weft::stack_depot other_stacks;
    weft_test::arena_stacks users_stacks{64};
    weft::shared_stack shared{{.stacks = &users_stacks}};
    weft::loop loop{{.stacks = &users_stacks}};
};
everything* all = nullptr;

[[gnu::noinline]] std::unique_ptr<object> make_two() {
    auto made = std::make_unique<object>();
    made->next = std::make_unique<object>();
    return made;
}

template <class Wait>
void keep_two(Wait wait) {
    const auto two = make_two();
    wait();
    weft_test::require(two->next != nullptr);
}

[[gnu::noinline]] void lose_two() { static_cast<void>(make_two().release()); }

// Writes over what earlier calls left on the stack.
[[gnu::noinline]] void wipe() {
    volatile std::byte bytes[8192];
    for (volatile std::byte& byte : bytes) byte = std::byte{0};
}

void suspend_coroutines(bool users, bool lose) {
    const auto body = [lose] {
        if (!lose) return keep_two(weft::this_coroutine::yield);
        for (int i = 0; i < 10; ++i) lose_two();
        wipe();
        weft::this_coroutine::yield();
    };
    if (users) {
        for (int i = 0; i < 20; ++i) {
            all->coroutines.emplace_back(weft::coroutine_options{.stacks = &all->users_stacks},
                                         body);
            all->portable.emplace_back(weft::coroutine_options{.stacks = &all->users_stacks}, body);
        }
        for (int i = 0; i < 3; ++i)  // the last stays on the stack
            all->swapped.emplace_back(weft::coroutine_options{.shared = &all->shared}, body);
    } else {
        for (int i = 0; i < 100; ++i) all->coroutines.emplace_back(body);
        for (const std::size_t size : {std::size_t{16} << 10, std::size_t{16} << 20})
            all->coroutines.emplace_back(
                weft::coroutine_options{.stack_size = size, .stacks = &all->other_stacks}, body);
    }
    for (auto& c : all->coroutines) c.resume();
    for (auto& c : all->portable) c.resume();
    for (auto& c : all->swapped) c.resume();
}

void end_coroutines(bool users) {
    all->users_stacks.set_wiping(false);
    weft::stack_source* const stacks = users ? &all->users_stacks : &weft::shared_stacks();
    for (int i = 0; i < 10; ++i)
        all->coroutines.emplace_back(weft::coroutine_options{.stacks = stacks}, [] {
            object* volatile known = make_two().release();
            static_cast<void>(known);
        });
    for (auto& c : all->coroutines) c.resume();
}

void trim_stacks() {
    std::vector<weft::coroutine> some;
    for (int i = 0; i < 60; ++i) some.emplace_back(weft::this_coroutine::yield);
    for (auto& c : some) c.resume();
    some.clear();
    weft_test::require(weft::shared_stack_depot().trim() >= 60);
}

// The check runs on a fiber, while the others wait.
void run_fibers() {
    for (const auto kind :
         {weft::stack_kind::own, weft::stack_kind::ucontext, weft::stack_kind::swapped})
        weft::go(all->loop, {.kind = kind}, [] { keep_two(weft::yield); });
    weft::go(all->loop, [] {
#if WEFT_ASAN
        weft_test::require(__lsan_do_recoverable_leak_check() == 0);
#endif
    });
    all->loop.run();
}

}  // namespace

int main(int argc, char** argv) {
    weft_test::require(argc == 3);
    const bool users = std::string_view(argv[1]) == "user";
    const std::string_view what = argv[2];
    all = new everything;
    if (what == "trimmed") trim_stacks();
    if (what == "fibers")
        run_fibers();
    else if (what == "ended")
        end_coroutines(users);
    else
        suspend_coroutines(users, what == "lost");
}
