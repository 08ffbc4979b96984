// context_test.cpp - make, swap and jump: the same tests over every kind of context.
//
// What a context keeps besides its registers is tested elsewhere: exception_test.cpp,
// fp_control_test.cpp; the registers themselves in registers_test.cpp.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/context/context.hpp>

#include <ucontext.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <semaphore>
#include <string>
#include <thread>
#include <vector>

#include "context/switch.hpp"
#include "context_support.hpp"

using weft_test::memory_stack;
using weft_test::stepper;
using weft_test::stress_count;

namespace {

struct visit {
    void* argument = nullptr;
    void* address = nullptr;  // of a local
};

// What a test that uses no stepper hands to its entry.
template <class Context>
struct post {
    Context here;
    Context there;
    visit seen;
    int arrivals = 0;

    static void enter(void* argument) {
        auto& me = *static_cast<post*>(argument);
        alignas(16) char local[16] = {};
        me.seen = {argument, local};
        ++me.arrivals;
        Context::jump(me.here);
    }
};

// Pauses with so many frames more on the stack.
template <class Context>
[[gnu::noinline]] void pause_below(stepper<Context>& me, int frames) {
    char local[64];
    asm volatile("" : : "r"(local) : "memory");
    if (frames == 0) {
        me.pause();
    } else {
        pause_below(me, frames - 1);
    }
    asm volatile("" : : "r"(local) : "memory");
}

// A function of its own, for the reason in switch.hpp.
template <class Context>
[[gnu::noinline]] weft::detail::arrival<Context> swap_and_tell(Context& from, Context& to) {
    return weft::detail::swap_here(from, to);
}

}  // namespace

CONTEXT_TEST("context: runs its entry, with its argument, on its stack") {
    const memory_stack stack;
    post<Context> p;
    p.there = Context::make(stack.span(), &post<Context>::enter, &p);
    CHECK(p.arrivals == 0);
    Context::swap(p.here, p.there);
    CHECK(p.arrivals == 1);
    CHECK(p.seen.argument == &p);
    CHECK(weft_test::with_sanitizer || stack.contains(p.seen.address));
}

CONTEXT_TEST("context: both sides go on where they left") {
    std::string order;
    stepper<Context> body([&](auto& me) {
        for (char c : {'a', 'b', 'c'}) {
            order += c;
            me.pause();
        }
    });
    for (char c : {'1', '2', '3', '4'}) {
        order += c;
        body.step();
    }
    CHECK(order == "1a2b3c4");
    CHECK(body.done());
}

CONTEXT_TEST("context: its stack may be used again as soon as it has jumped away") {
    const memory_stack stack;
    post<Context> p;
    for (int i = 0; i < 100; ++i) {
        p.there = Context::make(stack.span(), &post<Context>::enter, &p);
        Context::swap(p.here, p.there);
        std::memset(stack.span().data(), 0xa5, stack.span().size());
    }
    CHECK(p.arrivals == 100);
}

CONTEXT_TEST("context: one that was never entered, or never finished, may simply go") {
    const memory_stack stack;
    post<Context> p;
    p.there = Context::make(stack.span(), &post<Context>::enter, &p);
    p.there = Context();
    {
        stepper<Context> body([](auto& me) { me.pause(); });
        body.step();
        CHECK(!body.done());
    }
    CHECK(p.arrivals == 0);
}

CONTEXT_TEST("context: pauses deep inside its calls") {
    int depth = 0;
    stepper<Context> body([&](auto& me) {
        for (; depth < 50; ++depth) pause_below(me, depth);
    });
    int steps = 0;
    for (; !body.done(); ++steps) {
        CHECK(depth == std::max(0, steps - 1));
        body.step();
    }
    CHECK(steps == 51);
}

CONTEXT_TEST("context: one makes and steps another, which steps another") {
    std::string order;
    stepper<Context> outer([&](auto& me) {
        order += '(';
        stepper<Context> middle([&](auto& inner_me) {
            order += '[';
            stepper<Context> inner([&](auto& innermost_me) {
                order += '<';
                innermost_me.pause();
                order += '>';
            });
            inner.step();
            inner_me.pause();
            inner.step();
            order += ']';
        });
        middle.step();
        me.pause();
        middle.step();
        order += ')';
    });
    outer.step();
    order += '.';
    outer.step();
    CHECK(order == "([<.>])");
}

CONTEXT_TEST("context: a ring hands control around without going back in between") {
    std::string order;
    std::vector<std::unique_ptr<stepper<Context>>> ring;
    for (std::size_t i = 0; i < 5; ++i) {
        ring.push_back(std::make_unique<stepper<Context>>([&ring, &order, i](auto& me) {
            for (int round = 0; round < 3; ++round) {
                order += static_cast<char>('a' + i);
                if (round < 2 || i < 4) me.pass_to(*ring[(i + 1) % ring.size()]);
            }
        }));
    }
    ring[0]->step();
    CHECK(order == "abcdeabcdeabcde");
    CHECK(ring[4]->done());
    CHECK(!ring[0]->done());
}

