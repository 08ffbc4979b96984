// swapped_switch_test.cpp - swapped fibers of a worker, on its several shared stacks: whichever way
// they come to each other, each finds its locals, its exceptions and its coroutines again.
//
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <weft/coroutine/coroutine.hpp>
#include <weft/exec/loop.hpp>
#include <weft/exec/pool.hpp>
#include <weft/fiber/fiber.hpp>
#include <weft/fiber/go.hpp>
#include <weft/fiber/suspend.hpp>
#include <weft/fiber/suspend_hook.hpp>
#include <weft/fiber/this_fiber.hpp>

#include "fiber/fiber_block.hpp"
#include "loops.hpp"
#include "scarce_stacks.hpp"

using namespace weft;
using namespace std::chrono_literals;

namespace {

constexpr fiber_options swapped{.kind = stack_kind::swapped};

// Locals with a pattern, and a pointer among them, as deep as it is told.
[[gnu::noinline]] bool keeps_its_locals(std::size_t seed, std::size_t depth, auto between) {
    std::array<std::size_t, 24> mine;
    for (std::size_t i = 0; i < mine.size(); ++i) mine[i] = seed * 31 + depth * 7 + i;
    std::size_t* volatile middle = &mine[mine.size() / 2];
    if (depth == 0)
        between();
    else if (!keeps_its_locals(seed, depth - 1, between))
        return false;
    for (std::size_t i = 0; i < mine.size(); ++i)
        if (mine[i] != seed * 31 + depth * 7 + i) return false;
    return middle == &mine[mine.size() / 2] && *middle == seed * 31 + depth * 7 + mine.size() / 2;
}

// For fibers of one thread: a count, and who waits for it.
class gate {
public:
    explicit gate(bool cancellable) : waits_{"waits at a gate", cancellable} {}
    void open() {
        ++count_;
        waiter* const woken = std::exchange(waiting_, nullptr);
        if (woken != nullptr && woken->claim()) woken->wake();
    }
    void pass() {
        if (count_ == 0)
            wait(waits_, no_deadline, [this](waiter& me) noexcept {
                if (count_ != 0) return false;  // opened since it left its stack
                waiting_ = &me;
                return true;
            });
        --count_;
    }

private:
    wait_reason waits_;
    long count_ = 0;
    waiter* waiting_ = nullptr;
};

// Fibers of one worker that stop in all ways that there are; each opens the next one's gate and
// passes its own. Returns how many kept everything.
template <class Executor>
std::size_t crowd(Executor& where, std::size_t count, std::size_t rounds, unsigned worker) {
    std::vector<std::unique_ptr<gate>> gates;
    for (std::size_t i = 0; i < count; ++i) gates.push_back(std::make_unique<gate>(i % 2 == 0));
    std::atomic<std::size_t> right = 0;
    fiber_options options = swapped;
    options.worker = worker;
    for (std::size_t i = 0; i < count; ++i)
        go(where, options, [&gates, &right, i, count, rounds] {
            bool kept = true;
            for (std::size_t round = 0; round < rounds; ++round)
                kept = kept && keeps_its_locals(i + round, (i + round) % 5, [&] {
                           if ((i + round) % 3 == 0) yield();
                           if ((i + round) % 17 == 0) sleep_for(1us);
                           gates[(i + 1) % count]->open();
                           gates[i]->pass();
                       });
            if (kept) ++right;
        });
    if constexpr (std::is_same_v<Executor, loop>)
        CHECK(!where.run());
    else
        where.drain();
    return right;
}

}  // namespace

WEFT_TEST("swapped: a few that begin one after the other lie on different stacks") {
    loop s;
    std::vector<std::uintptr_t> places;
    for (int i = 0; i < 20; ++i)
        go(s, swapped, [&places] {
            int local = 0;
            places.push_back(reinterpret_cast<std::uintptr_t>(&local));
            yield();
            CHECK(places[0] != 0);
        });
    CHECK(!s.run());
    REQUIRE(places.size() == 20);
    std::ranges::sort(places);
    const auto end = std::ranges::unique(places).begin();
    CHECK(end - places.begin() == 16);
}

WEFT_TEST("swapped: a worker has as many shared stacks as its source has, if there are fewer") {
    weft_test::scarce_stacks source(3);
    {
        loop s({.stacks = &source});
        CHECK(crowd(s, 10, 10, 0) == 10);
        CHECK(source.left == 0);
    }
    CHECK(source.left == 3);
}

WEFT_TEST("swapped: more than there are stacks, stopping in all ways, keep their locals") {
    for (const std::size_t count : {2U, 15U, 16U, 17U, 100U}) {
        {
            loop s;
            CHECK(crowd(s, count, 20, 0) == count);
        }
        for (const unsigned workers : {1U, 2U}) {
            pool p({.workers = workers});
            CHECK(crowd(p, count, 20, workers - 1) == count);
        }
    }
}

WEFT_TEST("swapped: a wait inside a catch block and inside a coroutine, many at once") {
    loop s;
    int right = 0;
    for (int i = 0; i < 40; ++i)
        go(s, swapped, [&right, i] {
            try {
                throw std::runtime_error("number " + std::to_string(i));
            } catch (const std::exception& mine) {
                coroutine inside([] {
                    yield();  // the fiber waits, on the coroutine's stack
                    this_coroutine::yield();
                    yield();
                });
                inside.resume();
                yield();
                inside.resume();
                const std::exception_ptr again = std::current_exception();
                try {
                    std::rethrow_exception(again);
                } catch (const std::exception& same) {
                    yield();
                    if (same.what() == "number " + std::to_string(i) &&
                        mine.what() == std::string(same.what()))
                        ++right;
                }
            }
            CHECK(std::uncaught_exceptions() == 0);
        });
    CHECK(!s.run());
    CHECK(right == 40);
}

