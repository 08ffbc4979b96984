// coroutine_memory.cpp - the life of some coroutines, for a tool that watches every access to
// memory.
//
//     coroutine_memory own|ucontext|thread|swapped [arena]
//
// Says "right" if everything was. With an arena the stacks come from a user's source, side by side.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/coroutine/coroutine.hpp>
#include <weft/coroutine/generator.hpp>
#include <weft/coroutine/shared_stack.hpp>
#include <weft/coroutine/thread_cache.hpp>
#include <weft/exec/loop.hpp>
#include <weft/fiber/go.hpp>
#include <weft/fiber/this_fiber.hpp>

#include <array>
#include <cstddef>
#include <cstdio>
#include <numeric>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "arena_stacks.hpp"

using weft::this_coroutine::yield;

namespace {

[[gnu::noinline]] int sum_over_yields(int depth) {
    std::array<int, 50> local{};
    std::iota(local.begin(), local.end(), depth);
    if (depth > 0)
        local[0] += sum_over_yields(depth - 1);
    else
        yield();
    return std::accumulate(local.begin(), local.end(), 0);
}

int expected_sum(int depth) {
    int sum = 0;
    for (int d = 0; d <= depth; ++d) sum += 50 * d + 49 * 50 / 2;
    return sum;
}

template <class Coroutine>
bool take_turns(const weft::coroutine_options& options) {
    std::vector<int> sums(10);
    std::vector<Coroutine> all;
    for (int i = 0; i < 10; ++i) {
        all.emplace_back(options, [&sum = sums[static_cast<std::size_t>(i)], i] {
            for (int n = 0; n < 3; ++n) sum += sum_over_yields(i);
        });
    }
    for (int n = 0; n < 4; ++n) {
        for (Coroutine& c : all) c.resume();
    }
    bool right = true;
    for (int i = 0; i < 10; ++i)
        right = right && sums[static_cast<std::size_t>(i)] == 3 * expected_sum(i);
    return right;
}

template <class Coroutine>
bool throw_and_unwind(const weft::coroutine_options& options) {
    int caught = 0;
    int unwound = 0;
    struct counter {
        int& count;
        ~counter() { ++count; }
    };
    for (int i = 0; i < 5; ++i) {
        Coroutine waits(options, [&] {
            const counter one{unwound};
            static_cast<void>(sum_over_yields(5));
        });
        Coroutine throws(options, [&] {
            try {
                throw std::runtime_error("first");
            } catch (const std::exception&) {
                waits.resume();
                yield();
                throw;
            }
        });
        throws.resume();
        try {
            throws.resume();
        } catch (const std::exception&) { ++caught; }
        const Coroutine never_started(options, [] {});
    }
    return caught == 5 && unwound == 5;
}

bool generate(const weft::coroutine_options& options) {
    weft::generator<int> numbers({.stacks = options.stacks}, [](auto& yield_value) {
        for (int i = 0;; ++i) yield_value(i);
    });
    int sum = 0;
    for (const int i : numbers) {
        if (i == 100) break;
        sum += i;
    }
    return sum == 4950;
}

// Swapped fibers that wait in coroutines of that kind.
template <class Coroutine>
bool wait_inside(weft::stack_source* stacks) {
    std::array<int, 4> sums{};
    using weft::shared_stack;
    std::array<shared_stack, 4> shared{
        shared_stack{{.stacks = stacks}}, shared_stack{{.stacks = stacks}},
        shared_stack{{.stacks = stacks}}, shared_stack{{.stacks = stacks}}};
    weft::loop s({.stacks = stacks});
    for (std::size_t i = 0; i < sums.size(); ++i)
        weft::go(s, {.kind = weft::stack_kind::swapped}, [&, i] {
            int& sum = sums[i];
            shared_stack& mine = shared[i];
            std::array<int, 40> local{};
            std::iota(local.begin(), local.end(), 1);
            Coroutine c({.stacks = stacks, .shared = &mine}, [&local] {
                std::array<int, 30> inside{};
                for (std::size_t n = 0; n < inside.size(); ++n) {
                    weft::yield();
                    inside[n] = local[n];
                    if (n % 3 == 0) yield();
                }
                local[0] += std::accumulate(inside.begin(), inside.end(), 0);
            });
            while (!c.done()) {
                c.resume();
                weft::yield();
            }
            sum = std::accumulate(local.begin(), local.end(), 0);
        });
    s.run();
    return sums == std::array{1285, 1285, 1285, 1285};
}

// Fibers go from one's stack to the next one's.
bool pass_on(weft::stack_kind kind, weft::stack_source* stacks) {
    std::array<int, 5> sums{};
    weft::loop s({.stacks = stacks});
    for (int& sum : sums)
        weft::go(s, {.kind = kind}, [&sum] {
            std::array<int, 50> local{};
            for (int& number : local) {
                weft::yield();
                number = 1;
            }
            sum = std::accumulate(local.begin(), local.end(), 0);
        });
    s.run();
    return sums == std::array{50, 50, 50, 50, 50};
}

int say(bool right) {
    std::puts(right ? "right" : "wrong");
    return right ? 0 : 1;
}

template <class Coroutine>
int run(const weft::coroutine_options& options, weft::stack_kind kind) {
    return say(take_turns<Coroutine>(options) && throw_and_unwind<Coroutine>(options) &&
               generate(options) && pass_on(kind, options.stacks));
}

}  // namespace

int main(int argc, char** argv) {
    const std::string_view backend = argc >= 2 ? argv[1] : "own";
    weft_test::arena_stacks arena(32);
    weft::stack_source* const stacks = argc == 3 ? &arena : nullptr;
    if (backend == "ucontext")
        return run<weft::ucontext_coroutine>({.stacks = stacks}, weft::stack_kind::ucontext);
    if (backend == "thread") {
        weft::thread_cache threads;
        return run<weft::thread_coroutine>({.stacks = stacks, .threads = &threads},
                                           weft::stack_kind::thread);
    }
    if (backend == "swapped") {
        weft::shared_stack shared({.stacks = stacks});
        const bool waited = wait_inside<weft::coroutine>(stacks) &&
                            wait_inside<weft::ucontext_coroutine>(stacks) &&
                            wait_inside<weft::swapped_coroutine>(stacks);
        return waited ? run<weft::swapped_coroutine>({.stacks = stacks, .shared = &shared},
                                                     weft::stack_kind::swapped)
                      : say(false);
    }
    return run<weft::coroutine>({.stacks = stacks}, weft::stack_kind::own);
}