CONTEXT_TEST("context: jump goes on with another unfinished one") {
    std::string order;
    stepper<Context> last([&](auto&) { order += 'b'; });
    stepper<Context> first([&](auto& me) {
        order += 'a';
        last.outside() = std::move(me.outside());
        Context::jump(last.inside());
    });
    first.step();
    CHECK(order == "ab");
    CHECK(!first.done());
    CHECK(last.done());
}

CONTEXT_TEST("context: may be moved while it is suspended, and the old place may be gone") {
    struct pair {
        std::unique_ptr<Context> outside = std::make_unique<Context>();
        std::unique_ptr<Context> inside;
        int arrivals = 0;

        static void move_elsewhere(std::unique_ptr<Context>& context) {
            auto elsewhere = std::make_unique<Context>(std::move(*context));
            context = std::move(elsewhere);
        }
    } p;
    const auto entry = +[](void* argument) {
        auto& me = *static_cast<pair*>(argument);
        for (int i = 0; i < 3; ++i) {
            ++me.arrivals;
            pair::move_elsewhere(me.outside);
            Context::swap(*me.inside, *me.outside);
        }
        Context::jump(*me.outside);
    };
    const memory_stack stack;
    p.inside = std::make_unique<Context>(Context::make(stack.span(), entry, &p));
    for (int i = 0; i < 4; ++i) {
        pair::move_elsewhere(p.inside);
        Context::swap(*p.outside, *p.inside);
    }
    CHECK(p.arrivals == 3);
}

// Goes back and forth once, then the other side goes for good.
CONTEXT_TEST("context: a switch that arrives tells who goes on, and who left") {
    struct meeting {
        Context outside;
        Context inside;
        Context* told_mine = nullptr;
        Context* told_left = nullptr;

        void keep(weft::detail::arrival<Context> at) {
            told_mine = &at.mine;
            told_left = at.left;
        }
    } p;
    const auto entry = +[](void* argument) {
        auto& me = *static_cast<meeting*>(argument);
        me.keep(swap_and_tell(me.inside, me.outside));
        Context::jump(me.outside);
    };
    const memory_stack stack;
    p.inside = Context::make(stack.span(), entry, &p);
    const auto first = swap_and_tell(p.outside, p.inside);
    CHECK(&first.mine == &p.outside);
    CHECK(first.left == &p.inside);
    const auto second = swap_and_tell(p.outside, p.inside);
    CHECK(p.told_mine == &p.inside);
    CHECK(p.told_left == &p.outside);
    CHECK(&second.mine == &p.outside);
    CHECK(second.left == nullptr);
}

CONTEXT_TEST("context: one that was moved arrives where it is now, and a third may have left") {
    struct meeting {
        Context outside;
        Context first;
        Context second;
        Context* told_mine = nullptr;
        Context* told_left = nullptr;
    } p;
    const auto wait = +[](void* argument) {
        auto& me = *static_cast<meeting*>(argument);
        const auto at = swap_and_tell(me.first, me.outside);
        me.told_mine = &at.mine;
        me.told_left = at.left;
        Context::jump(me.outside);
    };
    const auto pass_on = +[](void* argument) {
        auto& me = *static_cast<meeting*>(argument);
        Context elsewhere = std::move(me.first);
        swap_and_tell(me.second, elsewhere);
    };
    const memory_stack stack_of_first;
    const memory_stack stack_of_second;
    p.first = Context::make(stack_of_first.span(), wait, &p);
    p.second = Context::make(stack_of_second.span(), pass_on, &p);
    swap_and_tell(p.outside, p.first);
    const auto at = swap_and_tell(p.outside, p.second);
    CHECK(p.told_mine != &p.first);
    CHECK(stack_of_second.contains(p.told_mine) || weft_test::with_sanitizer);
    CHECK(p.told_left == &p.second);
    CHECK(&at.mine == &p.outside);
    CHECK(at.left == nullptr);
}

CONTEXT_TEST("context: enters with an aligned stack, whatever memory it is given") {
    const memory_stack stack;
    for (std::size_t cut_low = 0; cut_low < 17; cut_low += 3) {
        for (std::size_t cut_high = 0; cut_high < 67; ++cut_high) {
            const auto whole = stack.span();
            post<Context> p;
            p.there = Context::make(whole.subspan(cut_low, whole.size() - cut_low - cut_high),
                                    &post<Context>::enter, &p);
            Context::swap(p.here, p.there);
            CHECK(reinterpret_cast<std::uintptr_t>(p.seen.address) % 16 == 0);
        }
    }
}