WEFT_TEST("swapped: others of another kind, hooks, beginnings and ends in between") {
    struct counting final : suspend_hook {
        void suspend() override {
            ++seen;
            suspend_hook::suspend();
        }
        int seen = 0;
    };
    loop s;
    int ended = 0;
    int hooked = 0;
    for (int i = 0; i < 60; ++i) {
        const auto kind = i % 3 == 0 ? stack_kind::own : stack_kind::swapped;
        go(s, {.kind = kind}, [&, i] {
            const auto hook = std::make_unique<counting>();
            if (i % 5 == 0) static_cast<void>(this_fiber::set_suspend_hook(hook.get()));
            for (int n = 0; n < i % 11; ++n) {
                yield();
                if (n == 3) go(swapped, [&ended] { ++ended; });
            }
            static_cast<void>(this_fiber::set_suspend_hook(nullptr));
            hooked += hook->seen;
            ++ended;
        });
    }
    CHECK(!s.run());
    int expected_ends = 60;
    int expected_hooks = 0;
    for (int i = 0; i < 60; ++i) {
        if (i % 11 > 3) ++expected_ends;
        if (i % 5 == 0) expected_hooks += i % 11;
    }
    CHECK(ended == expected_ends);
    CHECK(hooked == expected_hooks);
}

WEFT_TEST("swapped: one that is destroyed or cancelled while it waits unwinds, on any stack") {
    int unwound = 0;
    loop s;
    std::vector<fiber> fibers;
    for (int i = 0; i < 40; ++i)
        fibers.emplace_back(s, swapped, [&unwound] {
            struct noted {
                explicit noted(int& n) : count(n) {}
                ~noted() { ++count; }
                int& count;
            } const here(unwound);
            sleep_for(1h);
        });
    s.run_until_blocked();
    for (fiber& each : fibers) each.request_stop();
    CHECK(!s.run());
    CHECK(unwound == 40);
    for (fiber& each : fibers) each.join();
}

// --- what a parked one keeps

namespace {

constexpr wait_reason parks{"is parked", false};

std::size_t buffer_of(waiter& one) {
    auto& block = static_cast<detail::fiber_block&>(static_cast<detail::fiber_front&>(one));
    return static_cast<detail::swapped_fiber&>(block).place.buffer_size();
}

}  // namespace

// The second of them: the first of a thread is entered by a switch.
WEFT_TEST("swapped: one that waits in its first function keeps few bytes") {
    loop s;
    std::vector<waiter*> parked;
    for (int i = 0; i < 40; ++i)
        go(s, swapped, [&parked] {
            wait(parks, no_deadline, [&parked](waiter& me) noexcept {
                parked.push_back(&me);
                return true;
            });
        });
    s.poll();
    REQUIRE(parked.size() == 40);
    const std::size_t kept = buffer_of(*parked[1]);
    CHECK(kept != 0);
    CHECK(buffer_of(*parked[39]) == 0);  // it lies on its stack
#if defined(__OPTIMIZE__) && !defined(__SSP_ALL__) && defined(__x86_64__) && WEFT_NATIVE_SWITCH && \
    !WEFT_ASAN && !WEFT_TSAN
#if defined(__clang__) || defined(WEFT_TEST_LTO)
    CHECK(kept <= 96);  // its first frame has two registers more, so all are kept
#else
    CHECK(kept <= 32);  // two registers and an address
#endif
#endif
    for (waiter* const one : parked)
        if (one->claim()) one->wake();
    CHECK(!s.run());
}

#if defined(__x86_64__)

// Calls function(argument) with r12 to r15 as they are given, and says what they are afterwards.
extern "C" void weft_test_with_registers(void (*function)(void*), void* argument,
                                         std::uint64_t* four);
asm(R"(
    .text
    .type   weft_test_with_registers, @function
weft_test_with_registers:
    endbr64
    pushq   %r12
    pushq   %r13
    pushq   %r14
    pushq   %r15
    pushq   %rdx
    movq    %rdi, %rax
    movq    %rsi, %rdi
    movq    0(%rdx), %r12
    movq    8(%rdx), %r13
    movq    16(%rdx), %r14
    movq    24(%rdx), %r15
    call    *%rax
    popq    %rdx
    movq    %r12, 0(%rdx)
    movq    %r13, 8(%rdx)
    movq    %r14, 16(%rdx)
    movq    %r15, 24(%rdx)
    popq    %r15
    popq    %r14
    popq    %r13
    popq    %r12
    ret
    .size   weft_test_with_registers, .-weft_test_with_registers
)");

// Those that are zero are not kept.
WEFT_TEST("swapped: one finds its registers again, zero or not") {
    loop s;
    constexpr std::size_t count = 48;
    std::vector<std::unique_ptr<gate>> gates;
    for (std::size_t i = 0; i < count; ++i) gates.push_back(std::make_unique<gate>(i >= 32));
    std::size_t right = 0;
    for (std::size_t i = 0; i < count; ++i)
        go(s, swapped, [&gates, &right, i] {
            std::array<std::uint64_t, 4> registers;
            for (std::size_t r = 0; r < 4; ++r) registers[r] = (i >> r & 1) * (i * 8 + r + 1);
            const std::array<std::uint64_t, 4> before = registers;
            for (int round = 0; round < 3; ++round)
                weft_test_with_registers(
                    [](void* mine) {
                        yield();
                        static_cast<gate*>(mine)->pass();
                    },
                    gates[i].get(), registers.data());
            if (registers == before) ++right;
        });
    for (int round = 0; round < 3; ++round) {
        s.poll();
        for (const auto& each : gates) each->open();
    }
    CHECK(!s.run());
    CHECK(right == count);
}

#endif