CONTEXT_TEST("context: writes nothing outside of the memory it is given") {
    constexpr std::size_t margin = 4096;
    const memory_stack stack(weft_test::context_stack_size + 2 * margin);
    std::ranges::fill(stack.span(), std::byte{0x5a});
    post<Context> p;
    p.there = Context::make(stack.span().subspan(margin, weft_test::context_stack_size),
                            &post<Context>::enter, &p);
    Context::swap(p.here, p.there);
    const auto untouched = [](std::byte b) { return b == std::byte{0x5a}; };
    CHECK(std::ranges::all_of(stack.span().first(margin), untouched));
    CHECK(std::ranges::all_of(stack.span().last(margin), untouched));
}

CONTEXT_TEST("context: knows the lowest address that it still needs") {
    const void* local_address = nullptr;
    std::vector<const std::byte*> lowest;
    stepper<Context> body([&](auto& me) {
        char local[64];
        local_address = local;
        asm volatile("" : : "r"(local) : "memory");
        me.pause();
        pause_below(me, 100);
    });
    const auto look = [&] {
        const std::byte* at = body.inside().lowest_used();
        CHECK(body.stack().contains(at));
        lowest.push_back(at);
    };
    look();
    body.step();
    look();
    CHECK(!body.stack().contains(local_address) || lowest[1] < local_address);  // or ASan's own
    body.step();
    look();
    CHECK(lowest[0] > lowest[1]);
    CHECK(lowest[1] - lowest[2] > 100 * 64);
    CHECK(body.stack().span().data() + body.stack().span().size() - lowest[0] < 8192);
    body.step();
}

CONTEXT_TEST("context: goes on in another thread") {
    std::vector<std::thread::id> where;
    stepper<Context> body([&](auto& me) {
        for (int i = 0; i < 4; ++i) {
            where.push_back(std::this_thread::get_id());
            me.pause();
        }
    });
    for (int i = 0; i < 4; ++i) {
        std::thread::id expected;
        std::thread thread([&] {
            expected = std::this_thread::get_id();
            body.step();
        });
        thread.join();
        CHECK(where.back() == expected);
    }
    body.step();
    CHECK(body.done());
    CHECK(where.size() == 4);
}

CONTEXT_TEST("context: stress: two threads take turns at one context") {
    const long rounds = stress_count(500'000);
    long count = 0;
    stepper<Context> body([&](auto& me) {
        for (long i = 0; i < 2 * rounds; ++i) {
            ++count;
            me.pause();
        }
    });
    std::binary_semaphore mine(1);
    std::binary_semaphore yours(0);
    const auto play = [&](std::binary_semaphore& take, std::binary_semaphore& give) {
        for (long i = 0; i < rounds; ++i) {
            take.acquire();
            body.step();
            give.release();
        }
    };
    std::thread other([&] { play(yours, mine); });
    play(mine, yours);
    other.join();
    body.step();
    CHECK(body.done());
    CHECK(count == 2 * rounds);
}

CONTEXT_TEST("context: stress: a thousand contexts take turns, each with a sum of its own") {
    const long rounds = std::max(3L, stress_count(10'000));
    constexpr std::size_t number = weft_test::with_sanitizer ? 100 : 1000;
    std::vector<std::unique_ptr<stepper<Context>>> bodies;
    std::vector<std::uint64_t> sums(number, 0);
    for (std::size_t i = 0; i < number; ++i) {
        bodies.push_back(std::make_unique<stepper<Context>>([&sums, rounds, i](auto& me) {
            std::uint64_t sum = 0;
            for (long round = 0; round < rounds; ++round) {
                sum = sum * 31 + i;
                me.pause();
            }
            sums[i] = sum;
        }));
    }
    for (long round = 0; round <= rounds; ++round)
        for (const auto& body : bodies) body->step();
    std::vector<std::uint64_t> expected(number, 0);
    for (std::size_t i = 0; i < number; ++i)
        for (long round = 0; round < rounds; ++round) expected[i] = expected[i] * 31 + i;
    CHECK(sums == expected);
}

#if WEFT_NATIVE_SWITCH
WEFT_TEST("context: made on too small a stack, aborts (native)") {
    const memory_stack stack(1023);
    EXPECT_DEATH(static_cast<void>(weft::native_context::make(
                     stack.span(), [](void*) {}, nullptr)),
                 "weft: context: made on a stack of less than 1 KiB");
}
#endif

WEFT_TEST("context: made on too small a stack, aborts (portable)") {
    const memory_stack stack(2 * sizeof(ucontext_t) + 2047);
    EXPECT_DEATH(
        static_cast<void>(weft::portable_context::make(
            stack.span(), [](void*) {}, nullptr)),
        "weft: context: a ucontext made on a stack without room for two of them and 2 KiB");
}

CONTEXT_TEST("context: an entry that returns does not go unseen") {
    const memory_stack stack;
    EXPECT_DEATH(
        {
            Context here;
            auto there = Context::make(
                stack.span(), [](void*) {}, nullptr);
            Context::swap(here, there);
        },
        "");
}
